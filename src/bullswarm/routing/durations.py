"""How long work takes, and how much longer work of a given age will take, from what was recorded.

Minutes everywhere. A twenty-minute-old agent is not about to end because the mean is six: what is
left is the mean residual life at its age.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from math import inf

from bullswarm.routing.types import Durations

ANY = "*"
_SHORTEST_MINUTES = 1 / 60


class _Table:
    """Sorted durations with the sum of every tail."""

    __slots__ = ("_sorted", "_tails")

    def __init__(self, minutes: Sequence[float]) -> None:
        ordered = sorted(minutes)
        if not (ordered[0] > 0.0 and ordered[-1] < inf):
            ordered = [d for d in ordered if 0.0 < d < inf]
        self._sorted = ordered
        self._tails = [0.0, *accumulate(reversed(self._sorted))][::-1]

    def residual(self, age: float) -> float | None:
        first = bisect_right(self._sorted, age)
        count = len(self._sorted) - first
        return self._tails[first] / count - age if count else None


_FEW = 64
_ENOUGH = 1000


class DurationBook:
    """Expected minutes by pool and lane.

    Falls back from pool and lane to the pool, the lane, then everything; a row that names "*" is
    taken as given, and is put together from the others where there is none. Before anything was
    recorded it is an exponential prior, whose mean residual life is ``bootstrap_minutes`` at any
    age.
    """

    def __init__(self, rows: Sequence[Durations], bootstrap_minutes: float) -> None:
        self._prior = max(bootstrap_minutes, _SHORTEST_MINUTES)
        self._given: dict[tuple[str, str], tuple[float, ...]] = {}
        self._lanes: dict[str, int] = {}
        for row in rows:
            if row.minutes:
                key = (row.pool, row.lane)
                had = self._given.get(key)
                self._given[key] = row.minutes if had is None else had + row.minutes
                if had is None:
                    self._lanes[row.pool] = self._lanes.get(row.pool, 0) + 1
        self._tables: dict[tuple[str, str], _Table | None] = {}
        self._shared_means: dict[str, tuple[float, bool]] = {}
        self._index: dict[bool, dict[str, list[tuple[float, ...]]]] = {}

    def residual(self, pool: str, lane: str, age: float) -> tuple[float, bool]:
        """``mean(d - age for d > age)`` of recorded durations, and True; at the first level that
        has any as long. Else the prior, and False. Always > 0."""
        if age < 0.0:
            age = 0.0
        lanes = self._lanes.get(pool, 0)
        levels: tuple[tuple[str, str], ...] = ((ANY, lane), (ANY, ANY))
        if lanes:
            own = (pool, lane)
            few = self._given.get(own)
            if few is None:
                levels = ((pool, ANY), *levels)
            else:
                if len(few) > _FEW:
                    levels = (own, *levels) if lanes == 1 else (own, (pool, ANY), *levels)
                else:
                    # Looking at each is cheaper than sorting them.
                    longer = [d for d in few if age < d < inf]
                    if longer:
                        return max(sum(longer) / len(longer) - age, _SHORTEST_MINUTES), True
                    if lanes > 1:
                        levels = ((pool, ANY), *levels)
        for key in levels:
            table = self._tables[key] if key in self._tables else self._load(key)
            if table is not None:
                left = table.residual(age)
                if left is not None:
                    return max(left, _SHORTEST_MINUTES), True
        return self._prior, False

    def mean(self, pool: str, lane: str) -> tuple[float, bool]:
        """The mean duration, and whether it comes from records."""
        if pool in self._lanes:
            # At age 0 nothing needs sorting: a pick over many pools asks for each one's mean.
            minutes = self._given.get((pool, lane))
            if minutes and min(minutes) > 0.0:
                mean = sum(minutes) / len(minutes)
                if mean < inf:
                    return max(mean, _SHORTEST_MINUTES), True
            return self.residual(pool, lane, 0.0)
        shared = self._shared_means.get(lane)
        if shared is None:
            shared = self._shared_means[lane] = self.residual(ANY, lane, 0.0)
        return shared

    def _load(self, key: tuple[str, str]) -> _Table | None:
        minutes: Sequence[float] = self._given.get(key, ())
        if not minutes and ANY in key:
            minutes = self._joined(key)
        table = _Table(minutes) if minutes else None
        self._tables[key] = table
        return table

    def _joined(self, key: tuple[str, str]) -> list[float]:
        """The durations of every pool or lane that "*" stands for, an equal share of each where
        there are more than the mean needs."""
        pool, lane = key
        by_pool = pool != ANY
        index = self._index.get(by_pool)
        if index is None:
            index = self._index[by_pool] = {}
            rows = [(k, m) for k, m in self._given.items() if ANY not in k]
            for name, minutes in rows or self._given.items():
                index.setdefault(name[0] if by_pool else name[1], []).append(minutes)
        if not by_pool and lane == ANY:
            parts = [part for found in index.values() for part in found]
        else:
            parts = index.get(pool if by_pool else lane, [])
        if sum(map(len, parts)) <= _ENOUGH:
            return [d for part in parts for d in part]
        share = max(1, _ENOUGH // len(parts))
        return [d for part in parts for d in part[-share:]]
