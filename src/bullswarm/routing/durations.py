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


class _Few:
    """Few durations: looking at each is cheaper than sorting them."""

    __slots__ = ("_minutes",)

    def __init__(self, minutes: Sequence[float]) -> None:
        self._minutes = minutes

    def residual(self, age: float) -> float | None:
        longer = [d for d in self._minutes if age < d < inf]
        return sum(longer) / len(longer) - age if longer else None


class _Many:
    """Sorted durations with the sum of every tail, for one that is asked often."""

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
_ENOUGH = 2000


class DurationBook:
    """Expected minutes by pool and lane.

    Falls back from pool and lane to the pool, the lane, then everything; a row that names "*" is
    taken as given, and is put together from the others where there is none. Before anything was
    recorded it is an exponential prior, whose mean residual life is ``bootstrap_minutes`` at any
    age (design).
    """

    def __init__(self, rows: Sequence[Durations], bootstrap_minutes: float) -> None:
        self._prior = max(bootstrap_minutes, _SHORTEST_MINUTES)
        self._given: dict[tuple[str, str], tuple[float, ...]] = {}
        self._pools: set[str] = set()
        for row in rows:
            if row.minutes:
                key = (row.pool, row.lane)
                had = self._given.get(key)
                self._given[key] = row.minutes if had is None else had + row.minutes
                self._pools.add(row.pool)
        self._tables: dict[tuple[str, str], _Few | _Many | None] = {}
        self._shared_means: dict[str, tuple[float, bool]] = {}
        self._index: dict[tuple[str, str], list[tuple[float, ...]]] | None = None

    def residual(self, pool: str, lane: str, age: float) -> tuple[float, bool]:
        """``mean(d - age for d > age)`` of recorded durations, and True; at the first level that
        has any as long. Else the prior, and False. Always > 0."""
        age = max(age, 0.0)
        levels: tuple[tuple[str, str], ...] = ((ANY, lane), (ANY, ANY))
        if pool in self._pools:
            levels = ((pool, lane), (pool, ANY), *levels)
        for key in levels:
            table = self._tables[key] if key in self._tables else self._load(key)
            if table is not None:
                left = table.residual(age)
                if left is not None:
                    return max(left, _SHORTEST_MINUTES), True
        return self._prior, False

    def mean(self, pool: str, lane: str) -> tuple[float, bool]:
        """The mean duration, and whether it comes from records."""
        if pool in self._pools:
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

    def _load(self, key: tuple[str, str]) -> _Few | _Many | None:
        minutes: Sequence[float] = self._given.get(key, ())
        if not minutes and ANY in key:
            minutes = self._joined(key)
        table: _Few | _Many | None = None
        if minutes:
            table = _Few(minutes) if len(minutes) <= _FEW else _Many(minutes)
        self._tables[key] = table
        return table

    def _joined(self, key: tuple[str, str]) -> list[float]:
        """The durations of every pool or lane that "*" stands for, an equal share of each where
        there are more than the mean needs."""
        if self._index is None:
            self._index = {}
            rows = [(k, m) for k, m in self._given.items() if ANY not in k]
            for (pool, lane), minutes in rows or self._given.items():
                for wider in {(pool, ANY), (ANY, lane), (ANY, ANY)}:
                    self._index.setdefault(wider, []).append(minutes)
        parts = self._index.get(key, [])
        if sum(map(len, parts)) <= _ENOUGH:
            return [d for part in parts for d in part]
        share = max(1, _ENOUGH // len(parts))
        return [d for part in parts for d in part[-share:]]
