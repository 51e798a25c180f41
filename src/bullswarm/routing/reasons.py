"""Why a pick is the pick, in one line that names the utilization that decided it."""

from __future__ import annotations

from collections.abc import Sequence

from bullswarm.routing.rows import Row
from bullswarm.routing.tiers import BURST_BLOCK_PCT, DRAINING, GATED, NEAR_LIMIT, URGENT
from bullswarm.routing.types import Request
from bullswarm.routing.windows import describe

NAMED = 4
"""So many pools are named one by one in a sentence; the rest are counted."""


def pace(row: Row) -> str:
    """The reason of a pick by pace."""
    parts = [_surplus(row)]
    five = _five(row)
    if five:
        parts.append(five)
    if row.charge > 0.0:
        parts.append(
            f"charged {row.charge:.1f} ({row.basis}) with {row.inflight} in flight"
            if row.inflight
            else f"charged {row.charge:.1f} ({row.basis})"
        )
    why = _why(row)
    if why:
        parts.append(why)
    return f"{row.name}: {', '.join(parts)}"


def _surplus(row: Row) -> str:
    view = row.view
    pacing = view.pacing
    if view.surplus is None or pacing is None:
        if view.pool.pacing is None:
            return "unmetered, ranks as surplus 0"
        used = pacing.used_pct if pacing is not None else None
        if used is None:
            return "no reading of its pacing window, ranks as surplus 0"
        return f"{used:.0f}% used but the reset is unknown, ranks as surplus 0"
    return (
        f"surplus {view.surplus:+.1f} of its {describe(pacing)} window "
        f"(used {pacing.used_pct:.0f}%, elapsed {view.elapsed:.0f}%)"
    )


def _five(row: Row) -> str:
    five = row.view.five
    if five is None or five.used_pct is None or row.five_forecast is None:
        return ""
    return f"5h {five.used_pct:.0f}%->{row.five_forecast:.0f}%"


def _why(row: Row) -> str:
    if row.ask.pin is not None:
        state = ""
        if row.gated:
            state = f" although forecast-gated at {row.five_forecast:.0f}% of its 5-hour window"
        elif row.near:
            state = f" although near the limit at {row.five_forecast:.0f}% of its 5-hour window"
        return f"strict pin{state}"
    if row.tier == GATED:
        return (
            f"least loaded: every eligible pool is forecast at {BURST_BLOCK_PCT:.0f}% or more of "
            "its 5-hour window"
        )
    if row.is_caller:
        return "the caller, since nothing else is eligible"
    words: list[str] = []
    if row.tier == NEAR_LIMIT:
        words.append("near its 5-hour limit, but no eligible pool is below the line")
    elif row.tier in (URGENT, DRAINING) and row.view.pacing is not None:
        what = "urgent" if row.tier == URGENT else "draining"
        left = _left(row)
        number = f", urgency {row.urgency:.0f}" if row.urgency is not None else ""
        words.append(f"{what}: the {describe(row.view.pacing)} window ends in {left}{number}")
    if row.ordinary and row.assigned:
        words.append(f"approved for {row.ask.assigned_key}")
    elif row.kept:
        words.append("incumbent kept: no challenger is over 10 points better and cheaper")
    return ", ".join(words)


def _left(row: Row) -> str:
    pacing = row.view.pacing
    if pacing is None or pacing.resets_at is None:
        return "?"
    minutes = int((pacing.resets_at - row.ask.now).total_seconds() // 60)
    days, rest = divmod(minutes, 1440)
    hours, minutes = divmod(rest, 60)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes:02d}" if hours else f"{minutes} min"


def gated_note(row: Row) -> str:
    """The note of a pick among pools that are all gated."""
    return (
        f"every eligible pool is forecast at {BURST_BLOCK_PCT:.0f}% or more of its 5-hour window; "
        f"{row.name} is the least loaded at {row.five_forecast:.0f}%"
    )


def nobody(rows: Sequence[Row], request: Request) -> str:
    """Why no pool can take the request."""
    if not rows:
        return "no pool is known"
    if request.pin is not None:
        pinned = [row for row in rows if row.ask.pin is not None and row.name in row.ask.pin]
        if not pinned:
            return f"no pool is named {request.pin}"
        if len(pinned) == 1:
            return f"pinned pool {pinned[0].name} is not eligible: {pinned[0].why_not}"
        rows = pinned
    ordered = sorted(rows, key=lambda row: (not row.away, row.name))
    words = [f"{row.name} {row.why_not}" for row in ordered[:NAMED]]
    more = len(rows) - len(words)
    if more > 0:
        words.append(f"and {more} more")
    return f"no pool can take {request.lane} work: {'; '.join(words)}"
