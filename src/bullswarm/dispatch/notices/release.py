"""When a fresh reading ends a quota bench early: providers do give quota back before the time they
named. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from bullswarm.routing.types import Quarantine, Reading, Window

NEAR_LIMIT_PCT = 75.0
"""Without an earlier reading to compare with, every window must be below this."""
BLOCK_PCT = 90.0
"""A window at or above this has no room, whatever it was before."""
DROP_PCT = 5.0
"""A smaller fall may be the meter's rounding."""
MOVED = timedelta(minutes=2)
"""Resets this close together are one."""
NEAR = timedelta(minutes=5)


def released_by(
    quarantine: Quarantine,
    reading: Reading | None,
    now: datetime,
    previous: Reading | None = None,
) -> str | None:
    """Why this reading ends the bench now, in words, or None where it doesn't.

    Only a quota bench that is still on, by a live reading observed after it began. Every window
    it can be about must be known and below 90%, and the fullest must show a change: lower than in
    ``previous`` (the reading from before or from when the bench began), or with a later reset;
    without ``previous``, all are below 75%. A bench that a meter had contradicted when it began
    is not lifted by the same meter: it is minutes long. A dead credential never heals by a
    reading.
    """
    if quarantine.kind != "quota" or quarantine.source == "contradicted":
        return None
    if now >= quarantine.until or reading is None or reading.source != "live":
        return None
    at = reading.observed_at
    began = quarantine.since or now - NEAR
    if at is None or at <= began or at > now + NEAR:
        return None
    windows = [w for w in reading.windows if w.family == quarantine.family]
    if not windows or any(w.used_pct is None for w in windows):
        return None
    fullest = max(windows, key=lambda w: w.used_pct or 0.0)
    used = fullest.used_pct or 0.0
    if used >= BLOCK_PCT:
        return None
    before = _before(windows, previous)
    if before is None:
        if used >= NEAR_LIMIT_PCT:
            return None
        return f"{_read(at)} {used:.0f}% of the {_name(fullest)} window: it has room again"
    # The window that was fullest is the one that had most likely run out.
    window, old = max(before, key=lambda pair: pair[1].used_pct or 0.0)
    if not _moved(window, old, at):
        return None
    was = f" (was {old.used_pct:.0f}%)" if old.used_pct is not None else ""
    return (
        f"{_read(at)} {window.used_pct:.0f}% of the {_name(window)} window{was}: it has room again"
    )


def _before(windows: list[Window], previous: Reading | None) -> list[tuple[Window, Window]] | None:
    """Each window with what it was; None where nothing can be compared."""
    if previous is None:
        return None
    pairs = [
        (new, old)
        for new in windows
        for old in previous.windows
        if (old.kind, old.family) == (new.kind, new.family)
    ]
    return pairs or None


def _moved(new: Window, old: Window, at: datetime) -> bool:
    if old.used_pct is not None and (new.used_pct or 0.0) <= old.used_pct - DROP_PCT:
        return True
    if old.resets_at is None:
        return False
    if new.resets_at is None:
        return old.resets_at <= at
    return new.resets_at > old.resets_at + MOVED


def _read(at: datetime) -> str:
    return f"the meter, read at {at:%Y-%m-%d %H:%M} UTC, shows"


def _name(window: Window) -> str:
    kind = {"five_hour": "5-hour", "other": "usage"}.get(window.kind, window.kind)
    return f"{kind} {window.family}" if window.family else kind
