"""Windows of a pool: which still hold, how much of each is over, which paces, which gates.

Lengths are minutes, shares are percent points (0..100), times aware UTC.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from bullswarm.routing.types import PacingKind, Reading, Window, WindowKind

WORDS: dict[WindowKind, str] = {
    "five_hour": "5-hour",
    "daily": "daily",
    "weekly": "weekly",
    "monthly": "monthly",
    "other": "usage",
}

LEAD_SHARE: dict[WindowKind, float] = {"weekly": 1 / 7, "monthly": 1 / 10}
"""A pacing window ends soon within this share of its length (routing rules)."""


_DAYS_BEFORE = (31, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30)
"""Days of the month before January, before February, ..."""


def month_days(end: datetime) -> int:
    """The days of the calendar month that ends at ``end``; one that ends on the 31st starts at the
    last day of a shorter month."""
    before = _DAYS_BEFORE[end.month - 1]
    if end.month == 3 and end.year % 4 == 0 and (end.year % 100 != 0 or end.year % 400 == 0):
        before = 29
    return max(before, end.day)


def length_minutes(window: Window) -> float:
    """The true length of a window (> 0): of a monthly one, that of its calendar month."""
    reset = window.resets_at
    if window.kind == "monthly" and reset is not None:
        return month_days(reset) * 1440.0
    return window.minutes if window.minutes > 0 else 1.0


def holds(window: Window, observed_at: datetime | None, now: datetime) -> bool:
    """Whether the window that was read is still running: a reading whose reset has passed is not a
    reading, and neither is one older than the whole window."""
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


Sorted = tuple[Window | None, Window | None, tuple[Window, ...], tuple[Window, ...], float | None]
"""``(pacing, five, full, family_full, worst_used)``: the windows of a pool by what they do.

``pacing`` is the window of the declared kind, else the other subscription window where the provider
reports only that one; the 5-hour window, ``five``, never paces. ``full`` bind the whole
pool and are full, ``family_full`` bind one model family. ``worst_used`` is the highest known
percentage of those that bind the whole pool.
"""

NOTHING: Sorted = (None, None, (), (), None)


def sort_out(
    windows: Iterable[Window], declared: PacingKind | None, reserve_pct: float = 0.0
) -> Sorted:
    """Tell a pool's running windows apart, by length and never by slot.

    A window is full at 100%; the pacing window at 100 less what is kept in reserve (percent). Of
    two windows of one kind the fuller counts. ``declared`` None means that nothing paces.
    """
    pacing: Window | None = None
    other: Window | None = None
    five: Window | None = None
    full: tuple[Window, ...] = ()
    family_full: tuple[Window, ...] = ()
    worst = -1.0
    for window in windows:
        used = window.used_pct
        if window.family is not None:
            if used is not None and used >= 100.0:
                family_full = (*family_full, window)
            continue
        kind = window.kind
        if kind == "five_hour":
            five = window if five is None else _fuller(five, window)
        elif kind == declared:
            pacing = window if pacing is None else _fuller(pacing, window)
        elif kind == "weekly" or kind == "monthly":
            other = window if other is None else _fuller(other, window)
        if used is not None:
            if used > worst:
                worst = used
            if used >= 100.0:
                full = (*full, window)
    if pacing is None and declared is not None:
        pacing = other
    if reserve_pct > 0.0 and pacing is not None:
        used = pacing.used_pct
        if used is not None and 100.0 - reserve_pct <= used < 100.0:
            full = (*full, pacing)
    return pacing, five, full, family_full, worst if worst >= 0.0 else None


def describe(window: Window) -> str:
    """A window in words: "5-hour", "weekly", "weekly opus"."""
    word = WORDS[window.kind]
    return f"{word} {window.family}" if window.family else word


def _fuller(one: Window, other: Window) -> Window:
    return max(one, other, key=_fullness)


def _fullness(window: Window) -> tuple[float, float]:
    used = window.used_pct
    reset = window.resets_at.timestamp() if window.resets_at is not None else 0.0
    return (-1.0 if used is None else used, reset)
