"""What a routing policy would do with a fleet and its work, without paying for it.

A discrete-event simulation that decides with the very functions of ``bullswarm.routing``. ``draw``
turns a fleet and a seed into a scenario, ``simulate`` runs it under one policy, ``bound`` gives the
optimum that no policy can beat, and ``compare`` does all of it for many seeds and policies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bullswarm.simulate.fleets import FLEETS, built_in
    from bullswarm.simulate.optimum import bound
    from bullswarm.simulate.outcome import Outcome
    from bullswarm.simulate.report import Figures, Report, compare
    from bullswarm.simulate.scenario import draw
    from bullswarm.simulate.types import FleetSpec, PoolSpec, Scenario, Task, WorkSpec
    from bullswarm.simulate.world import simulate

# Loaded when they are asked for: the command line shows its help without them.
_HOME = {
    "FLEETS": "fleets",
    "Figures": "report",
    "FleetSpec": "types",
    "Outcome": "outcome",
    "PoolSpec": "types",
    "Report": "report",
    "Scenario": "types",
    "Task": "types",
    "WorkSpec": "types",
    "bound": "optimum",
    "built_in": "fleets",
    "compare": "report",
    "draw": "scenario",
    "simulate": "world",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


__all__ = [
    "FLEETS",
    "Figures",
    "FleetSpec",
    "Outcome",
    "PoolSpec",
    "Report",
    "Scenario",
    "Task",
    "WorkSpec",
    "bound",
    "built_in",
    "compare",
    "draw",
    "simulate",
]
