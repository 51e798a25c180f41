"""The order of candidates under the ``pace`` strategy: tiers first, then what counts inside one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bullswarm.routing.rows import Row
from bullswarm.routing.tiers import GATED, INCUMBENCY_MARGIN, NEAR_LIMIT, TIERS, URGENT


def order(rows: Sequence[Row]) -> list[Row]:
    """Eligible rows, best first.

    One sort on one key, so the order of pools never matters; the incumbent is then moved in front
    of every row of its tier that may not take its work. Urgency beats assignment and incumbency; a
    forecast-gated tier only looks for the least loaded (routing rules).
    """
    ranked = sorted(rows, key=_key)
    _keep_incumbent(ranked)
    return ranked


def _key(row: Row) -> tuple[Any, ...]:
    tier = row.tier
    if tier == URGENT:
        return (tier, -row.urgency_charged, *row.base)
    if tier == GATED:
        return (tier, row.five_forecast, *row.base)
    return (tier, 0 if row.assigned else 1, *row.base)


def beats(challenger: Row, incumbent: Row) -> bool:
    """Whether a row that is ahead of the incumbent by its numbers may take its work: over the
    margin and strictly cheaper; or approved; or simply quieter, for a busier incumbent has neither
    margin nor guard."""
    if challenger.assigned and not incumbent.assigned:
        return True
    if challenger.inflight < incumbent.inflight:
        return True
    return (
        challenger.effective - incumbent.effective > INCUMBENCY_MARGIN
        and challenger.cost < incumbent.cost
    )


def _keep_incumbent(ranked: list[Row]) -> None:
    at = next((i for i, row in enumerate(ranked) if row.incumbent), None)
    if at is None or not ranked[at].ordinary:
        return
    incumbent = ranked[at]
    first = at
    while first > 0 and ranked[first - 1].tier == incumbent.tier:
        first -= 1
    ahead = ranked[first:at]
    takers = [row for row in ahead if beats(row, incumbent)]
    held_off = [row for row in ahead if not beats(row, incumbent)]
    incumbent.kept = bool(held_off)
    ranked[first : at + 1] = [*takers, incumbent, *held_off]


def lost(loser: Row, winner: Row) -> str:
    """Why the loser is behind the winner: the first thing that told them apart."""
    if loser.tier != winner.tier:
        if loser.tier in (NEAR_LIMIT, GATED):
            forecast = f"{loser.five_forecast:.0f}% of its 5-hour window forecast"
            return f"{TIERS[loser.tier]} ({forecast}) ranks after {TIERS[winner.tier]}"
        return _AFTER[loser.tier][winner.tier]
    if winner.tier == URGENT and loser.urgency_charged != winner.urgency_charged:
        return f"urgency {loser.urgency_charged:.0f} is below {winner.urgency_charged:.0f}"
    if winner.tier == GATED and loser.five_forecast != winner.five_forecast:
        return f"5-hour forecast {loser.five_forecast:.0f}% is above {winner.five_forecast:.0f}%"
    if winner.ordinary and winner.assigned and not loser.assigned:
        return f"{winner.name} is the approved pool"
    if winner.kept and loser.base < winner.base:
        gain = loser.effective - winner.effective
        if gain > INCUMBENCY_MARGIN:
            return f"{gain:.1f} better than incumbent {winner.name}, but not cheaper"
        return f"{gain:.1f} better than incumbent {winner.name} is within its margin"
    return lost_by_base(loser, winner)


_AFTER = [[f"{worse} ranks after {better}" for better in TIERS] for worse in TIERS]


def lost_by_base(loser: Row, winner: Row) -> str:
    """Which part of the common order put the loser behind."""
    if loser.effective != winner.effective:
        return f"effective surplus {loser.effective:+.1f} is below {winner.effective:+.1f}"
    if loser.inflight != winner.inflight:
        return f"{loser.inflight} in flight, {winner.name} has {winner.inflight}"
    if loser.cost != winner.cost:
        return f"cost {loser.cost:g} is above {winner.cost:g}"
    if loser.view.load.ended_unread != winner.view.load.ended_unread:
        return "more work since its reading"
    if (loser.error_share or 0.0) != (winner.error_share or 0.0):
        return f"{(loser.error_share or 0) * 100:.0f}% errors in the last hour"
    if loser.median != winner.median:
        return "slower in the last hour"
    return "equal; the name decided"
