"""``assignments`` and ``cancel``: what is running, waiting or held, and ending it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click
from msgspec import structs

from bullswarm.cli.common import NAME, as_json, examples, home_of
from bullswarm.cli.output import print_json, span, table, when


@click.command(epilog=examples("bullswarm assignments", "bullswarm assignments --json"))
@as_json
@click.pass_context
def assignments(ctx: click.Context, json: bool) -> int:
    """Show every agent in flight, and what waits for a slot, a reset or room."""
    from bullswarm.runs.app import App
    from bullswarm.runs.orphans import is_orphan, words

    app = App.open(home=home_of(ctx))
    agents = tuple(
        structs.replace(a, why=words(a)) if is_orphan(a) else a for a in app.store.agents()
    )
    if json:
        print_json({"at": app.now(), "assignments": agents})
        return 0
    if not agents:
        click.echo("nothing is running or waiting")
        return 0
    now = app.now()
    header = ("ID", "STATE", "POOL", "LANE", "SINCE", "UNTIL", "WORK", "WHY")
    for line in table((_row(agent, now) for agent in agents), header):
        click.echo(line)
    return 0


def _row(agent: Any, now: datetime) -> list[tuple[str, str | None]]:
    since = agent.started_at or agent.queued_at
    tone = {"running": "good", "starting": "good"}.get(agent.state, "warn")
    work = f"{agent.step_id}: {agent.purpose}" if agent.step_id else agent.purpose
    return [
        (agent.id, "key"),
        (agent.state + (" (ending)" if agent.cancel else ""), tone),
        (agent.pool or "-", None),
        (agent.lane, None),
        (span((now - since).total_seconds()), None),
        (when(agent.until, now) if agent.until else "-", None),
        (work[:60], None),
        (agent.why or "", "dim"),
    ]


@click.command(epilog=examples("bullswarm assignments", "bullswarm cancel k3v9qa"))
@click.argument("id", type=NAME)
@click.option("--kill", is_flag=True, help="Kill at once rather than ask first.")
@as_json
@click.pass_context
def cancel(ctx: click.Context, id: str, kill: bool, json: bool) -> int:
    """End a piece of work by its id (see assignments) or by its run. The record is kept."""
    from bullswarm.runs.app import App

    app = App.open(home=home_of(ctx))
    found = app.store.cancel(id, 2 if kill else 1)
    if found:
        from bullswarm.runs.orphans import end_orphans

        end_orphans(app, found, kill=kill)
    if json:
        print_json({"cancelled": found})
    elif found:
        click.echo("asked to end: " + ", ".join(found))
    else:
        click.echo(f"nothing in flight is called {id!r}; 'bullswarm assignments' lists what is")
    return 0 if found else 1
