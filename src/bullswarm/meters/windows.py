"""Windows from what a provider says: known by their length, never by the slot they arrive in.

Everything here is pure. Percentages are 0..100 points, lengths are minutes, times aware UTC.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import msgspec

from bullswarm.routing.types import Reading, Window, WindowKind

FIVE_HOUR_MINUTES = 300.0
DAY_MINUTES = 1440.0
WEEK_MINUTES = 10080.0
MONTH_MINUTES = 43200.0
"""Advisory length of a monthly window (30 days): its true length is that of the calendar month."""

RESET_TOLERANCE = timedelta(minutes=2)
"""Two resets this close are one: providers recompute the instant at each read."""

_SLACK = 0.05
_MONTH_DAYS = (28, 31)

WINDOW_WORDS: dict[WindowKind, str] = {
    "five_hour": "5-hour",
    "daily": "daily",
    "weekly": "weekly",
    "monthly": "monthly",
    "other": "usage",
}
KIND_MINUTES: dict[WindowKind, float] = {
    "five_hour": FIVE_HOUR_MINUTES,
    "daily": DAY_MINUTES,
    "weekly": WEEK_MINUTES,
    "monthly": MONTH_MINUTES,
}


def kind_of(minutes: float) -> WindowKind:
    """The kind of a window of that length (minutes, > 0), with 5% slack for providers that report
    299 or 10079. Only about 300 minutes is the burst window; whatever is longer than a day never
    is. 28 to 31 days are a month. Anything else is ``other``."""

    def near(length: float) -> bool:
        return abs(minutes - length) <= length * _SLACK

    if near(FIVE_HOUR_MINUTES):
        return "five_hour"
    if near(DAY_MINUTES):
        return "daily"
    if near(WEEK_MINUTES):
        return "weekly"
    shortest, longest = _MONTH_DAYS
    if shortest * DAY_MINUTES - 60 <= minutes <= longest * DAY_MINUTES + 60:
        return "monthly"
    return "other"


def percent(value: object) -> float | None:
    """A percentage as a provider gave it, clamped to 0..100; None for anything that is no number.
    Unknown stays unknown: it is never turned into 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number = float(value)
    if not math.isfinite(number):
        return None
    return min(100.0, max(0.0, number))


def instant(value: object) -> datetime | None:
    """An aware UTC time from an ISO string (naive means UTC), an epoch in seconds or milliseconds,
    or a datetime; None for anything else, for 0 and for what is out of range."""
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        number = float(value)
        if not math.isfinite(number) or number <= 0:
            return None
        if number > 1e11:
            number /= 1000.0
        try:
            return datetime.fromtimestamp(number, UTC)
        except (OverflowError, ValueError, OSError):
            return None
    if isinstance(value, str):
        try:
            return instant(datetime.fromisoformat(value.strip()))
        except (ValueError, OverflowError):
            return None
    return None


def window_from(
    minutes: float,
    used_pct: float | None,
    resets_at: datetime | None,
    family: str | None = None,
) -> Window:
    """One window from its length in minutes (> 0, finite), its used percent (clamped; None is
    unknown) and its reset. Raises ``ValueError`` for a length that is no length."""
    if not math.isfinite(minutes) or minutes <= 0:
        raise ValueError(f"a window's length must be a positive number of minutes, not {minutes!r}")
    return Window(
        kind=kind_of(minutes),
        minutes=float(minutes),
        used_pct=percent(used_pct),
        resets_at=resets_at,
        family=family.lower() if family else None,
    )


def unknown_window(used_pct: float | None, resets_at: datetime | None, now: datetime) -> Window:
    """A window whose length the provider did not say. Its kind is ``other`` whatever is left of it:
    what is left is no length. ``minutes`` is the time to its reset (at least 1), advisory."""
    left = (resets_at - now).total_seconds() / 60 if resets_at else FIVE_HOUR_MINUTES
    return Window(
        kind="other", minutes=max(1.0, left), used_pct=percent(used_pct), resets_at=resets_at
    )


