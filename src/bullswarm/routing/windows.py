"""Windows of a pool: which still hold, how much of each is over, which paces, which gates.

Lengths are minutes, shares are percent points (0..100), times aware UTC.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from bullswarm.routing.types import PacingKind, Rate, Reading, Window, WindowKind

WORDS: dict[WindowKind, str] = {
    "five_hour": "5-hour",
    "daily": "daily",
    "weekly": "weekly",
    "monthly": "monthly",
    "other": "usage",
}

LEAD_SHARE: dict[WindowKind, float] = {"weekly": 1 / 7, "monthly": 1 / 10}
"""A pacing window ends soon within this share of its length (routing rules)."""


def month_before(end: datetime) -> datetime:
    """The start of the calendar month that ends at ``end``; the 31st starts at the last day of a
    shorter month (design)."""
    year, month = (end.year - 1, 12) if end.month == 1 else (end.year, end.month - 1)
    return end.replace(year=year, month=month, day=min(end.day, monthrange(year, month)[1]))


def length_minutes(window: Window) -> float:
    """The true length of a window (> 0): of a monthly one, that of its calendar month."""
    reset = window.resets_at
    if window.kind == "monthly" and reset is not None and reset.year > 1:
        return (reset - month_before(reset)).total_seconds() / 60.0
    return window.minutes if window.minutes > 0 else 1.0


def minutes_left(window: Window, now: datetime) -> float | None:
    """Minutes until the reset; None where it is unknown."""
    if window.resets_at is None:
        return None
    return (window.resets_at - now).total_seconds() / 60.0


def elapsed_pct(window: Window, now: datetime) -> float | None:
    """``100 * (1 - left / length)``, clamped to 0..100; None where the reset is unknown."""
    left = minutes_left(window, now)
    if left is None:
        return None
    share = 100.0 * (1.0 - left / length_minutes(window))
    return 0.0 if share < 0.0 else 100.0 if share > 100.0 else share


def holds(window: Window, observed_at: datetime | None, now: datetime) -> bool:
    """Whether the window that was read is still running: a reading whose reset has passed is not a
    reading, and neither is one older than the whole window (design)."""
    if window.resets_at is not None:
        return window.resets_at > now
    if observed_at is None:
        return True
    return observed_at + timedelta(minutes=window.minutes) > now


def running(reading: Reading | None, now: datetime) -> tuple[Window, ...]:
    """The windows of a reading that still hold."""
    if reading is None or not reading.windows:
        return ()
    for window in reading.windows:
        reset = window.resets_at
        if reset is None or reset <= now:
            seen = reading.observed_at
            return tuple([w for w in reading.windows if holds(w, seen, now)])
    return reading.windows


def pick_window(windows: Iterable[Window], kind: WindowKind) -> Window | None:
    """The window of that kind that binds the whole pool. Of two, the one that is fuller; one with
    a known percentage goes before an unknown one."""
    best: Window | None = None
    for window in windows:
        if window.kind != kind or window.family is not None:
            continue
        if best is None or _fullness(window) > _fullness(best):
            best = window
    return best


def pacing_window(windows: Sequence[Window], declared: PacingKind | None) -> Window | None:
    """The window that paces: the declared kind, else the other subscription window where the
    provider reports only that one. The 5-hour window never paces (doctrine)."""
    if declared is None:
        return None
    found = pick_window(windows, declared)
    if found is not None or not windows:
        return found
    return pick_window(windows, "monthly" if declared == "weekly" else "weekly")


def rate_of(rates: Iterable[Rate], window: Window | None) -> float | None:
    """Points per worker-minute of that window; None below five attributable minutes."""
    if window is None:
        return None
    kind = window.kind
    for rate in rates:
        if rate.kind == kind and rate.family is None:
            return rate.per_minute
    return None


def describe(window: Window) -> str:
    """A window in words: "5-hour", "weekly", "weekly opus"."""
    word = WORDS[window.kind]
    return f"{word} {window.family}" if window.family else word


def _fullness(window: Window) -> tuple[float, float]:
    used = window.used_pct
    reset = window.resets_at.timestamp() if window.resets_at is not None else 0.0
    return (-1.0 if used is None else used, reset)
