"""The offline optimum that no policy can beat: a linear program, solved by HiGHS.

Why it bounds every run. Take any run of the simulation and keep, of everything that it did, only
the minutes of attempts that completed. These minutes satisfy each constraint below, and their worth
is what the program maximises; so the program's best is at least as good as the run.

* Work is divisible and every minute of it counts: a run only gets credit for whole tasks.
* All is known ahead: arrivals, durations, early resets, outages.
* A task is worked on after it arrived and by one agent at a time, so by ``t`` it has had at most
  the time since its arrival. A task that can't end within the horizon counts nothing.
* Windows of a fixed calendar hold their capacity each.
* Windows that start at first use (the 5-hour window, most weeks) lie where the run puts them, so
  the program does not place them at all. It only knows what holds for every placement: windows of
  one pool do not overlap, so at most ``m + 1`` of them touch a stretch of ``m`` lengths, and at
  most ``m`` (rounded up) the first ``m`` lengths from the start; an early reset lets in one more.
* Live workers of all pools together are bounded, and nothing completes during an outage of a login.
* Time is cut into slots. Work that arrives within a slot may use all of it.

It is a relaxation, so the bound may lie above what even a clairvoyant could do with whole tasks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from math import ceil
from typing import Any

from bullswarm.errors import BullswarmError
from bullswarm.simulate.calendar import Clock, fixed_windows
from bullswarm.simulate.types import FIVE_HOURS, WEEK, PoolSpec, Scenario, Task

SLOT_MINUTES = 120.0
_SHORT_MONTH = 28 * 1440.0
_MULTIPLES = (1, 5)
_SLACK = 1e-6


def bound(scenario: Scenario, slot_minutes: float = SLOT_MINUTES) -> float:
    """The most value (see ``PoolSpec.value``) that any policy can harvest in this scenario. Raises
    ``BullswarmError`` where HiGHS can't be imported or finds no optimum."""
    if not scenario.tasks:
        return 0.0
    return _Program(scenario, slot_minutes).solve()