def limit_reading(
    pool: str, resets_at: datetime | None, now: datetime, account: str | None = None
) -> Reading:
    """What a usage reader says when it answers with a limit notice in place of numbers: some
    window, which one is unknown, is full until that reset."""
    return Reading(
        pool=pool,
        source="live",
        observed_at=now,
        windows=(unknown_window(100.0, resets_at, now),),
        account=account,
        note="the usage meter answered with a limit notice",
    )


def period_window(
    period: str | None,
    *,
    percent_used: float | None = None,
    used: float | None = None,
    limit: float | None = None,
    resets_at: datetime | None = None,
    family: str | None = None,
) -> Window | None:
    """A window from a payload that names its period (``USAGE_PERIOD_TYPE_WEEKLY``, ``monthly``).

    A limit of 0 means that there is no such window: None, and nothing is ever divided by it. With
    a limit and an amount the percentage is their quotient. A period that is named while neither a
    percentage nor an amount is there is a fresh start: 0. An unnamed period gives None.
    """
    word = (period or "").lower()
    kind: WindowKind
    if "week" in word:
        kind = "weekly"
    elif "month" in word:
        kind = "monthly"
    elif "day" in word or "daily" in word:
        kind = "daily"
    elif "five_hour" in word or "5h" in word:
        kind = "five_hour"
    else:
        return None
    if limit is not None and limit <= 0:
        return None
    pct = percent(percent_used)
    if pct is None and percent_used is None:
        if used is None:
            pct = 0.0
        elif limit is not None:
            pct = percent(100.0 * used / limit)
    return Window(
        kind=kind,
        minutes=KIND_MINUTES[kind],
        used_pct=pct,
        resets_at=resets_at,
        family=family.lower() if family else None,
    )


_CLAIMS: dict[str, tuple[float, str | None]] = {
    "five_hour": (FIVE_HOUR_MINUTES, None),
    "5h": (FIVE_HOUR_MINUTES, None),
    "daily": (DAY_MINUTES, None),
    "seven_day": (WEEK_MINUTES, None),
    "7d": (WEEK_MINUTES, None),
    "weekly": (WEEK_MINUTES, None),
    "monthly": (MONTH_MINUTES, None),
}


def claimed_window(
    claim: str | None,
    *,
    status: str | None,
    used_pct: float | None,
    resets_at: datetime | None,
    now: datetime,
    family: str | None = None,
) -> Window | None:
    """A window from a structured limit event (``claim`` "five_hour", "seven_day",
    "seven_day_opus", "weekly", ...; ``status`` "allowed" | "warning" | "rejected").

    A rejection says that this window is full. Any other status without a percentage leaves the
    percentage unknown. None where the event says nothing at all.
    """
    pct = percent(used_pct)
    if status == "rejected":
        pct = 100.0
    if pct is None and resets_at is None:
        return None
    if claim is None:
        return unknown_window(pct, resets_at, now)
    minutes, own_family = _CLAIMS.get(claim, (0.0, None))
    if not minutes:
        for prefix in ("seven_day_", "weekly_"):
            if claim.startswith(prefix):
                minutes, own_family = WEEK_MINUTES, claim.removeprefix(prefix)
    if not minutes:
        return unknown_window(pct, resets_at, now)
    return window_from(minutes, pct, resets_at, family or own_family)


def describe(window: Window) -> str:
    """A window in words: "5-hour", "weekly", "weekly opus"."""
    word = WINDOW_WORDS[window.kind]
    return f"{word} {window.family}" if window.family else word


def same_reset(a: datetime | None, b: datetime | None) -> bool:
    """Whether two resets name one instant, within the tolerance; an unknown one never differs."""
    return a is None or b is None or abs(a - b) <= RESET_TOLERANCE


def add_note(reading: Reading, *notes: str) -> Reading:
    """The reading with these sentences added to its note, each once."""
    parts = [reading.note] if reading.note else []
    parts.extend(n for n in notes if n and n not in (reading.note or ""))
    return msgspec.structs.replace(reading, note="; ".join(parts) or None)
