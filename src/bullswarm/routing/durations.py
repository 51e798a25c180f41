"""How long work takes, and how much longer work of a given age will take, from what was recorded.

Minutes everywhere. A twenty-minute-old agent is not about to end because the mean is six: what is
left is the mean residual life at its age.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from bullswarm.routing.types import Durations

ANY = "*"
_SHORTEST_MINUTES = 1 / 60


class _Table:
    """Sorted durations with the sum of every tail."""

    __slots__ = ("_sorted", "_tails")

    def __init__(self, minutes: Sequence[float]) -> None:
        self._sorted = sorted(d for d in minutes if 0.0 < d < math.inf)
        self._tails = [0.0, *accumulate(reversed(self._sorted))][::-1]

    def residual(self, age: float) -> float | None:
        first = bisect_right(self._sorted, age)
        count = len(self._sorted) - first
        return self._tails[first] / count - age if count else None


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
        for row in rows:
            if row.minutes:
                key = (row.pool, row.lane)
                self._given[key] = self._given.get(key, ()) + row.minutes
        self._tables: dict[tuple[str, str], _Table | None] = {}
        self._means: dict[tuple[str, str], tuple[float, bool]] = {}
        self._joined: dict[tuple[str, str], list[float]] | None = None

    def residual(self, pool: str, lane: str, age: float) -> tuple[float, bool]:
        """``mean(d - age for d > age)`` of recorded durations, and True; at the first level that
        has any as long. Else the prior, and False. Always > 0."""
        age = max(age, 0.0)
        for key in ((pool, lane), (pool, ANY), (ANY, lane), (ANY, ANY)):
            table = self._tables[key] if key in self._tables else self._load(key)
            if table is not None:
                left = table.residual(age)
                if left is not None:
                    return max(left, _SHORTEST_MINUTES), True
        return self._prior, False

    def mean(self, pool: str, lane: str) -> tuple[float, bool]:
        """The mean duration, and whether it comes from records."""
        key = (pool, lane)
        known = self._means.get(key)
        if known is None:
            known = self._means[key] = self._plain_mean(key) or self.residual(pool, lane, 0.0)
        return known

    def _plain_mean(self, key: tuple[str, str]) -> tuple[float, bool] | None:
        """At age 0 no sorting is needed, which is what a pick over many pools asks for."""
        minutes = self._given.get(key)
        if not minutes or min(minutes) <= 0.0:
            return None
        mean = sum(minutes) / len(minutes)
        return (max(mean, _SHORTEST_MINUTES), True) if mean < math.inf else None

    def _load(self, key: tuple[str, str]) -> _Table | None:
        minutes: Sequence[float] = self._given.get(key, ())
        if not minutes and ANY in key:
            minutes = self._join().get(key, ())
        table = _Table(minutes) if minutes else None
        self._tables[key] = table
        return table

    def _join(self) -> dict[tuple[str, str], list[float]]:
        if self._joined is None:
            joined: dict[tuple[str, str], list[float]] = {}
            rows = [(k, m) for k, m in self._given.items() if ANY not in k]
            for (pool, lane), minutes in rows or self._given.items():
                for key in {(pool, ANY), (ANY, lane), (ANY, ANY)}:
                    joined.setdefault(key, []).extend(minutes)
            self._joined = joined
        return self._joined
