"""The three simple strategies: same filters, a quota ceiling, and one question each.

``prefer-order`` walks the list, ``most-quota`` takes the most headroom, ``lowest-latency`` the
fastest. The ceiling looks at the fullest window. A pool without a percentage is unknown, never
empty: it passes the ceiling, and ranks by load after the known ones where headroom is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

from bullswarm.routing.pace import lost_by_base
from bullswarm.routing.rows import Row
from bullswarm.routing.types import Policy, Request


def preferred(policy: Policy, request: Request) -> tuple[str, ...]:
    """The preference list in force: the domain's where it has one, else the policy's."""
    if request.domain is not None and request.domain in policy.domains:
        return tuple(policy.domains[request.domain])
    return tuple(policy.prefer)


def wants_fast(policy: Policy) -> bool:
    """Whether a fast model is chosen where none was asked for."""
    if policy.latency is not None:
        return policy.latency == "fast"
    return policy.strategy == "lowest-latency"


def over_ceiling(row: Row, ceiling: float) -> bool:
    """Whether the fullest known window is above the ceiling (percent)."""
    used = row.view.worst_used
    return used is not None and used > ceiling


def headroom(row: Row) -> float | None:
    """What is left of the fullest window, less the charge for load; None where unknown."""
    used = row.view.worst_used
    return None if used is None else round(100.0 - used - row.charge, 6)


def order(rows: Sequence[Row], policy: Policy, request: Request) -> tuple[list[Row], str | None]:
    """Eligible rows, best first, and a note where every one of them is over its ceiling. The caller
    comes after every other row under its ceiling, as it does under ``pace``."""
    places = {token: at for at, token in reversed(list(enumerate(preferred(policy, request))))}
    last = len(places)

    def place(row: Row) -> int:
        # A provider's first pool bears its name: a pool that is named itself stands where it is.
        own = places.get(row.name)
        return own if own is not None else places.get(row.view.pool.provider, last)

    ceiling = policy.quota_ceiling
    pinned = request.pin is not None

    def away(row: Row) -> bool:
        return row.is_caller and not pinned

    if rows and all(over_ceiling(row, ceiling) for row in rows):
        ranked = sorted(rows, key=lambda r: (away(r), place(r), *_own(policy, r), *r.base))
        first = ranked[0]
        what = "the first preference" if place(first) < last else "the best of them"
        note = (
            f"every candidate is over the {ceiling:.0f}% quota ceiling; "
            f"{first.name} runs anyway as {what}"
        )
        return ranked, note

    def key(row: Row) -> tuple[Any, ...]:
        gate = 2 if over_ceiling(row, ceiling) else 1 if away(row) else 0
        if policy.strategy == "prefer-order":
            return (gate, place(row), *row.base)
        return (gate, *_own(policy, row), place(row), *row.base)

    return sorted(rows, key=key), None


def _own(policy: Policy, row: Row) -> tuple[float, ...]:
    if policy.strategy == "most-quota":
        room = headroom(row)
        return (0.0, -room) if room is not None else (1.0, float(row.inflight))
    if policy.strategy == "lowest-latency":
        return (0.0 if row.latency == "fast" else 1.0, inf if row.median is None else row.median)
    return ()


def lost(loser: Row, winner: Row, policy: Policy, request: Request) -> str:
    """Why the loser is behind the winner under a simple strategy."""
    ceiling = policy.quota_ceiling
    if over_ceiling(loser, ceiling) and not over_ceiling(winner, ceiling):
        return f"{loser.view.worst_used:.0f}% used is over the {ceiling:.0f}% ceiling"
    if loser.is_caller and not winner.is_caller:
        return "the caller comes after everybody else"
    if policy.strategy == "most-quota":
        mine, best = headroom(loser), headroom(winner)
        if mine is None and best is not None:
            return "no reading ranks after a known headroom"
        if mine is not None and best is not None and mine != best:
            return f"headroom {mine:.1f} is below {best:.1f}"
    elif policy.strategy == "lowest-latency":
        if loser.latency != winner.latency:
            return f"{loser.latency or 'unknown'} model, {winner.name} has a {winner.latency} one"
        if loser.median != winner.median:
            return "slower in the last hour" if loser.median is not None else "latency not measured"
    elif preferred(policy, request):
        return f"later in the preference than {winner.name}"
    return lost_by_base(loser, winner)


def reason(row: Row, policy: Policy, request: Request, note: str | None) -> str:
    """One line that names the number that decided."""
    used = row.view.worst_used
    known = "its reading is unknown" if used is None else f"{used:.0f}% of its fullest window used"
    if note is not None:
        return f"{row.name}: {known}; {note}"
    load = f", {row.inflight} in flight" if row.inflight else ""
    if policy.strategy == "most-quota":
        room = headroom(row)
        if room is None:
            return f"{row.name}: no candidate has a known headroom, least load{load or ' (idle)'}"
        charged = f", charged {row.charge:.1f} for load" if row.charge else ""
        return f"{row.name}: most headroom, {room:.1f} points left ({known}{charged})"
    if policy.strategy == "lowest-latency":
        model = f" {row.model.name}" if row.model is not None else ""
        speed = "not measured here yet" if row.median is None else f"median {row.median:.0f} s"
        return f"{row.name}: {row.latency or 'unknown'} model{model}, {speed} ({known})"
    wanted = preferred(policy, request)
    named = row.name in wanted or row.view.pool.provider in wanted
    what = "first in the preference that passes" if named else "no preferred pool can take it"
    if not wanted:
        what = "no preference given, most effective surplus"
    ceiling = "passes the" if used is None else "under the"
    return f"{row.name}: {what}, {known}, {ceiling} {policy.quota_ceiling:.0f}% ceiling{load}"
