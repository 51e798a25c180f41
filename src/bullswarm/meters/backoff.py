"""How long a meter that said no is left alone. Pure; the state is shared through the store."""

from __future__ import annotations

from bullswarm.meters.errors import MeterErrorKind

_MINUTE = 60.0
_LADDER: dict[MeterErrorKind, tuple[float, float]] = {
    "throttled": (5 * _MINUTE, 120 * _MINUTE),
    "expired": (5 * _MINUTE, 60 * _MINUTE),
    "unreachable": (1 * _MINUTE, 30 * _MINUTE),
    "damaged": (1 * _MINUTE, 5 * _MINUTE),
}
"""First pause and longest pause by kind, in seconds. A usage endpoint that throttles goes on doing
so for hours when it is polled, hence minutes and not seconds."""

LONGEST_NAMED_WAIT_S = 24 * 3600.0


def wait_s(kind: MeterErrorKind, failures: int, retry_after_s: float | None = None) -> float:
    """Seconds until the meter may be asked again, after ``failures`` (>= 1) failures in a row.

    A wait that the server named is kept to, up to a day. None or 0 is unknown: the pause doubles
    with each failure between the kind's floor and ceiling. ``missing`` asked nobody and waits 0.
    """
    if kind == "missing":
        return 0.0
    if retry_after_s is not None and retry_after_s > 0:
        return min(retry_after_s, LONGEST_NAMED_WAIT_S)
    floor, ceiling = _LADDER[kind]
    return float(min(ceiling, floor * 2.0 ** min(30, max(0, failures - 1))))
