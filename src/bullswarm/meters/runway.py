"""Runway: when a window runs dry at its recent burn, against when it resets. Pure.

A linear pace compares with the whole window and hides a burst; this looks at the last stretch only.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from bullswarm.meters.clean import find
from bullswarm.meters.windows import same_reset
from bullswarm.routing.types import Reading, Value, Window, WindowKind

LOOKBACK_MINUTES: dict[WindowKind, float] = {
    "five_hour": 60.0,
    "daily": 240.0,
    "weekly": 1440.0,
    "monthly": 3 * 1440.0,
}
"""How far back "recent" goes, in minutes, by kind of window; a fifth of any other window."""

MIN_SPAN_MINUTES = 5.0
"""Readings closer together than this say nothing about a burn."""


class Runway(Value, frozen=True, kw_only=True):
    """One window's runway. ``burn_per_hour`` is in percentage points, None where it is not known,
    0 where nothing is being spent. ``dry_at`` is None where no burn is known or nothing is spent.
    ``dry_first``: it runs dry before it resets."""

    kind: WindowKind
    family: str | None = None
    used_pct: float | None = None
    burn_per_hour: float | None = None
    dry_at: datetime | None = None
    resets_at: datetime | None = None
    dry_first: bool = False


def runway(
    reading: Reading | None, history: Sequence[Reading], now: datetime
) -> tuple[Runway, ...]:
    """The runway of each window of a current reading (cleaned: no passed resets), from the raw
    readings of the same pool before it, in any order."""
    if reading is None:
        return ()
    points = [*history]
    if reading.observed_at is not None and reading not in points:
        points.append(reading)
    points = [
        p
        for p in points
        if p.observed_at is not None and p.observed_at <= now and p.account == reading.account
    ]
    points.sort(key=lambda p: p.observed_at or now)
    return tuple(_one(window, points, now) for window in reading.windows)


def _one(window: Window, points: Sequence[Reading], now: datetime) -> Runway:
    burn = recent_burn(window, points, now)
    dry: datetime | None = None
    used = window.used_pct
    if used is not None and used >= 100.0:
        dry = now
    elif used is not None and burn is not None and burn > 0:
        read_at = max((p.observed_at for p in points if p.observed_at is not None), default=now)
        hours = (100.0 - used) / burn
        try:
            dry = max(now, read_at + timedelta(hours=hours))
        except OverflowError:
            dry = None
    return Runway(
        kind=window.kind,
        family=window.family,
        used_pct=used,
        burn_per_hour=burn,
        dry_at=dry,
        resets_at=window.resets_at,
        dry_first=dry is not None and (window.resets_at is None or dry < window.resets_at),
    )


def recent_burn(window: Window, points: Sequence[Reading], now: datetime) -> float | None:
    """Percentage points an hour over the recent stretch of the running window; None with fewer than
    two readings in it that are five minutes apart. A counter that went down or another reset ends
    the stretch. ``points``: oldest first."""
    back = LOOKBACK_MINUTES.get(window.kind, window.minutes / 5)
    since = now - timedelta(minutes=back)
    newest: tuple[datetime, float] | None = None
    oldest: tuple[datetime, float] | None = None
    for point in reversed(points):
        seen = find(point.windows, window)
        if seen is None or seen.used_pct is None or point.observed_at is None:
            continue
        if not same_reset(seen.resets_at, window.resets_at):
            break
        here = (point.observed_at, seen.used_pct)
        if newest is None or oldest is None:
            newest = oldest = here
        elif seen.used_pct > oldest[1]:
            break
        elif point.observed_at >= since or oldest is newest:
            # One point before the stretch anchors it, so that a sparse meter still has a slope.
            oldest = here
        if point.observed_at < since:
            break
    if newest is None or oldest is None:
        return None
    span = (newest[0] - oldest[0]).total_seconds() / 60.0
    if span < MIN_SPAN_MINUTES:
        return None
    return (newest[1] - oldest[1]) / span * 60.0
