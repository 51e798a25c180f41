"""What came of a simulation: counts while it runs, figures when it is over."""

from __future__ import annotations

import msgspec

from bullswarm.simulate.states import Sample
from bullswarm.simulate.types import PoolSpec, Scenario


class Outcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One scenario under one policy.

    ``harvested`` is the worth of completed work in value points (see ``PoolSpec.value``),
    ``wasted`` that of attempts which were lost. ``lost_to_limits`` and ``lost_to_auth`` count
    attempts, ``tasks`` all that arrived, ``done`` what was completed within the time. ``waits``
    holds minutes from each task's arrival to the start of the attempt that completed it (or until
    the end of the simulation where it never did), in order of arrival. ``cost`` is the price of
    the quota that was spent, lost attempts included; None where a price is unknown. ``minutes``
    are the worker-minutes of completed work by pool.
    """

    policy: str
    seed: int
    tasks: int
    done: int
    harvested: float
    wasted: float
    lost_to_limits: int
    lost_to_auth: int
    cost: float | None
    waits: tuple[float, ...]
    minutes: dict[str, float]
    trace: Trace | None = None


class Trace(msgspec.Struct, kw_only=True):
    """Windows over time, for a picture. ``used`` holds (minute, 5-hour percent, pacing percent) by
    pool, ``lost`` (minute, pool) of attempts lost to limits, ``waiting`` (minute, tasks in line).
    """

    used: dict[str, list[tuple[float, float | None, float | None]]] = {}
    lost: list[tuple[float, str]] = []
    waiting: list[tuple[float, int]] = []

    def windows(self, pool: str, now: float, sample: Sample) -> None:
        """Keep one sample of a pool."""
        five = pacing = None
        for kind, used, _ in sample:
            if kind == "five_hour":
                five = round(used, 2)
            else:
                pacing = round(used, 2)
        self.used.setdefault(pool, []).append((now, five, pacing))


class Tally:
    """Counts as things happen."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._starts: dict[int, float] = {}
        self._done = 0
        self._harvested = 0.0
        self._wasted = 0.0
        self._limits = 0
        self._auth = 0
        self._cost: float | None = 0.0
        self._minutes = {pool.name: 0.0 for pool in scenario.fleet.pools}

    def done(self, task: int, spec: PoolSpec, start: float, minutes: float) -> None:
        """A task was completed."""
        self._starts[task] = start
        self._done += 1
        self._harvested += minutes * spec.value_per_minute
        self._pay(spec, minutes)
        self._minutes[spec.name] += minutes

    def lost(self, spec: PoolSpec, minutes: float, *, limit: bool) -> None:
        """An attempt was lost to a limit, or to a dead login."""
        if limit:
            self._limits += 1
        else:
            self._auth += 1
        self._wasted += minutes * spec.value_per_minute
        self._pay(spec, minutes)

    def _pay(self, spec: PoolSpec, minutes: float) -> None:
        price = spec.money_per_minute
        if price is None or self._cost is None:
            self._cost = None
        else:
            self._cost += minutes * price

    def running(self, task: int, start: float) -> None:
        """A task is still running at the end: it waited until this start."""
        self._starts[task] = start

    def outcome(self, policy: str, trace: Trace | None) -> Outcome:
        """The figures."""
        scenario = self._scenario
        return Outcome(
            policy=policy,
            seed=scenario.seed,
            tasks=len(scenario.tasks),
            done=self._done,
            harvested=self._harvested,
            wasted=self._wasted,
            lost_to_limits=self._limits,
            lost_to_auth=self._auth,
            cost=self._cost,
            waits=tuple(
                self._starts.get(index, scenario.horizon) - task.at
                for index, task in enumerate(scenario.tasks)
            ),
            minutes=self._minutes,
            trace=trace,
        )
