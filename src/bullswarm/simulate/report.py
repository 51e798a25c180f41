"""Many seeds and policies, in processes side by side, and what they come to.

Every cell (one scenario under one policy, or its bound) is computed from its arguments alone, so
neither the number of processes nor the order in which they finish changes any figure.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from typing import NamedTuple

import msgspec

from bullswarm.simulate.history import RECORDED, History
from bullswarm.simulate.optimum import bound
from bullswarm.simulate.outcome import Outcome
from bullswarm.simulate.policies import HOLD, check
from bullswarm.simulate.scenario import draw, staggered
from bullswarm.simulate.types import FleetSpec, Scenario
from bullswarm.simulate.world import simulate

OnDone = Callable[[int, int, str], None]
"""Told after each cell: how many are done, how many there are, and which it was."""


class Figures(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One policy over all seeds.

    ``harvested_pct`` is the mean over the seeds of completed work as a share (percent) of the
    bound, ``harvested_pct_min`` that of the worst seed; None without a bound, or of nothing.
    ``lost_per100`` is attempts lost to limits for each 100 tasks. ``wasted_pct`` is the share of
    all quota spent that went into lost attempts. ``wait_*_minutes`` run from a task's arrival to
    the start of the attempt that completed it, or to the end where none did. ``admission`` is
    "hold", "off", or "recorded" for what happened. ``cost`` is a mean a seed, in the
    unit of the prices; None where a price is unknown.
    """

    policy: str
    admission: str
    staggered: bool
    harvested: float
    harvested_pct: float | None
    harvested_pct_min: float | None
    tasks: int
    done: int
    lost_to_limits: int
    lost_per100: float
    lost_to_auth: int
    wasted_pct: float
    wait_median_minutes: float
    wait_p95_minutes: float
    cost: float | None
    minutes: dict[str, float]


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A fleet under several policies. ``bound`` is the mean optimum in value points. From records,
    ``recorded`` is what happened and ``unknown`` says what they can't tell."""

    fleet: str
    about: str
    days: float
    seeds: tuple[int, ...]
    bound: float | None
    policies: tuple[Figures, ...]
    recorded: Figures | None = None
    unknown: tuple[str, ...] = ()


class Cell(NamedTuple):
    """What one process computes at a time. ``policy`` None asks for the bound."""

    scenario: FleetSpec | Scenario
    seed: int
    policy: str | None
    staggered: bool = False
    trace: bool = False


def compute(cell: Cell) -> float | Outcome:
    """The bound, or the outcome, of one cell."""
    scenario = cell.scenario
    if isinstance(scenario, FleetSpec):
        scenario = draw(scenario, cell.seed)
    if cell.policy is None:
        return bound(scenario)
    if cell.staggered:
        scenario = staggered(scenario)
    return simulate(scenario, cell.policy, trace=cell.trace)


def compare(
    scenario: FleetSpec | Scenario | History,
    policies: Sequence[str],
    seeds: Sequence[int] = (1,),
    *,
    stagger: bool = False,
    with_bound: bool = True,
    processes: int | None = None,
    on_done: OnDone | None = None,
) -> Report:
    """Run every policy on every seed of a fleet, or on one scenario or history as it is.

    ``stagger`` adds each policy once more with staggered weeks. ``processes`` None means one a
    core. Raises ``UsageError`` for an unknown policy and ``BullswarmError`` where the bound can't
    be found.
    """
    for name in policies:
        check(name)
    history = None
    if isinstance(scenario, History):
        history, scenario = scenario, scenario.scenario
    if isinstance(scenario, Scenario):
        seeds = (scenario.seed,)
    rows = [(name, late) for name in policies for late in ((False, True) if stagger else (False,))]
    cells = [Cell(scenario, seed, name, late) for seed in seeds for name, late in rows]
    if with_bound:
        cells += [Cell(scenario, seed, None) for seed in seeds]
    bounds: dict[int, float] = {}
    outcomes: dict[tuple[str, bool], dict[int, Outcome]] = {row: {} for row in rows}
    for done, (n, found) in enumerate(_each(cells, processes), start=1):
        cell = cells[n]
        if isinstance(found, Outcome):
            assert cell.policy is not None
            outcomes[cell.policy, cell.staggered][cell.seed] = found
        else:
            bounds[cell.seed] = found
        if on_done is not None:
            on_done(done, len(cells), f"{cell.policy or 'bound'}, seed {cell.seed}")
    fleet = scenario if isinstance(scenario, FleetSpec) else scenario.fleet
    return Report(
        fleet=fleet.name,
        about=fleet.about,
        days=fleet.days,
        seeds=tuple(seeds),
        bound=sum(bounds[seed] for seed in seeds) / len(seeds) if with_bound else None,
        policies=tuple(
            figures(name, late, [outcomes[name, late][seed] for seed in seeds], bounds)
            for name, late in rows
        ),
        recorded=figures(RECORDED, False, [history.recorded], bounds) if history else None,
        unknown=history.unknown if history else (),
    )


