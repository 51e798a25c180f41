"""Named zones and wall-clock times, by the zone's own rules of the day in question."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

_OFFSET = re.compile(r"(?:utc|gmt)? ?([+-])(\d{1,2})(?::?([0-5]\d))?", re.ASCII | re.IGNORECASE)
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}", re.ASCII)
_NOT_PLACES = frozenset({"factory", "localtime", "posixrules"})
_LOCAL = re.compile(r"(?:your )?(?:local|your)(?: time)?", re.ASCII | re.IGNORECASE)


@lru_cache(maxsize=1)
def _by_lower() -> dict[str, str]:
    from zoneinfo import available_timezones

    return {key.lower(): key for key in available_timezones()}


@lru_cache(maxsize=256)
def find_zone(name: str) -> tzinfo | None:
    """The zone a provider named, or None where no such zone is known.

    Takes IANA keys in any case ("Asia/Hong_Kong", also with a space for the underscore), "UTC",
    "GMT", "Z", and offsets ("UTC+2", "+05:30"). ``Etc/GMT+5`` is five hours *behind* UTC, as the
    zone database has it; "GMT+5" is ahead, as people write it. Abbreviations that are not in the
    zone database are ambiguous, so they are unknown.
    """
    text = re.sub(r"\s*/\s*", "/", name.strip())
    if text.lower() in ("utc", "gmt", "z", "utc time"):
        return UTC
    offset = _OFFSET.fullmatch(text)
    if offset:
        sign, hours, minutes = offset[1], int(offset[2]), int(offset[3] or 0)
        if hours > 14:
            return None
        delta = timedelta(hours=hours, minutes=minutes)
        return timezone(delta if sign == "+" else -delta)
    key = text.replace(" ", "_")
    if not _KEY.fullmatch(key) or key.lower() in _NOT_PLACES:
        return None
    if key.lower().startswith(("posix/", "right/")):
        return None
    with suppress(KeyError, OSError, ValueError):
        return ZoneInfo(key)
    known = _by_lower().get(key.lower())
    return ZoneInfo(known) if known else None


def means_local(name: str) -> bool:
    """True for "local time" and "your time"."""
    return _LOCAL.fullmatch(name.strip()) is not None


def wall_now(now: datetime, zone: tzinfo | None) -> datetime:
    """The wall clock in ``zone`` (None: this machine's zone) at ``now``, without a zone."""
    return now.astimezone(zone).replace(tzinfo=None)


def instants(day: date, at: time, zone: tzinfo | None) -> tuple[datetime, ...]:
    """The UTC instants at which a wall clock in ``zone`` shows ``at`` on ``day``.

    Two on the night that an hour repeats. A time in the hour that is skipped gives the instant it
    would have been by the rules before the change, as calendars do.
    """
    first = _utc(datetime.combine(day, at), zone)
    second = _utc(datetime.combine(day, at).replace(fold=1), zone)
    return (first, second) if second > first else (first,)


def _utc(wall: datetime, zone: tzinfo | None) -> datetime:
    # A datetime without a zone converts by the machine's own rules for that day.
    return (wall if zone is None else wall.replace(tzinfo=zone)).astimezone(UTC)
