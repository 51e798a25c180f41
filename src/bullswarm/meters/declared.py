"""A reset that the operator declared, for providers that report usage without a date. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from bullswarm.errors import UsageError
from bullswarm.meters.windows import KIND_MINUTES, add_note, describe, instant
from bullswarm.routing.types import PacingKind, Reading, Window

_WEEK = timedelta(days=7)


def setting(settings: Any, name: str) -> Any:
    """One setting of a pool, from a mapping (snake_case or camelCase keys) or from a struct; None
    where it is not set."""
    if settings is None:
        return None
    if isinstance(settings, Mapping):
        if name in settings:
            return settings[name]
        head, *rest = name.split("_")
        return settings.get(head + "".join(word.capitalize() for word in rest))
    return getattr(settings, name, None)


def shift_months(anchor: datetime, months: int) -> datetime:
    """The anchor that many calendar months on, with the anchor's own day of the month clamped to
    the length of the month reached (31 January, 28 February, 31 March)."""
    from calendar import monthrange

    index = anchor.year * 12 + anchor.month - 1 + months
    year, month = divmod(index, 12)
    last = monthrange(year, month + 1)[1]
    return anchor.replace(year=year, month=month + 1, day=min(anchor.day, last))


def roll_forward(resets_at: datetime, window: PacingKind, now: datetime) -> datetime:
    """The first reset after ``now``: the declared one, moved window by window once it has passed.
    A week is seven days of 24 hours; a month is a calendar month in UTC. A declared reset more than
    a window ahead stays as declared."""
    if resets_at > now:
        return resets_at
    if window == "weekly":
        return resets_at + _WEEK * ((now - resets_at) // _WEEK + 1)
    anchor = resets_at.astimezone(UTC)
    months = (now.year - anchor.year) * 12 + now.month - anchor.month
    rolled = shift_months(anchor, months)
    return rolled if rolled > now else shift_months(anchor, months + 1)


def window_start(resets_at: datetime, window: PacingKind, anchor: datetime) -> datetime:
    """When the window that ends at ``resets_at`` began; ``anchor`` is the reset as declared, which
    holds the day of the month."""
    if window == "weekly":
        return resets_at - _WEEK
    months = (resets_at.year - anchor.year) * 12 + resets_at.month - anchor.month
    return shift_months(anchor.astimezone(UTC), months - 1)


def declare(
    reading: Reading | None,
    settings: Any,
    now: datetime,
    *,
    pool: str | None = None,
    quota_window: PacingKind | None = None,
) -> Reading:
    """The reading with the operator's declared reset applied to its pacing window.

    ``settings`` are the pool's: ``resets_at`` (ISO 8601 or a datetime) and ``quota_window``
    ("weekly" or "monthly", else the connector's ``quota_window``). A reset that the provider
    reported always wins. A percentage read before the declared window began belongs to the one
    before it and is unknown now. Where nothing at all was read the source is ``declared``. Raises
    ``UsageError`` for a declared reset that is no time.
    """
    base = reading or Reading(pool=pool or "")
    raw = setting(settings, "resets_at")
    if raw is None:
        return base
    anchor = instant(raw)
    if anchor is None:
        raise UsageError(
            f"resetsAt of pool {base.pool!r} must be an ISO 8601 time such as "
            f"2026-01-31T09:00:00Z, not {raw!r}"
        )
    kind: PacingKind = setting(settings, "quota_window") or quota_window or "weekly"
    if kind not in ("weekly", "monthly"):
        raise UsageError(f"quotaWindow of pool {base.pool!r} must be weekly or monthly, not {kind}")
    own = next((w for w in base.windows if w.kind == kind and w.family is None), None)
    if own is not None and own.resets_at is not None and not own.reset_declared:
        return base
    rolled = roll_forward(anchor, kind, now)
    used = own.used_pct if own is not None else None
    notes: list[str] = []
    if own is not None and used is not None and base.observed_at is not None:
        # The reset that passed since is a reset all the same, whoever named it.
        began = window_start(rolled, kind, anchor)
        if base.observed_at < began <= now:
            used = None
            notes.append(f"stale: the {describe(own)} window was reset since it was read")
    window = Window(
        kind=kind,
        minutes=own.minutes if own is not None else KIND_MINUTES[kind],
        used_pct=used,
        resets_at=rolled,
        reset_declared=True,
    )
    windows = tuple(w for w in base.windows if w is not own)
    source = base.source
    if used is None and not any(w.used_pct is not None for w in windows):
        source = "declared"
    changed = msgspec.structs.replace(base, windows=(*windows, window), source=source)
    return add_note(changed, *notes)
