"""bullswarm sends coding work to whichever agent CLI has subscription quota to spare.

From Python, ``Fleet`` is the front door: ``from bullswarm import Fleet, Policy, RunTask``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullswarm.lazy import exports

if TYPE_CHECKING:
    from bullswarm.fleet import (
        Adapter,
        BullswarmError,
        Fleet,
        FleetEvent,
        Model,
        NoAccount,
        Policy,
        Quota,
        RouteDecision,
        RunResult,
        RunTask,
        UsageError,
    )

__version__ = "0.1.0"

__all__ = [
    "Adapter",
    "BullswarmError",
    "Fleet",
    "FleetEvent",
    "Model",
    "NoAccount",
    "Policy",
    "Quota",
    "RouteDecision",
    "RunResult",
    "RunTask",
    "UsageError",
]


# Agents call the command line in a loop: the library is loaded by who asks for it.
__getattr__ = exports(__name__, {"fleet": tuple(__all__)})
