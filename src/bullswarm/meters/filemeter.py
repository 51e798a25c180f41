"""A meter that is a JSON file: for third parties, fixtures and the demo.

``{"windows": [{"minutes": 300, "usedPct": 41, "resetsAt": "2026-01-31T09:00:00Z"}]}``, with
optional ``family`` a window and ``observedAt`` for the whole (else the file's own time).
``resetsAt`` may be an epoch; ``resetsInMinutes`` counts from ``observedAt``.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from bullswarm.meters.errors import MeterError
from bullswarm.meters.windows import instant, percent, window_from
from bullswarm.routing.types import Reading, Window

PREFIX = "file:"
_MAX_BYTES = 1_000_000


def resolve(meter: str, home: str | None) -> Path:
    """The path behind a connector's ``meter = "file:<template>"``: ``{home}`` is the account's
    home, and a relative path is relative to it."""
    template = meter.removeprefix(PREFIX).replace("{home}", home or "")
    path = Path(template).expanduser()
    return path if path.is_absolute() or home is None else Path(home) / path


def read(path: str | Path, pool: str, now: datetime, account: str | None = None) -> Reading:
    """The reading in that file. Raises ``MeterError`` (missing, damaged) with the reason."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
            changed = datetime.fromtimestamp(os.fstat(file.fileno()).st_mtime, UTC)
    except FileNotFoundError:
        raise MeterError(f"no meter file at {path}", kind="missing") from None
    except OSError as error:
        reason = f"meter file {path}: {error.strerror or error}"
        raise MeterError(reason, kind="missing") from None
    if len(data) > _MAX_BYTES:
        raise MeterError(f"meter file {path} is over {_MAX_BYTES} bytes", kind="damaged")
    try:
        payload = msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError):
        raise MeterError(f"meter file {path} is not JSON", kind="damaged") from None
    return parse(payload, pool, now, observed_at=changed, account=account, where=str(path))


def parse(
    payload: Any,
    pool: str,
    now: datetime,
    *,
    observed_at: datetime,
    account: str | None = None,
    where: str = "the meter",
) -> Reading:
    """The reading in a decoded payload of that shape. Raises ``MeterError`` (damaged)."""
    listed = payload.get("windows") if isinstance(payload, dict) else None
    if not isinstance(listed, list):
        raise MeterError(f'{where} has no "windows" list', kind="damaged")
    at = min(now, instant(payload.get("observedAt")) or observed_at)
    windows = tuple(_window(one, at, where) for one in listed)
    return Reading(pool=pool, source="live", observed_at=at, windows=windows, account=account)


def _window(one: Any, at: datetime, where: str) -> Window:
    if not isinstance(one, dict):
        raise MeterError(f"{where}: a window is not an object", kind="damaged")
    reset = instant(one.get("resetsAt"))
    left = one.get("resetsInMinutes")
    family = one.get("family")
    try:
        if reset is None and isinstance(left, int | float):
            reset = at + timedelta(minutes=left)
        return window_from(
            float(one.get("minutes", 0)),
            percent(one.get("usedPct")),
            reset,
            family if isinstance(family, str) else None,
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise MeterError(f"{where}: {error}", kind="damaged") from None
