"""The pick: filter, rank, name the winner and say why everybody else lost. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from bullswarm.routing import pace, reasons, strategies
from bullswarm.routing.filters import Ask
from bullswarm.routing.rows import Row
from bullswarm.routing.tiers import GATED
from bullswarm.routing.types import Candidate, Decision, Hold, Policy, Request, Snapshot
from bullswarm.routing.view import FleetView

DEFAULT_POLICY = Policy()


def route(snapshot: Snapshot, request: Request, policy: Policy = DEFAULT_POLICY) -> Decision:
    """Which pool runs ``request`` now, with every candidate's numbers.

    No caps and no holds: see ``admit``. A function of its arguments alone: the same snapshot,
    request and policy give the same decision, whatever the order of the pools.
    """
    view = FleetView(snapshot)
    rows = weigh(view, request, policy)
    return choose(view, rows, request, policy)


def weigh(view: FleetView, request: Request, policy: Policy) -> list[Row]:
    """A row for every pool."""
    ask = Ask(request, view, strategies.wants_fast(policy))
    return [Row(pool, ask, view) for pool in view.pools]


def choose(view: FleetView, rows: Sequence[Row], request: Request, policy: Policy) -> Decision:
    """The decision among rows. Eligible rows with ``no_room`` rank after all others and are never
    picked, unless none has room: then it's for the caller of this function to hold instead."""
    eligible = [row for row in rows if row.eligible]
    if not eligible:
        return decision(
            view,
            rows,
            [],
            policy,
            reason=reasons.nobody(rows, request),
            retry_at=comeback(rows),
        )
    roomy = [row for row in eligible if row.no_room is None]
    ranked, note, explain_loss, reason = _rank(roomy or eligible, request, policy)
    winner = ranked[0]
    for row in ranked[1:]:
        row.lost = explain_loss(row, winner)
    if len(ranked) < len(eligible):
        crowded = [row for row in eligible if row.no_room is not None]
        for row in crowded:
            row.lost = row.no_room
        ranked = ranked + _rank(crowded, request, policy)[0]
    return decision(
        view,
        rows,
        ranked,
        policy,
        pool=winner,
        reason=reason(winner),
        note=note,
        keep=winner.runs_on_caller,
    )


def decision(
    view: FleetView,
    rows: Sequence[Row],
    ranked: Sequence[Row],
    policy: Policy,
    *,
    reason: str,
    pool: Row | None = None,
    note: str | None = None,
    keep: bool = False,
    hold: Hold | None = None,
    retry_at: datetime | None = None,
) -> Decision:
    """A decision with a row for every pool: the ranked ones first, the others by name."""
    return Decision(
        pool=pool.name if pool is not None else None,
        reason=reason,
        model=pool.model.name if pool is not None and pool.model is not None else None,
        keep_on_caller=keep,
        note=note,
        hold=hold,
        retry_at=retry_at,
        candidates=_candidates(rows, ranked),
        strategy=policy.strategy,
        at=view.now,
    )


def comeback(rows: Sequence[Row]) -> datetime | None:
    """The earliest known time at which a capable pool that is away returns."""
    return min((row.back_at for row in rows if row.back_at is not None), default=None)


def _candidates(rows: Sequence[Row], ranked: Sequence[Row]) -> tuple[Candidate, ...]:
    placed = set(map(id, ranked))
    rest = [row for row in rows if id(row) not in placed]
    rest.sort(key=lambda row: (not row.eligible, row.name))
    done: list[Candidate] = []
    for rank, row in enumerate([*ranked, *rest], start=1):
        row.rank = rank
        done.append(row.candidate())
    return tuple(done)


_Ranked = tuple[list[Row], str | None, Callable[[Row, Row], str], Callable[[Row], str]]


def _rank(rows: Sequence[Row], request: Request, policy: Policy) -> _Ranked:
    if policy.strategy == "pace":
        ranked = pace.order(rows)
        best = ranked[0]
        gated = best.tier == GATED and request.pin is None
        note = reasons.gated_note(best) if gated else None
        return ranked, note, pace.lost, reasons.pace
    ranked, note = strategies.order(rows, policy, request)
    return (
        ranked,
        note,
        lambda loser, winner: strategies.lost(loser, winner, policy, request),
        lambda row: strategies.reason(row, policy, request, note),
    )
