"""Codex's meter: the ``rate_limits`` its CLI writes into session rollouts. Never spends a prompt.

The newest line by event time wins, over all sessions, because a session that was resumed appends to
an old file. Windows are known by ``window_minutes``, never by their slot (``primary`` may be the
week). Only the tails of the newest few files are read. A login by API key has no windows.
"""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from bullswarm.meters.errors import MeterError
from bullswarm.meters.windows import instant, percent, unknown_window, window_from
from bullswarm.providers.types import Account
from bullswarm.routing.types import Reading, Window

FILES = 8
"""How many of the newest rollouts are looked into."""

MAX_AGE = timedelta(days=32)
"""No window is longer than a month; what was said before that is over."""

_FIRST_BLOCK = 64 * 1024
_MAX_TAIL = 4 * 1024 * 1024
_MAX_DEPTH = 4
_MAIN = "codex"

Seen = tuple[datetime, tuple[Window, ...]]


def read_meter(account: Account, env: Mapping[str, str], now: datetime) -> Reading:
    """The newest limits that any session under this CODEX_HOME reported; ``observed_at`` is the
    time of that event, which may be long ago. Raises ``MeterError`` (missing) where no session
    reported any."""
    home = Path(account.home or env.get("CODEX_HOME") or "~/.codex").expanduser()
    newest: dict[str, Seen] = {}
    for changed, path in _newest_files(home / "sessions", now):
        main = newest.get(_MAIN)
        if main is not None and main[0].timestamp() >= changed:
            break
        for limit, seen in _last_limits(path, now).items():
            if limit not in newest or seen[0] > newest[limit][0]:
                newest[limit] = seen
    if not newest:
        raise MeterError(_why_none(home), kind="missing")
    main = newest.get(_MAIN)
    at = main[0] if main is not None else max(seen[0] for seen in newest.values())
    windows = tuple(w for key in sorted(newest) for w in newest[key][1])
    return Reading(
        pool=account.pool,
        source="live",
        observed_at=at,
        windows=windows,
        account=account.identity,
    )


def windows_from(limits: Any, at: datetime) -> tuple[Window, ...]:
    """The windows in one ``rate_limits`` object reported at ``at``; () where it is null or empty.
    ``resets_at`` is an epoch; ``resets_in_seconds``, in older versions, counts from the event. A
    limit other than the plan's own binds the model it is named after."""
    if not isinstance(limits, Mapping):
        return ()
    family = _family(limits)
    windows: list[Window] = []
    for slot in ("primary", "secondary"):
        one = limits.get(slot)
        if not isinstance(one, Mapping):
            continue
        used = percent(one.get("used_percent"))
        reset = instant(one.get("resets_at"))
        left = one.get("resets_in_seconds")
        if reset is None and isinstance(left, int | float) and not isinstance(left, bool):
            try:
                reset = at + timedelta(seconds=left)
            except (OverflowError, ValueError):
                reset = None
        minutes = one.get("window_minutes")
        if isinstance(minutes, int | float) and not isinstance(minutes, bool) and minutes > 0:
            windows.append(window_from(float(minutes), used, reset, family))
        elif used is not None:
            unknown = unknown_window(used, reset, at)
            windows.append(msgspec.structs.replace(unknown, family=family))
    return tuple(windows)


def windows_from_headers(headers: Mapping[str, str], at: datetime) -> tuple[Window, ...]:
    """The windows in the API's response headers (``x-codex-primary-used-percent`` and so on)."""
    lower = {name.lower(): value for name, value in headers.items()}
    limits: dict[str, dict[str, float]] = {}
    for slot in ("primary", "secondary"):
        for field, suffix in (
            ("used_percent", "used-percent"),
            ("window_minutes", "window-minutes"),
            ("resets_at", "reset-at"),
            ("resets_in_seconds", "reset-after-seconds"),
        ):
            try:
                number = float(lower[f"x-codex-{slot}-{suffix}"])
            except (KeyError, ValueError):
                continue
            limits.setdefault(slot, {})[field] = number
    return windows_from(limits, at)


def _limit_id(limits: Mapping[str, Any]) -> str:
    value = limits.get("limit_id")
    return value if isinstance(value, str) and value else _MAIN


def _family(limits: Mapping[str, Any]) -> str | None:
    limit = _limit_id(limits)
    if limit == _MAIN:
        return None
    name = limits.get("limit_name")
    return name if isinstance(name, str) and name else limit


def _why_none(home: Path) -> str:
    try:
        auth = msgspec.json.decode((home / "auth.json").read_bytes())
    except OSError:
        return f"no codex login in {home}: run codex login"
    except (msgspec.DecodeError, ValueError):
        return f"the codex login in {home} is damaged (no JSON)"
    if isinstance(auth, dict) and auth.get("OPENAI_API_KEY") and not auth.get("tokens"):
        return "codex is logged in by API key: billed by use, no subscription meter"
    return "no codex session has reported its limits yet"


def _newest_files(sessions: Path, now: datetime) -> list[tuple[float, str]]:
    """(time of last change, path) of the newest rollouts, newest first."""
    oldest = (now - MAX_AGE).timestamp()
    return heapq.nlargest(
        FILES, (found for found in _rollouts(str(sessions), _MAX_DEPTH) if found[0] >= oldest)
    )


def _rollouts(folder: str, depth: int) -> Iterator[tuple[float, str]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        try:
            if entry.name.startswith("rollout-") and entry.name.endswith(".jsonl"):
                yield entry.stat().st_mtime, entry.path
            elif depth > 1 and entry.is_dir(follow_symlinks=False):
                yield from _rollouts(entry.path, depth - 1)
        except OSError:
            continue


def _last_limits(path: str, now: datetime) -> dict[str, Seen]:
    """The newest reported windows of each limit in the tail of one rollout. The tail grows until
    the plan's own limit was found, to 4 MB at most; lines that make no sense are passed over."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            block = _FIRST_BLOCK
            while True:
                start = max(0, size - block)
                data = os.pread(file.fileno(), size - start, start)
                found = _scan(data, now)
                if _MAIN in found or start == 0 or block >= _MAX_TAIL:
                    return found
                block *= 4
    except OSError:
        return {}


_LINE = re.compile(rb'^.*"rate_limits".*$', re.MULTILINE)


def _scan(data: bytes, now: datetime) -> dict[str, Seen]:
    found: dict[str, Seen] = {}
    for match in _LINE.finditer(data):
        try:
            event = msgspec.json.decode(match[0])
        except (msgspec.DecodeError, ValueError):
            continue
        payload = event.get("payload") if isinstance(event, dict) else None
        if not isinstance(payload, dict) or payload.get("type") != "token_count":
            continue
        limits = payload.get("rate_limits")
        at = instant(event.get("timestamp"))
        if at is None or not isinstance(limits, dict):
            continue
        at = min(at, now)
        windows = windows_from(limits, at)
        limit = _limit_id(limits)
        if windows and (limit not in found or at >= found[limit][0]):
            found[limit] = (at, windows)
    return found
