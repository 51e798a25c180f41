"""The pure arithmetic of a pick: one immutable snapshot in, one decision out.

``route`` picks; ``admit`` picks or holds; ``serve`` admits a whole line, each placed piece counting
as work in flight for the next. No clock, file, environment or network is read here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bullswarm.routing.admission import Waiting, admit, serve
    from bullswarm.routing.pick import route
    from bullswarm.routing.tiers import (
        BURST_BLOCK_PCT,
        FIVE_HOUR_NEAR_LIMIT_PCT,
        INCUMBENCY_MARGIN,
    )

# Most rooms import only ``routing.types``: they must not pay for the arithmetic.
_HOME = {
    "BURST_BLOCK_PCT": "tiers",
    "FIVE_HOUR_NEAR_LIMIT_PCT": "tiers",
    "INCUMBENCY_MARGIN": "tiers",
    "Waiting": "admission",
    "admit": "admission",
    "route": "pick",
    "serve": "admission",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


__all__ = [
    "BURST_BLOCK_PCT",
    "FIVE_HOUR_NEAR_LIMIT_PCT",
    "INCUMBENCY_MARGIN",
    "Waiting",
    "admit",
    "route",
    "serve",
]