def figures(
    policy: str, late: bool, outcomes: Sequence[Outcome], bounds: dict[int, float]
) -> Figures:
    """One policy's figures over its outcomes, one a seed."""
    tasks = sum(o.tasks for o in outcomes)
    lost = sum(o.lost_to_limits for o in outcomes)
    harvested = sum(o.harvested for o in outcomes)
    wasted = sum(o.wasted for o in outcomes)
    shares = [
        # Rounded: the solver's tolerance is no harvest.
        round(100.0 * o.harvested / bounds[o.seed], 4)
        for o in outcomes
        if bounds.get(o.seed, 0.0) > 0.0
    ]
    waits = sorted(wait for o in outcomes for wait in o.waits)
    costs = [o.cost for o in outcomes if o.cost is not None]
    return Figures(
        policy=policy.removesuffix(HOLD),
        admission=_admission(policy),
        staggered=late,
        harvested=harvested / len(outcomes),
        harvested_pct=sum(shares) / len(shares) if shares else None,
        harvested_pct_min=min(shares) if shares else None,
        tasks=tasks,
        done=sum(o.done for o in outcomes),
        lost_to_limits=lost,
        lost_per100=100.0 * lost / tasks if tasks else 0.0,
        lost_to_auth=sum(o.lost_to_auth for o in outcomes),
        wasted_pct=100.0 * wasted / (harvested + wasted) if harvested + wasted > 0.0 else 0.0,
        wait_median_minutes=quantile(waits, 0.5),
        wait_p95_minutes=quantile(waits, 0.95),
        cost=sum(costs) / len(costs) if len(costs) == len(outcomes) else None,
        minutes={
            pool: sum(o.minutes[pool] for o in outcomes) / len(outcomes)
            for pool in outcomes[0].minutes
        },
    )


def _admission(policy: str) -> str:
    if policy == RECORDED:
        return RECORDED
    return "hold" if policy.endswith(HOLD) else "off"


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value that ``share`` (0..1) of sorted values don't exceed; 0 of none."""
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _each(cells: Sequence[Cell], processes: int | None) -> Iterator[tuple[int, float | Outcome]]:
    """The place and value of every cell, as they are done."""
    wanted = min(len(cells), processes if processes is not None else _cores())
    if wanted <= 1:
        for n, cell in enumerate(cells):
            yield n, compute(cell)
        return
    # Forked where that is safe: a script of the user's own needs no guard around its main part.
    context = get_context("fork" if sys.platform == "linux" else "spawn")
    with context.Pool(wanted, _leave_interrupts) as pool:
        # An interrupt, here or in the consumer, leaves the block, which ends the processes.
        yield from pool.imap_unordered(_numbered, list(enumerate(cells)))


def _numbered(item: tuple[int, Cell]) -> tuple[int, float | Outcome]:
    return item[0], compute(item[1])


def _leave_interrupts() -> None:
    """Ctrl-C is for the parent to act on."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
