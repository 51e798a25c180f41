"""``runs``, ``explain`` and ``health``: reading records back."""

from __future__ import annotations

from typing import Any

import click

from bullswarm.cli.common import NAME, as_json, examples, home_of
from bullswarm.cli.output import note, paint, print_json, span, table, when
from bullswarm.errors import BullswarmError

MANY = click.IntRange(1, 1_000_000)


@click.command(epilog=examples("bullswarm runs", "bullswarm runs --limit 100 --json"))
@click.option(
    "--limit", type=MANY, default=20, show_default=True, help="How many, counted from the newest."
)
@as_json
@click.pass_context
def runs(ctx: click.Context, limit: int, json: bool) -> int:
    """List recorded runs, newest first."""
    from bullswarm.runs.app import App

    app = App.open(home=home_of(ctx))
    # A run whose process was killed must not look as if it were still going.
    app.store.reconcile()
    records = app.store.runs(limit)
    if json:
        print_json({"runs": records})
        return 0
    if not records:
        click.echo('no runs yet: bullswarm run --lane analyze "..."')
        return 0
    now = app.now()

    def row(r: Any) -> list[tuple[str, str | None]]:
        end = r.ended_at or now
        tone = {"ok": "good", "failed": "bad", "cancelled": "warn"}.get(r.state)
        return [
            (r.short_id, "key"),
            (r.kind, None),
            (r.state, tone),
            (r.pool or "-", None),
            (r.lane or "-", None),
            (when(r.started_at, now), None),
            (span((end - r.started_at).total_seconds()), None),
            (r.purpose[:70], None),
        ]

    header = ("RUN", "KIND", "STATE", "POOL", "LANE", "STARTED", "TOOK", "WORK")
    for line in table(map(row, records), header):
        click.echo(line)
    return 0


@click.command(
    epilog=examples("bullswarm runs", "bullswarm explain k3v9qa", "bullswarm explain k3v9qa --json")
)
@click.argument("run", type=NAME)
@click.option("--attempt", type=click.IntRange(min=1), help="Only that attempt's decision.")
@as_json
@click.pass_context
def explain(ctx: click.Context, run: str, attempt: int | None, json: bool) -> int:
    """Read the decisions of a run back, number by number, and replay each from its snapshot."""
    from bullswarm.cli.explain import explanation, print_explanation
    from bullswarm.runs.app import App

    app = App.open(home=home_of(ctx))
    record = app.store.run(run)
    if record is None:
        raise BullswarmError(f"no run {run!r}; 'bullswarm runs' lists them")
    decisions = app.store.decisions(record.run_id)
    if attempt is not None:
        decisions = decisions[attempt - 1 : attempt]
    if not decisions:
        raise BullswarmError(f"run {record.short_id} has no such decision on record")
    shown = [explanation(one) for one in decisions]
    if json:
        print_json({"runId": record.run_id, "shortId": record.short_id, "decisions": shown})
    else:
        for one in shown:
            print_explanation(one)
    return 0 if all(one.same for one in shown) else 1


@click.command(epilog=examples("bullswarm health", "bullswarm health --json"))
@click.option(
    "--limit", type=MANY, help="Only so many answers, newest first (default: every saved one)."
)
@as_json
@click.pass_context
def health(ctx: click.Context, limit: int | None, json: bool) -> int:
    """Check the home and its providers, and judge every saved answer again."""
    from bullswarm.runs.app import App
    from bullswarm.runs.checkup import checkup

    app = App.open(home=home_of(ctx))
    report = checkup(app, limit=limit)
    if json:
        print_json(report)
        return 0 if report.ok else 1
    for line in report.findings:
        mark, tone = ("ok ", "good") if line.ok else ("!! ", "bad")
        click.echo(f"{paint(mark, tone, False)} {line.what}: {line.text}")
    bad = [a for a in report.answers if not a.ok]
    click.echo(f"{len(report.answers)} saved answers, {len(bad)} fail the content gate today")
    for answer in bad:
        click.echo(f"  {answer.path}: {answer.why}")
    if not report.ok:
        note("something needs a look: see the lines marked !!")
    return 0 if report.ok else 1