class _Program:
    """Columns: minutes of each class of work on each pool in each slot; worker-minutes of each pool
    up to each slot; work of each class served up to each slot. Rows tie them together."""

    def __init__(self, scenario: Scenario, slot_minutes: float) -> None:
        self.scenario = scenario
        self.clock = Clock(scenario.began)
        self.edges = _edges(scenario, self.clock, slot_minutes)
        self.cost: list[float] = []
        self.lower: list[float] = []
        self.upper: list[float] = []
        self.rows: list[tuple[float, float, list[int], list[float]]] = []
        self._build()

    def _column(self, cost: float, upper: float) -> int:
        self.cost.append(cost)
        self.lower.append(0.0)
        self.upper.append(upper)
        return len(self.cost) - 1

    def _row(self, low: float, high: float, columns: list[int], values: list[float]) -> None:
        self.rows.append((low, high, columns, values))

    def _build(self) -> None:
        fleet = self.scenario.fleet
        slots = len(self.edges) - 1
        by_pools: dict[tuple[str, ...], list[Task]] = defaultdict(list)
        takers = {
            lane: tuple(p.name for p in fleet.pools if lane in p.lanes)
            for lane in {task.lane for task in self.scenario.tasks}
        }
        for task in self.scenario.tasks:
            by_pools[takers[task.lane]].append(task)
        specs = {pool.name: pool for pool in fleet.pools}
        on_pool: dict[str, list[list[int]]] = {p: [[] for _ in range(slots)] for p in specs}
        for names, tasks in by_pools.items():
            if names:
                self._demand(tasks, [specs[name] for name in names], on_pool)
        for name, columns in on_pool.items():
            self._pool(specs[name], columns)
        for j in range(slots):
            busy: list[int] = []
            speeds: list[float] = []
            for name, spec in specs.items():
                busy += on_pool[name][j]
                speeds += [spec.speed] * len(on_pool[name][j])
            if busy:
                self._row(-_INF, fleet.cap * self._length(j), busy, speeds)

    def _length(self, j: int) -> float:
        return self.edges[j + 1] - self.edges[j]

    def _demand(
        self, tasks: list[Task], pools: list[PoolSpec], on_pool: dict[str, list[list[int]]]
    ) -> None:
        """One class of work: what can have been served by the end of each slot."""
        fastest = min(pool.speed for pool in pools)
        horizon = self.scenario.horizon
        able = [task for task in tasks if task.at + task.minutes * fastest <= horizon + _SLACK]
        before: int | None = None
        for j, served in enumerate(_served_by(able, self.edges[1:], fastest)):
            now = self._column(0.0, served)
            columns, values = [now], [1.0]
            if before is not None:
                columns.append(before)
                values.append(-1.0)
            for pool in pools:
                if self._out(pool.name, j):
                    continue
                column = self._column(pool.value_per_minute * pool.speed, _INF)
                on_pool[pool.name][j].append(column)
                columns.append(column)
                values.append(-1.0)
            self._row(0.0, 0.0, columns, values)
            before = now

    def _out(self, pool: str, j: int) -> bool:
        """Whether the login is dead all through the slot."""
        return any(
            begin <= self.edges[j] + _SLACK and self.edges[j + 1] <= end + _SLACK
            for begin, end in self.scenario.outages.get(pool, ())
        )

    def _pool(self, spec: PoolSpec, work: list[list[int]]) -> None:
        """The windows of one pool, over its worker-minutes up to each edge."""
        early = self.scenario.early_resets.get(spec.name, ())
        upto: list[int | None] = [None]
        for j, columns in enumerate(work):
            upper = _INF
            end = self.edges[j + 1]
            if spec.five_hour is not None:
                upper = spec.five_hour * _from_start(end, FIVE_HOURS, early)
            capacity = spec.pacing_capacity
            if capacity is not None and spec.starts == "first-use":
                shortest = WEEK if spec.weekly is not None else _SHORT_MONTH
                upper = min(upper, capacity * _from_start(end, shortest, early))
            now = self._column(0.0, upper)
            before = upto[-1]
            row, values = [now, *columns], [1.0, *([-spec.speed] * len(columns))]
            if before is not None:
                row.append(before)
                values.append(-1.0)
            self._row(0.0, 0.0, row, values)
            upto.append(now)
        if spec.five_hour is not None:
            for m in _MULTIPLES:
                self._any_placement(upto, spec.five_hour, m, FIVE_HOURS, early)
        capacity = spec.pacing_capacity
        if capacity is None:
            return
        if spec.starts == "first-use":
            shortest = WEEK if spec.weekly is not None else _SHORT_MONTH
            for m in (1, 2):
                self._any_placement(upto, capacity, m, shortest, early)
            return
        for begin, end, used in fixed_windows(spec, self.clock, self.scenario.horizon, early):
            a, b = self._edge(begin), self._edge(min(end, self.scenario.horizon))
            self._between(upto, a, b, capacity * (1.0 - used / 100.0))

    def _any_placement(
        self,
        upto: list[int | None],
        capacity: float,
        m: int,
        length: float,
        early: tuple[float, ...],
    ) -> None:
        """No stretch of ``m`` lengths is touched by more than ``m + 1`` windows."""
        for a, begin in enumerate(self.edges):
            b = bisect_right(self.edges, begin + m * length + _SLACK) - 1
            if b <= a:
                continue
            resets = sum(begin < at < self.edges[b] for at in early)
            self._between(upto, a, b, capacity * (m + 1 + resets))

    def _between(self, upto: list[int | None], a: int, b: int, most: float) -> None:
        first, last = upto[a], upto[b]
        if last is None:
            return
        if first is None:
            self.upper[last] = min(self.upper[last], most)
        else:
            self._row(-_INF, most, [last, first], [1.0, -1.0])

    def _edge(self, at: float) -> int:
        return min(range(len(self.edges)), key=lambda i: abs(self.edges[i] - at))

    def solve(self) -> float:
        try:
            import highspy
        except ImportError as error:
            raise BullswarmError(
                "the bound needs HiGHS, and highspy can't be imported; install it with "
                "'pip install highspy', or leave the bound out with --no-bound"
            ) from error
        starts, index, value = [0], [], []
        for _, _, columns, values in self.rows:
            index += columns
            value += values
            starts.append(len(index))
        lp: Any = highspy.HighsLp()
        lp.num_col_ = len(self.cost)
        lp.num_row_ = len(self.rows)
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.col_cost_ = self.cost
        lp.col_lower_ = self.lower
        lp.col_upper_ = self.upper
        lp.row_lower_ = [row[0] for row in self.rows]
        lp.row_upper_ = [row[1] for row in self.rows]
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = starts
        lp.a_matrix_.index_ = index
        lp.a_matrix_.value_ = value
        # What it derives from has all that is needed here; its own start prints a banner.
        make: Any = highspy.Highs.__base__
        highs: Any = make()
        highs.setOptionValue("output_flag", False)
        # One thread: seeds run side by side already.
        highs.setOptionValue("threads", 1)
        highs.passModel(lp)
        highs.run()
        status = highs.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise BullswarmError(
                f"HiGHS found no optimum for seed {self.scenario.seed}: "
                f"{highs.modelStatusToString(status)}"
            )
        return float(highs.getInfo().objective_function_value)


_INF = float("inf")


def _edges(scenario: Scenario, clock: Clock, slot_minutes: float) -> list[float]:
    """Where slots begin and end: a grid, and every instant at which something known changes."""
    horizon = scenario.horizon
    marks = {0.0, horizon}
    at = slot_minutes
    while at < horizon:
        marks.add(at)
        at += slot_minutes
    for spec in scenario.fleet.pools:
        early = scenario.early_resets.get(spec.name, ())
        marks.update(early)
        for begin, end in scenario.outages.get(spec.name, ()):
            marks.update((begin, end))
        if spec.pacing_capacity is not None and spec.starts == "fixed":
            for begin, end, _ in fixed_windows(spec, clock, horizon, early):
                marks.update((begin, end))
    return sorted(mark for mark in marks if 0.0 <= mark <= horizon)


def _served_by(tasks: list[Task], ends: list[float], fastest: float) -> list[float]:
    """The work (minutes at speed 1) that can have been served by each of ``ends``, by agents that
    start at arrival: ``min(work, time since)`` summed over the tasks."""
    changes: list[tuple[float, float, float]] = []
    for task in tasks:
        # Served so far grows with slope 1 / fastest from arrival until the task is done.
        changes.append((task.at, 1.0, -task.at))
        done = task.at + task.minutes * fastest
        changes.append((done, -1.0, done))
    changes.sort()
    total: list[float] = []
    slope = offset = 0.0
    i = 0
    for end in ends:
        while i < len(changes) and changes[i][0] <= end:
            slope += changes[i][1]
            offset += changes[i][2]
            i += 1
        total.append(max(0.0, (slope * end + offset) / fastest))
    return total


def _from_start(end: float, length: float, early: tuple[float, ...]) -> int:
    """How many windows can touch the first ``end`` minutes."""
    return ceil(end / length - 1e-9) + sum(at < end for at in early)
