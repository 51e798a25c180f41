"""Facts about a limit that come as fields: response headers, window claims, JSON error bodies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime

import msgspec

from bullswarm.dispatch.notices.resets import from_epoch, parse_retry_after

_WEEK_MINUTES, _DAY_MINUTES, _FIVE_HOURS = 10080.0, 1440.0, 300.0
_SLACK = 0.05

_CLAIMS: dict[str, tuple[str | None, str | None]] = {
    "five_hour": ("five_hour", None),
    "5h": ("five_hour", None),
    "primary": (None, None),
    "seven_day": ("weekly", None),
    "7d": ("weekly", None),
    "weekly": ("weekly", None),
    # The window of the family that a plan includes beyond the others.
    "seven_day_overage_included": ("weekly", "fable"),
    "7d_oi": ("weekly", "fable"),
    "overage": ("balance", None),
    "daily": ("daily", None),
    "monthly": ("monthly", None),
}
_FIELD = re.compile(
    r"[\"'](message|type|code|status|reason|error|detail)[\"']\s*:\s*(?:\"([^\"]*)|'([^']*))",
    re.IGNORECASE,
)


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """``spent``: the fields themselves say that a window is full."""

    spent: bool = False
    resets_at: datetime | None = None
    window: str | None = None
    family: str | None = None
    wait_s: float | None = None


def claim(name: str | None) -> tuple[str | None, str | None]:
    """(window, family) of a window as a provider's event names it ("seven_day_opus")."""
    word = (name or "").strip().lower()
    if word in _CLAIMS:
        return _CLAIMS[word]
    for prefix in ("seven_day_", "weekly_", "7d_"):
        if word.startswith(prefix):
            return "weekly", word.removeprefix(prefix)
    return None, None


def window_of_minutes(minutes: float) -> str | None:
    """The window of that length in minutes; None for a length that has no name here."""
    for name, length in (
        ("five_hour", _FIVE_HOURS),
        ("daily", _DAY_MINUTES),
        ("weekly", _WEEK_MINUTES),
    ):
        if abs(minutes - length) <= length * _SLACK:
            return name
    return "monthly" if 28 * _DAY_MINUTES - 60 <= minutes <= 31 * _DAY_MINUTES + 60 else None


def read_headers(headers: Mapping[str, str], now: datetime) -> Facts:
    """What response headers say of a refused request.

    Of several full windows the one that ends last binds. ``Retry-After`` is a wait, and a reset
    only where the caller knows that a window is spent; 0 says nothing.
    """
    low = {key.lower(): value for key, value in headers.items()}
    wait = parse_retry_after(_milliseconds(low.get("retry-after-ms")), now)
    wait = wait or parse_retry_after(low.get("retry-after"), now)
    wait_s = (wait - now).total_seconds() if wait else None
    found = _codex(low, now) or _anthropic(low, now)
    if found is None:
        return Facts(wait_s=wait_s)
    return msgspec.structs.replace(found, wait_s=wait_s)


def _codex(low: Mapping[str, str], now: datetime) -> Facts | None:
    full: list[Facts] = []
    for slot in ("primary", "secondary"):
        used = _float(low.get(f"x-codex-{slot}-used-percent"))
        if used is None or used < 100:
            continue
        minutes = _float(low.get(f"x-codex-{slot}-window-minutes"))
        at = from_epoch(low.get(f"x-codex-{slot}-reset-at"))
        at = at or parse_retry_after(low.get(f"x-codex-{slot}-reset-after-seconds"), now)
        window = window_of_minutes(minutes) if minutes else None
        full.append(Facts(spent=True, resets_at=_ahead(at, now), window=window))
    return max(full, key=lambda f: f.resets_at or now) if full else None


def _anthropic(low: Mapping[str, str], now: datetime) -> Facts | None:
    prefix = "anthropic-ratelimit-unified"
    if low.get(f"{prefix}-status") != "rejected":
        return None
    named = low.get(f"{prefix}-representative-claim")
    window, family = claim(named)
    at = from_epoch(low.get(f"{prefix}-reset"))
    return Facts(spent=True, resets_at=_ahead(at, now), window=window, family=family)


def body_fields(text: str) -> tuple[tuple[str, str], ...]:
    """The fields of a JSON error body that say what happened, in order: (name, value)."""
    found = []
    # A body within a body comes with its quotes escaped.
    flat = re.sub(r"\\+n", " ", text[:8000])
    flat = re.sub(r"\\+(?=[\"'/])", "", flat)
    for match in _FIELD.finditer(flat):
        value = (match[2] or match[3] or "").strip()
        if value:
            found.append((match[1].lower(), value))
    return tuple(found[:24])


def _ahead(at: datetime | None, now: datetime) -> datetime | None:
    from bullswarm.dispatch.notices.wall import SKEW

    return max(at, now) if at is not None and at > now - SKEW else None


def _milliseconds(value: str | None) -> float | None:
    number = _float(value)
    return number / 1000 if number else None


def _float(value: str | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None
