"""What of a reading still holds: passed resets, sudden drops, anchors that keep moving. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from bullswarm.meters.windows import RESET_TOLERANCE, add_note, describe, same_reset
from bullswarm.routing.types import Reading, Window

SUSPICIOUS_DROP_PCT = 10.0
"""A fall of this many points before the window's reset needs a second reading that agrees."""

SLIDES_TO_FLAG = 2
"""This many early moves of a reset within one window length are a sliding anchor; one is a
provider that reset early."""

_UNSTARTED_SLACK = timedelta(minutes=10)


def _stamp(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M} UTC"


def passed(window: Window, observed_at: datetime | None, now: datetime) -> bool:
    """Whether the window that was read is over. Without a reset, a reading older than the whole
    window can't be about the running one."""
    if window.resets_at is not None:
        return window.resets_at <= now
    if observed_at is None:
        return False
    return observed_at + timedelta(minutes=window.minutes) <= now


def clean(reading: Reading, now: datetime) -> Reading:
    """The reading without the windows whose reset has passed: a reading whose reset has passed is
    not a reading. The note names each one dropped. Where nothing is left the source is ``none``:
    the pool is unknown, not at 0.
    """
    gone = [w for w in reading.windows if passed(w, reading.observed_at, now)]
    if not gone:
        return reading
    notes = [
        f"stale: the {describe(w)} window "
        + (f"reset at {_stamp(w.resets_at)}" if w.resets_at else "is over")
        + " and has not been read since"
        for w in gone
    ]
    kept = tuple(w for w in reading.windows if w not in gone)
    left = msgspec.structs.replace(reading, windows=kept)
    if not kept:
        left = msgspec.structs.replace(left, source="none", observed_at=None)
    return add_note(left, *notes)


def find(windows: Sequence[Window], like: Window) -> Window | None:
    """The window of the same kind and family."""
    for window in windows:
        if window.kind == like.kind and window.family == like.family:
            return window
    return None


def _last_seen(history: Sequence[Reading], like: Window) -> tuple[Reading, Window] | None:
    for point in reversed(history):
        window = find(point.windows, like)
        if window is not None and window.used_pct is not None:
            return point, window
    return None


def settle(reading: Reading, accepted: Reading | None, history: Sequence[Reading]) -> Reading:
    """What to believe of a new reading, given the last one believed and the raw readings before
    this one (oldest first, same account).

    A fall of ``SUSPICIOUS_DROP_PCT`` or more before the reset that was known is held: the window
    keeps its old numbers, and the note says so, until a second reading agrees (the last raw reading
    had fallen too and names the same reset). Then it is accepted whatever its value, 0 included.
    """
    if accepted is None or reading.observed_at is None or accepted.account != reading.account:
        return reading
    windows: list[Window] = []
    notes: list[str] = []
    for window in reading.windows:
        old = find(accepted.windows, window)
        if old is None or not _suspicious(window, old, reading.observed_at):
            windows.append(window)
            continue
        seen = _last_seen(history, window)
        if seen is not None and _agrees(seen, window, old, reading.observed_at):
            windows.append(window)
            notes.append(f"the {describe(window)} window was reset early")
            continue
        windows.append(old)
        notes.append(
            f"the {describe(window)} window fell from {old.used_pct:.0f}% to "
            f"{window.used_pct:.0f}% before its reset: unconfirmed until a second reading agrees"
        )
    return add_note(msgspec.structs.replace(reading, windows=tuple(windows)), *notes)


def _suspicious(new: Window, old: Window, observed_at: datetime) -> bool:
    if new.used_pct is None or old.used_pct is None or old.resets_at is None:
        return False
    if old.reset_declared or old.resets_at <= observed_at:
        return False
    return old.used_pct - new.used_pct >= SUSPICIOUS_DROP_PCT


def _agrees(seen: tuple[Reading, Window], new: Window, old: Window, observed_at: datetime) -> bool:
    point, before = seen
    if point.observed_at is None or point.observed_at >= observed_at:
        return False
    if before.used_pct is None or old.used_pct is None:
        return False
    return old.used_pct - before.used_pct >= SUSPICIOUS_DROP_PCT and same_reset(
        before.resets_at, new.resets_at
    )


def slides(history: Sequence[Reading], like: Window) -> int:
    """How often this window's reset moved forward by more than the tolerance before it had passed,
    within the last window length of ``history`` (oldest first). A window that was never used and
    whose reset is always one length away has not started: it does not count."""
    seen: list[tuple[datetime, Window]] = []
    for point in history:
        window = find(point.windows, like)
        if window is not None and window.resets_at is not None and point.observed_at is not None:
            seen.append((point.observed_at, window))
    if not seen:
        return 0
    since = seen[-1][0] - timedelta(minutes=like.minutes)
    moves = 0
    anchor: datetime | None = None
    for at, window in seen:
        reset = window.resets_at
        if reset is None or at < since:
            continue
        if _unstarted(window, at):
            anchor = None
            continue
        if anchor is None or anchor <= at:
            anchor = reset
        elif reset - anchor > RESET_TOLERANCE:
            moves += 1
            anchor = reset
    return moves


def _unstarted(window: Window, at: datetime) -> bool:
    if window.used_pct is None or window.used_pct > 0 or window.resets_at is None:
        return False
    return window.resets_at - at >= timedelta(minutes=window.minutes) - _UNSTARTED_SLACK


def flag_sliding(reading: Reading, history: Sequence[Reading]) -> Reading:
    """The reading with the reset of each sliding window taken away and said in the note, so that
    no pace is computed on a jumping anchor. ``history`` includes this reading, oldest first."""
    windows: list[Window] = []
    notes: list[str] = []
    for window in reading.windows:
        if window.resets_at is not None and slides(history, window) >= SLIDES_TO_FLAG:
            notes.append(
                f"the {describe(window)} reset keeps moving forward (now "
                f"{_stamp(window.resets_at)}): no pace is taken from it"
            )
            window = msgspec.structs.replace(window, resets_at=None)
        windows.append(window)
    if not notes:
        return reading
    return add_note(msgspec.structs.replace(reading, windows=tuple(windows)), *notes)
