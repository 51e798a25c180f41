"""Whether to dispatch now at all: caps, holds, and a line of waiting work served in order. Pure.

Under load the question is less where than whether: work sent to a window that is about to close
dies there and burns what is left of it. A hold always names a later time, never outlasts its
patience, and never happens while a capable pool has room.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from bullswarm.routing import reasons, room
from bullswarm.routing.filters import stamp
from bullswarm.routing.pick import DEFAULT_POLICY, choose, comeback, decision, weigh
from bullswarm.routing.rows import Row
from bullswarm.routing.tiers import INELIGIBLE
from bullswarm.routing.types import (
    Admission,
    Decision,
    Hold,
    Policy,
    Request,
    Snapshot,
    Value,
    Work,
)
from bullswarm.routing.view import FleetView

SOON = timedelta(seconds=1)
"""The least a hold lasts."""


class Waiting(Value, frozen=True, kw_only=True):
    """One piece of work in line. ``admission`` None means the snapshot's configured one."""

    id: str
    request: Request
    policy: Policy = Policy()
    admission: Admission | None = None


def admit(
    snapshot: Snapshot,
    request: Request,
    policy: Policy = DEFAULT_POLICY,
    admission: Admission | None = None,
) -> Decision:
    """Route ``request`` or hold it.

    The bounds on live workers hold always: those of all pools together, then each pool's own (a
    pool at its cap is passed over while another can). With ``admission.mode`` "hold" the work also
    waits while no capable pool has room under its lines, until the patience is over; then it goes
    where ``route`` says. ``admission`` None means the snapshot's configured one.
    """
    rule = admission if admission is not None else snapshot.config.admission
    return _admit(FleetView(snapshot), request, policy, rule)


def serve(snapshot: Snapshot, line: Sequence[Waiting]) -> dict[str, Decision]:
    """A decision for every piece of work in line, by its id. Each is admitted in turn, and a placed
    one counts as in flight for those after it; a held one keeps nobody else waiting."""
    view = FleetView(snapshot)
    done: dict[str, Decision] = {}
    for one in line:
        rule = one.admission if one.admission is not None else snapshot.config.admission
        made = done[one.id] = _admit(view, one.request, one.policy, rule)
        if made.pool is not None and not made.keep_on_caller:
            view.add(
                Work(
                    id=one.id,
                    pool=made.pool,
                    lane=one.request.lane,
                    started_at=view.now,
                    model=made.model,
                    ran_minutes=one.request.ran_minutes,
                )
            )
    return done


def _admit(view: FleetView, request: Request, policy: Policy, rule: Admission) -> Decision:
    rows = weigh(view, request, policy)
    holding = rule.mode == "hold"
    since = request.waiting_since if request.waiting_since is not None else view.now
    ends = since + timedelta(minutes=rule.patience_minutes)
    patient = holding and view.now < ends

    capped = _apply_pool_caps(rows)
    eligible = [row for row in rows if row.eligible]
    if not eligible:
        if capped:
            return _cap_hold(view, rows, capped, policy)
        return _wait_for_comeback(view, rows, request, policy, rule, ends if patient else None)

    full = view.config.worker_cap is not None and view.inflight_total >= view.config.worker_cap
    # Work that is out of patience, too, goes where there is room, if that is anywhere.
    crowded = holding and _apply_room(eligible, rule)
    if full and not all(row.runs_on_caller for row in eligible):
        made = None if crowded else choose(view, rows, request, policy)
        if made is not None and made.keep_on_caller:
            return made
        return _worker_cap_hold(view, rows, policy)
    if crowded and patient:
        return _admission_hold(view, rows, eligible, capped, policy, rule, ends)
    if crowded and request.pin is None:
        return _least_loaded(view, rows, eligible, policy, rule)
    return choose(view, rows, request, policy)


def _apply_pool_caps(rows: Sequence[Row]) -> list[Row]:
    """Take rows at their pool's own cap out; the caller's session is no worker of ours."""
    capped: list[Row] = []
    for row in rows:
        cap = row.view.pool.cap
        if cap is None or not row.eligible or row.inflight < cap or row.runs_on_caller:
            continue
        row.eligible = False
        row.why_not = f"at its cap of {cap} live workers"
        row.tier = INELIGIBLE
        capped.append(row)
    return capped


def _apply_room(eligible: Sequence[Row], rule: Admission) -> bool:
    """Mark the rows without room; True where none has any."""
    roomy = False
    for row in eligible:
        row.no_room = room.why_none(row, rule)
        roomy = roomy or row.no_room is None
    return not roomy


def _cap_hold(
    view: FleetView, rows: Sequence[Row], capped: Sequence[Row], policy: Policy
) -> Decision:
    best: tuple[datetime, str] | None = None
    for row in capped:
        free = _later(view.now, room.slot_minutes(row, row.view.pool.cap or 0))
        if free is not None and (best is None or (free, row.name) < best):
            best = (free, row.name)
    back = comeback(rows)
    if back is not None and (best is None or back < best[0]):
        name = min(row.name for row in rows if row.back_at == back)
        best = (back, name)
    until, pool = best or (_after_prior(view), None)
    names = _few([f"{row.name} {row.why_not}" for row in sorted(capped, key=lambda r: r.name)])
    return _held(
        view,
        rows,
        policy,
        Hold(
            until=max(until, view.now + SOON),
            kind="cap",
            reason=f"every capable pool is at its cap: {names}; next free about {stamp(until)}",
            pool=pool,
        ),
    )


