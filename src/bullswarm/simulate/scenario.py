"""From a fleet and a seed to all that happens: arrivals, durations, early resets, outages."""

from __future__ import annotations

from math import exp, log
from random import Random

import msgspec

from bullswarm.routing.types import Pool, Reading, Snapshot
from bullswarm.simulate.calendar import Clock
from bullswarm.simulate.types import DAY, WEEK, FleetSpec, LaneSpec, PoolSpec, Scenario, Task


def draw(fleet: FleetSpec, seed: int) -> Scenario:
    """The scenario of a seed: the same fleet and seed always give the same."""
    horizon = fleet.days * DAY
    # A stream of its own for each thing: a change of one leaves the others as they were.
    return Scenario(
        fleet=fleet,
        seed=seed,
        horizon=horizon,
        tasks=_tasks(fleet, horizon, Random(f"{seed}:tasks")),
        early_resets={
            pool.name: _times(fleet.events.early_resets, horizon, Random(f"{seed}:r:{pool.name}"))
            for pool in fleet.pools
        },
        outages={
            pool.name: tuple(
                (at, at + fleet.events.outage_minutes)
                for at in _times(fleet.events.outages, horizon, Random(f"{seed}:o:{pool.name}"))
            )
            for pool in fleet.pools
        },
    )


def staggered(scenario: Scenario) -> Scenario:
    """The same scenario, with first-use weekly windows started when ``routing.stagger`` says."""
    return msgspec.structs.replace(scenario, plan=start_plan(scenario.fleet))


def start_plan(fleet: FleetSpec) -> dict[str, float]:
    """When to start each unstarted weekly window, by pool, as ``routing.stagger`` says."""
    from bullswarm.routing.stagger import stagger

    clock = Clock()
    snapshot = Snapshot(now=clock.time(0.0), pools=tuple(_seen(p, clock) for p in fleet.pools))
    return {start.pool: clock.minutes(start.at) for start in stagger(snapshot)}


def _seen(spec: PoolSpec, clock: Clock) -> Pool:
    from bullswarm.routing.types import Window

    windows: tuple[Window, ...] = ()
    if spec.weekly is not None:
        end = None
        if spec.starts == "fixed":
            hours = spec.resets_in_hours
            end = clock.time(WEEK if hours is None else hours * 60.0)
        windows = (Window(kind="weekly", minutes=WEEK, used_pct=spec.used, resets_at=end),)
    return Pool(
        name=spec.name,
        provider=spec.name,
        pacing="monthly" if spec.monthly is not None else "weekly" if spec.weekly else None,
        cost_rank=spec.cost_rank,
        reading=Reading(
            pool=spec.name, source="live", observed_at=clock.time(0.0), windows=windows
        ),
    )


def mean_minutes(fleet: FleetSpec) -> float:
    """The mean duration of a task over the lanes, before the tail is cut."""
    lanes = fleet.work.lanes
    total = sum(lane.share for lane in lanes.values())
    return sum(lane.share * lane.mean for lane in lanes.values()) / total


def work_per_minute(fleet: FleetSpec) -> float:
    """Worker-minutes (at speed 1) that the fleet's pacing windows hold, a minute of real time."""
    held = 0.0
    for pool in fleet.pools:
        capacity = pool.pacing_capacity
        if capacity is not None:
            length = WEEK if pool.weekly is not None else 365.25 / 12 * DAY
            held += capacity / pool.speed / length
    return held


def tasks_a_day(fleet: FleetSpec) -> float:
    """How many tasks arrive a day, on average."""
    work = fleet.work
    if work.tasks_per_day is not None:
        return work.tasks_per_day
    return DAY * work.load * work_per_minute(fleet) / mean_minutes(fleet)


def _tasks(fleet: FleetSpec, horizon: float, rng: Random) -> tuple[Task, ...]:
    work = fleet.work
    least, most = work.burst
    names = sorted(work.lanes)
    weights = [work.lanes[name].share for name in names]
    a_minute = tasks_a_day(fleet) / DAY
    gap = (least + most) / 2.0 / a_minute if a_minute > 0.0 else horizon
    tasks: list[Task] = []
    at = rng.expovariate(1.0 / gap)
    while at < horizon:
        for _ in range(rng.randint(least, most)):
            lane = rng.choices(names, weights)[0]
            spec = work.lanes[lane]
            tasks.append(Task(at, lane, min(work.longest, _duration(spec, rng))))
        at += rng.expovariate(1.0 / gap)
    return tuple(tasks)


def _duration(spec: LaneSpec, rng: Random) -> float:
    """Lognormal with the lane's mean; at least a few seconds."""
    middle = log(spec.mean) - spec.sigma**2 / 2.0
    return max(0.05, exp(rng.gauss(middle, spec.sigma)))


def _times(a_week: float, horizon: float, rng: Random) -> tuple[float, ...]:
    times: list[float] = []
    if a_week > 0.0:
        at = rng.expovariate(a_week / WEEK)
        while at < horizon:
            times.append(at)
            at += rng.expovariate(a_week / WEEK)
    return tuple(times)
