"""Whether a pool has room for one more agent, and when it is expected to.

A long tail is the danger: the candidate counts with ``tail_factor`` times its expected minutes;
of one that a limit cut off before, what it ran is certain and only the rest has a tail.
"""

from __future__ import annotations

from bullswarm.routing.forecast import clipped, grown
from bullswarm.routing.rows import Row
from bullswarm.routing.types import Admission

_EPSILON_MINUTES = 1 / 60


def tail_minutes(row: Row, rule: Admission) -> float:
    """The candidate's minutes with its tail."""
    return row.ran + row.rest * rule.tail_factor


def tail_five(row: Row, rule: Admission) -> float | None:
    """The 5-hour forecast (percent) with the candidate's tail, clipped at the reset."""
    view = row.view
    minutes = clipped(tail_minutes(row, rule), view.five_left)
    return grown(view.five_projected, view.five_rate, minutes)


def tail_pacing(row: Row, rule: Admission) -> float | None:
    """The pacing forecast (percent) with the candidate's tail; never clipped."""
    view = row.view
    return grown(view.pacing_projected, view.pacing_rate, tail_minutes(row, rule))


def pacing_line(row: Row, rule: Admission) -> float:
    """The pacing line, lower by what is kept for the people who own the account."""
    return rule.pacing_line - row.view.pool.reserve_pct


def why_none(row: Row, rule: Admission) -> str | None:
    """Why the pool has no room; None where it has. An unknown window has headroom."""
    if row.inflight >= rule.cap_per_pool and not row.runs_on_caller:
        return f"has {row.inflight} agents in flight (cap {rule.cap_per_pool})"
    five = tail_five(row, rule) if row.view.five_projected is not None else None
    if five is not None and five >= rule.five_hour_line:
        return f"5-hour forecast {five:.1f}% is at its line of {rule.five_hour_line:.0f}%"
    pacing = tail_pacing(row, rule) if row.view.pacing_projected is not None else None
    if pacing is not None and pacing >= pacing_line(row, rule):
        line = pacing_line(row, rule)
        return f"{row.pacing_word} forecast {pacing:.1f}% is at its line of {line:.0f}%"
    return None


def points_over(row: Row, rule: Admission) -> float:
    """How far (percent points) the fullest of its windows is forecast over its line; below zero
    where it is under. Unknown windows are far under."""
    five, pacing = tail_five(row, rule), tail_pacing(row, rule)
    return max(
        -100.0 if five is None else five - rule.five_hour_line,
        -100.0 if pacing is None else pacing - pacing_line(row, rule),
    )


def slot_minutes(row: Row, cap: int) -> float | None:
    """Expected minutes until fewer than ``cap`` agents are in flight; None where none ever is."""
    over = row.inflight - cap
    rests = row.view.load.rests
    return rests[over] if cap > 0 and 0 <= over < len(rests) else None


def minutes_to_room(row: Row, rule: Admission) -> float | None:
    """Expected minutes until the pool has room again: the last of what it waits for. None where a
    reset or an end that it waits for is unknown."""
    waits: list[float | None] = []
    own = row.view.pool.cap
    cap = rule.cap_per_pool if own is None else min(own, rule.cap_per_pool)
    if row.inflight >= cap and not row.runs_on_caller:
        waits.append(slot_minutes(row, cap))
    five = tail_five(row, rule)
    if five is not None and five >= rule.five_hour_line:
        waits.append(_five_minutes(row, rule))
    pacing = tail_pacing(row, rule)
    if pacing is not None and pacing >= pacing_line(row, rule):
        waits.append(row.view.pacing_left)
    known = [wait for wait in waits if wait is not None]
    return max(known) if known and len(known) == len(waits) else None


def _five_minutes(row: Row, rule: Admission) -> float | None:
    """Minutes until the 5-hour forecast is under its line. What is in flight is in the projection
    already, so only the clock helps: near the reset the candidate's tail falls into the next
    window, and at the reset all is fresh."""
    view = row.view
    left = view.five_left
    if left is None or view.five_rate is None or view.five_projected is None:
        return left
    spare = rule.five_hour_line - view.five_projected
    if spare <= 0.0 or view.five_rate <= 0.0:
        return left
    return min(left, max(0.0, left - spare / view.five_rate) + _EPSILON_MINUTES)