def _worker_cap_hold(view: FleetView, rows: Sequence[Row], policy: Policy) -> Decision:
    rests = view.rests()
    over = view.inflight_total - (view.config.worker_cap or 0)
    until = None
    if 0 <= over < len(rests):
        until = _later(view.now, rests[over])
    when = until or _after_prior(view)
    return _held(
        view,
        rows,
        policy,
        Hold(
            until=max(when, view.now + SOON),
            kind="cap",
            reason=(
                f"{view.inflight_total} workers are live and the cap of all pools together is "
                f"{view.config.worker_cap}; the next is expected to end about {stamp(when)}"
            ),
        ),
    )


def _admission_hold(
    view: FleetView,
    rows: Sequence[Row],
    eligible: Sequence[Row],
    capped: Sequence[Row],
    policy: Policy,
    rule: Admission,
    ends: datetime,
) -> Decision:
    best: tuple[datetime, str] | None = None
    for row in [*eligible, *capped]:
        when = _later(view.now, room.minutes_to_room(row, rule))
        if when is not None and (best is None or (when, row.name) < best):
            best = (when, row.name)
    for row in rows:
        back = row.back_at
        if back is not None and (best is None or (back, row.name) < best):
            best = (back, row.name)
    until, pool = best or (ends, None)
    words = _few([f"{row.name} {row.no_room}" for row in sorted(eligible, key=lambda r: r.name)])
    expected = f"{pool} is expected to have room about {stamp(until)}" if pool else "no known time"
    if until >= ends:
        expected += f", the patience ends {stamp(ends)}"
    return _held(
        view,
        rows,
        policy,
        Hold(
            until=_between(view.now, until, ends),
            reason=f"no capable pool has room: {words}; {expected}",
            pool=pool,
            patience_ends=ends,
        ),
    )


def _least_loaded(
    view: FleetView,
    rows: Sequence[Row],
    eligible: Sequence[Row],
    policy: Policy,
    rule: Admission,
) -> Decision:
    """Nobody has room and the patience is over: the work goes where it does the least harm. By
    any other order a whole line that runs out of patience together would die on one pool."""
    over = {row.name: room.points_over(row, rule) for row in eligible}

    def load(row: Row) -> tuple[Any, ...]:
        crowd = row.inflight >= rule.cap_per_pool
        return (row.runs_on_caller, crowd, round(over[row.name], 6), *row.base)

    ranked = sorted(eligible, key=load)
    winner = ranked[0]
    for row in ranked[1:]:
        row.lost = f"{row.no_room}; {winner.name} is the least loaded"
    words = f"no pool has room and the patience is over: {winner.name} is the least loaded"
    return decision(
        view,
        rows,
        ranked,
        policy,
        pool=winner,
        reason=f"{words} ({winner.no_room})",
        note=words,
        keep=winner.runs_on_caller,
    )


def _wait_for_comeback(
    view: FleetView,
    rows: Sequence[Row],
    request: Request,
    policy: Policy,
    rule: Admission,
    ends: datetime | None,
) -> Decision:
    back = comeback(rows)
    if ends is None or back is None or back > ends:
        return choose(view, rows, request, policy)
    name = min(row.name for row in rows if row.back_at == back)
    return _held(
        view,
        rows,
        policy,
        Hold(
            until=_between(view.now, back, ends),
            reason=f"{reasons.nobody(rows, request)}; {name} is back {stamp(back)}",
            pool=name,
            patience_ends=ends,
        ),
    )


def _held(view: FleetView, rows: Sequence[Row], policy: Policy, hold: Hold) -> Decision:
    for row in rows:
        if row.eligible:
            row.lost = row.no_room or "held"
    return decision(
        view, rows, [], policy, reason=f"held: {hold.reason}", hold=hold, retry_at=comeback(rows)
    )


def _between(now: datetime, until: datetime, ends: datetime) -> datetime:
    """``until``, after now and not after the end of the patience (itself after now)."""
    return min(max(until, now + SOON), ends)


def _later(now: datetime, minutes: float | None) -> datetime | None:
    """So many minutes from now; None where unknown or beyond what a calendar holds."""
    if minutes is None:
        return None
    try:
        return now + timedelta(minutes=minutes)
    except OverflowError:
        return None


def _after_prior(view: FleetView) -> datetime:
    """When to look again where nothing in flight says when it ends."""
    return _later(view.now, max(view.config.bootstrap_minutes, 1.0)) or view.now + SOON


def _few(words: Sequence[str]) -> str:
    shown = list(words[: reasons.NAMED])
    if len(words) > len(shown):
        shown.append(f"and {len(words) - len(shown)} more")
    return "; ".join(shown)
