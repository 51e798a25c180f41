"""``runs``, ``show`` and ``result`` of workflows."""

from __future__ import annotations

from typing import Any

import click

from bullswarm.cli.common import NAME, as_json, examples
from bullswarm.cli.output import print_json, span, table, when
from bullswarm.cli.workflow.common import app_of, find_run, state_of
from bullswarm.errors import BullswarmError


@click.command(
    epilog=examples("bullswarm workflow runs", "bullswarm workflow runs --limit 5 --json")
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="The newest so many.",
)
@as_json
@click.pass_context
def runs(ctx: click.Context, limit: int, json: bool) -> int:
    """List workflow runs, newest first, and whether a kernel carries them."""
    from bullswarm.workflow.control import carried
    from bullswarm.workflow.folder import RunFolder
    from bullswarm.workflow.state import ENDED

    app = app_of(ctx)
    records = [r for r in app.store.runs(None) if r.kind == "workflow"][:limit]
    now = app.now()
    rows = []
    for record in records:
        folder = RunFolder(app.home.workflows / record.run_id)
        state = None
        try:
            state = folder.read_state()
            phase = state.phase if state is not None else record.state
        except BullswarmError:
            # One that is damaged must not hide the others; 'show' says what is wrong with it.
            phase = "damaged"
        if phase not in ENDED and not carried(folder):
            phase = f"{phase}, not carried"
        done = sum(s.status in ("done", "accepted") for s in state.steps.values()) if state else 0
        total = len(state.steps) if state else 0
        rows.append((record, phase, done, total))
    if json:
        print_json(
            {
                "runs": [
                    {
                        "runId": r.run_id,
                        "shortId": r.short_id,
                        "phase": p,
                        "done": d,
                        "steps": t,
                        "cwd": r.cwd,
                        "purpose": r.purpose,
                        "startedAt": r.started_at,
                        "endedAt": r.ended_at,
                    }
                    for r, p, d, t in rows
                ]
            }
        )
        return 0
    if not rows:
        click.echo("no workflow runs yet: bullswarm workflow run program.yaml")
        return 0
    header = ("RUN", "PHASE", "STEPS", "STARTED", "TOOK", "GOAL")
    lines = table(
        (
            [
                (r.short_id, "key"),
                (p, "good" if p == "completed" else "warn"),
                (f"{d}/{t}", None),
                (when(r.started_at, now), None),
                (span(((r.ended_at or now) - r.started_at).total_seconds()), None),
                (r.purpose[:60], None),
            ]
            for r, p, d, t in rows
        ),
        header,
    )
    for line in lines:
        click.echo(line)
    return 0


@click.command(
    epilog=examples("bullswarm workflow show k3v9qa", "bullswarm workflow show k3v9qa --json")
)
@click.argument("run", type=NAME)
@as_json
@click.pass_context
def show(ctx: click.Context, run: str, json: bool) -> int:
    """Where a run and its steps stand now. A step that needs you says why, shows the end of its
    failed evidence, what waits on it, and the commands that are your options."""
    from bullswarm.workflow.control import carried, document, last_words
    from bullswarm.workflow.state import ENDED

    _, folder = find_run(ctx, run)
    state = state_of(folder)
    going = carried(folder)
    if json:
        print_json({**document(folder, state), "carried": going, "folder": str(folder.path)})
        return 0
    _summary(folder, state)
    if state.phase not in ENDED and not going:
        click.echo(f"  nobody carries this run ({last_words(folder)})")
        click.echo(f"    go on: bullswarm workflow resume {state.run_id}")
    click.echo(f"  folder: {folder.path}")
    return 0


@click.command(
    epilog=examples(
        "bullswarm workflow result k3v9qa", "bullswarm workflow result k3v9qa --summary"
    )
)
@click.argument("run", type=NAME)
@click.option("--summary", "short", is_flag=True, help="In lines for people.")
@as_json
@click.pass_context
def result(ctx: click.Context, run: str, short: bool, json: bool) -> int:
    """The versioned result document (JSON). Exit 0 where the run completed."""
    from bullswarm.workflow.control import document

    _, folder = find_run(ctx, run)
    state = state_of(folder)
    if short and not json:
        _summary(folder, state)
    else:
        print_json(document(folder, state))
    return 0 if state.phase == "completed" else 1


def _summary(folder: Any, state: Any) -> None:
    from bullswarm.workflow.result import summary

    for line in summary(state):
        click.echo(line)
    for one in folder.kept():
        click.echo(f"  kept {one.path} ({one.branch}): {one.why}")
