"""What a routing policy would do with a fleet and its work, without paying for it.

A discrete-event simulation that decides with the very functions of ``bullswarm.routing``. ``draw``
turns a fleet and a seed into a scenario, ``simulate`` runs it under one policy, ``bound`` gives the
optimum that no policy can beat, and ``compare`` does all of it for many seeds and policies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullswarm.lazy import exports

if TYPE_CHECKING:
    from bullswarm.simulate.fleets import FLEETS, built_in
    from bullswarm.simulate.optimum import bound
    from bullswarm.simulate.outcome import Outcome
    from bullswarm.simulate.report import Figures, Report, compare
    from bullswarm.simulate.scenario import draw
    from bullswarm.simulate.types import FleetSpec, PoolSpec, Scenario, Task, WorkSpec
    from bullswarm.simulate.world import simulate

# Loaded when they are asked for: the command line shows its help without them.
__getattr__ = exports(
    __name__,
    {
        "fleets": ("FLEETS", "built_in"),
        "optimum": ("bound",),
        "outcome": ("Outcome",),
        "report": ("Figures", "Report", "compare"),
        "scenario": ("draw",),
        "types": ("FleetSpec", "PoolSpec", "Scenario", "Task", "WorkSpec"),
        "world": ("simulate",),
    },
)


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
