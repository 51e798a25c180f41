"""A decision for people: every candidate's numbers, why it lost, and whether a replay agrees."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from bullswarm.cli.output import percent, print_json, signed, table, when
from bullswarm.routing.types import Candidate, Decision


class Explanation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A stored decision beside its replay from the stored snapshot."""

    id: str
    decision: Decision
    replayed_pool: str | None
    same: bool
    request: Any
    policy: Any
    snapshot: Any


def explanation(record: Any) -> Explanation:
    """Replay a decision record: the same snapshot must give the same pick."""
    from bullswarm.routing import admit, route

    if record.admission is not None:
        again = admit(record.snapshot, record.request, record.policy, record.admission)
    else:
        again = route(record.snapshot, record.request, record.policy)
    return Explanation(
        id=record.id,
        decision=record.decision,
        replayed_pool=again.pool,
        same=again.pool == record.decision.pool
        and again.keep_on_caller == record.decision.keep_on_caller,
        request=record.request,
        policy=record.policy,
        snapshot=record.snapshot,
    )


def print_decision(decision: Decision, *, json: bool) -> None:
    """One decision, as ``run --dry-run`` shows it."""
    if json:
        print_json(decision)
        return
    if decision.hold is not None:
        now = decision.at or decision.hold.until
        click.echo(f"hold until about {when(decision.hold.until, now)}: {decision.hold.reason}")
    elif decision.keep_on_caller:
        click.echo(f"keep it in your own session ({decision.pool})")
    elif decision.pool is None:
        click.echo("no pool can take it")
    else:
        model = f" with {decision.model}" if decision.model else ""
        click.echo(f"{decision.pool}{model}")
    click.echo(f"  {decision.reason}")
    if decision.note:
        click.echo(f"  note: {decision.note}")
    if decision.pool is None and decision.retry_at is not None and decision.at is not None:
        click.echo(f"  the earliest pool comes back at {when(decision.retry_at, decision.at)}")
    for line in table(map(_row, decision.candidates), HEADER):
        click.echo(line)


def print_explanation(one: Explanation) -> None:
    """A stored decision with the verdict of its replay."""
    when_ = one.decision.at.astimezone().isoformat(timespec="seconds") if one.decision.at else ""
    click.echo(f"decision {one.id} {when_} ({one.decision.strategy})")
    print_decision(one.decision, json=False)
    if one.same:
        click.echo(f"replayed from its snapshot: the same pick ({one.replayed_pool or 'none'})")
    else:
        click.echo(f"replayed from its snapshot: ANOTHER pick ({one.replayed_pool or 'none'})")
    click.echo("")


HEADER = (
    "#",
    "POOL",
    "TIER",
    "PACE",
    "CHARGE",
    "EFFECTIVE",
    "INFLIGHT",
    "5H",
    "FORECAST",
    "PACING",
    "RATE",
    "WHY",
)


def _row(c: Candidate) -> list[tuple[str, str | None]]:
    rate = "-" if c.rate_per_minute is None else f"{c.rate_per_minute:.3f}/min"
    charge = f"{c.charge:.1f} {c.charge_basis}" if c.charge_basis else f"{c.charge:.1f}"
    projected = percent(c.projected_five_hour_pct)
    five = percent(c.five_hour_pct)
    gated = " gated" if c.forecast_gated else (" near" if c.near_limit else "")
    urgency = f" urgency {c.urgency:.0f}" if c.urgency is not None else ""
    return [
        (str(c.rank) if c.eligible else "-", None),
        (c.pool, "key"),
        (c.tier, None),
        (signed(c.pace), None),
        (charge, None),
        (signed(c.effective_surplus), None),
        (str(c.inflight), None),
        (f"{five}->{projected}" if projected != five else five, None),
        (f"{percent(c.forecast_five_hour_pct)}{gated}", "warn" if gated else None),
        (f"{percent(c.forecast_pacing_pct)}{urgency}", None),
        (f"{rate} {c.estimate_source}", "dim"),
        (c.why_not or c.lost or "picked", "dim"),
    ]
