"""The library's front door: route work over agent CLIs from your own code.

    fleet = Fleet()
    result = await fleet.run("Refactor this module.", Policy(prefer=("claude", "codex")))

Every provider is an adapter; a class of your own that meets ``Adapter`` is one, too.
"""

from bullswarm.fleet.adapter import Adapter, ProviderAdapter, Quota
from bullswarm.fleet.fleet import Fleet
from bullswarm.fleet.types import FleetEvent, Policy, RouteDecision, RunResult, RunTask

__all__ = [
    "Adapter",
    "Fleet",
    "FleetEvent",
    "Policy",
    "ProviderAdapter",
    "Quota",
    "RouteDecision",
    "RunResult",
    "RunTask",
]
