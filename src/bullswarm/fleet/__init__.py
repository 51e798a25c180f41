"""The library's front door: route work over agent CLIs from your own code.

    fleet = Fleet()
    result = await fleet.run("Refactor this module.", Policy(prefer=["claude", "codex"]))

Every provider is an adapter; a class of your own that meets ``Adapter`` is one, too.
"""

from bullswarm.errors import BullswarmError, UsageError
from bullswarm.fleet.adapter import Adapter, Quota
from bullswarm.fleet.decision import RouteDecision
from bullswarm.fleet.fleet import Fleet, NoAccount
from bullswarm.fleet.provider import ProviderAdapter
from bullswarm.fleet.types import FleetEvent, Policy, RunResult, RunTask
from bullswarm.routing.types import Model

__all__ = [
    "Adapter",
    "BullswarmError",
    "Fleet",
    "FleetEvent",
    "Model",
    "NoAccount",
    "Policy",
    "ProviderAdapter",
    "Quota",
    "RouteDecision",
    "RunResult",
    "RunTask",
    "UsageError",
]
