"""Readings that cost nothing: what a worker's own stream said about its pool's windows. Pure."""

from __future__ import annotations

import msgspec

from bullswarm.meters.clean import clean, find
from bullswarm.routing.types import Reading, Window


def merge(stored: Reading | None, seen: Reading) -> Reading:
    """The stored reading brought up to date by what a stream said at ``seen.observed_at``.

    A window with a percentage replaces the stored one. A window without one (a status and a reset,
    no number) moves nothing but a reset time. Windows that the stream did not name stay. The
    reading only gets its new time when every window in it was read anew: otherwise what was not
    would look fresher than it is. Something older than what is stored changes nothing.
    """
    if stored is None or not stored.windows or stored.account != seen.account:
        if any(w.used_pct is not None for w in seen.windows):
            return seen
        return msgspec.structs.replace(seen, observed_at=None)
    at = seen.observed_at
    if at is None or (stored.observed_at is not None and at < stored.observed_at):
        return stored
    base = clean(stored, at)
    windows = list(base.windows)
    for window in seen.windows:
        old = find(windows, window)
        if old is None:
            windows.append(window)
        else:
            windows[windows.index(old)] = _moved(old, window)
    if not windows:
        return stored
    fresh = all(
        (read := find(seen.windows, w)) is not None and read.used_pct is not None for w in windows
    )
    return msgspec.structs.replace(
        base,
        source="live",
        windows=tuple(windows),
        observed_at=at if fresh else stored.observed_at,
        note=seen.note if fresh else base.note,
    )


def _moved(old: Window, new: Window) -> Window:
    if new.used_pct is not None:
        return new
    if new.resets_at is None:
        return old
    return msgspec.structs.replace(old, resets_at=new.resets_at, reset_declared=False)
