"""The pure arithmetic of a pick: one immutable snapshot in, one decision out.

``route`` picks; ``admit`` picks or holds; ``serve`` admits a whole line, each placed piece counting
as work in flight for the next. No clock, file, environment or network is read here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullswarm.lazy import exports

if TYPE_CHECKING:
    from bullswarm.routing.admission import Waiting, admit, serve
    from bullswarm.routing.pick import route
    from bullswarm.routing.tiers import (
        BURST_BLOCK_PCT,
        FIVE_HOUR_NEAR_LIMIT_PCT,
        INCUMBENCY_MARGIN,
    )

# Most rooms import only ``routing.types``: they must not pay for the arithmetic.
__getattr__ = exports(
    __name__,
    {
        "admission": ("Waiting", "admit", "serve"),
        "pick": ("route",),
        "tiers": ("BURST_BLOCK_PCT", "FIVE_HOUR_NEAR_LIMIT_PCT", "INCUMBENCY_MARGIN"),
    },
)


__all__ = [
    "BURST_BLOCK_PCT",
    "FIVE_HOUR_NEAR_LIMIT_PCT",
    "INCUMBENCY_MARGIN",
    "Waiting",
    "admit",
    "route",
    "serve",
]
