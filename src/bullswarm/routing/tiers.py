"""The tiers of a pick, best first, and the constants that draw their lines (routing rules)."""

from __future__ import annotations

from bullswarm.routing.types import Tier

INCUMBENCY_MARGIN = 10.0
"""Surplus points a challenger must be better by before work moves off its incumbent."""

FIVE_HOUR_NEAR_LIMIT_PCT = 75.0
"""A 5-hour forecast at or above this, and above the window's elapsed share, is near the limit."""

BURST_BLOCK_PCT = 90.0
"""A 5-hour forecast at or above this is left out, whatever the clock; the same line of the pacing
forecast tells an urgent pool from a draining one."""

URGENT, NORMAL, DRAINING, NEAR_LIMIT, CALLER, GATED, INELIGIBLE = range(7)

TIERS: tuple[Tier, ...] = (
    "urgent",
    "normal",
    "draining",
    "near-limit",
    "caller",
    "forecast-gated",
    "ineligible",
)


def near_limit(forecast: float | None, elapsed: float | None) -> bool:
    """Whether a 5-hour forecast (percent) heads for the wall. No reading is headroom; where the
    reset is unknown the clock excuses nothing."""
    if forecast is None or forecast < FIVE_HOUR_NEAR_LIMIT_PCT:
        return False
    return elapsed is None or forecast > elapsed


def forecast_gated(forecast: float | None) -> bool:
    """Whether a 5-hour forecast (percent) is over the burst line."""
    return forecast is not None and forecast >= BURST_BLOCK_PCT


def expiring(surplus: float | None, forecast: float | None) -> int | None:
    """URGENT, DRAINING or None for a pool whose pacing window ends soon.

    With surplus and a forecast below the line is urgent. A forecast over the line is
    draining, with or without surplus: were it only with, spending more would lift a pool from
    draining to normal. Merely ending soon but ahead of pace is neither.
    """
    if surplus is None:
        return None
    if forecast is not None and forecast >= BURST_BLOCK_PCT:
        return DRAINING
    return URGENT if surplus > 0.0 else None


def tier_of(caller: bool, gated: bool, near: bool, expiry: int | None) -> int:
    """The tier's place, 0 the best."""
    if gated:
        return GATED
    if caller:
        return CALLER
    if near:
        return NEAR_LIMIT
    return NORMAL if expiry is None else expiry
