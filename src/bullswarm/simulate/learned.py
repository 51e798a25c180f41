"""What a simulated home learns as it runs: durations, rates and health, in routing's own values.

Rates come from ``meters.rates`` over short stretches of readings and work, merged with its half
life: the whole series at every reading would say the same and take hours.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from datetime import datetime

from bullswarm.meters.rates import HALF_LIFE_MINUTES, rates
from bullswarm.routing.types import Durations, Health, Rate, Reading, WindowKind, Work

KEPT = 200
"""Durations kept for each pool and lane, as the store keeps them."""
STRETCH_MINUTES = 60.0
HEALTH_MINUTES = 60.0


class DurationRecords:
    """The newest durations by pool and lane, as a tuple that is made anew only when it changed."""

    def __init__(self) -> None:
        self._newest: dict[tuple[str, str], deque[float]] = {}
        self._sorted: dict[tuple[str, str], list[float]] = {}
        self._rows: dict[tuple[str, str], Durations] = {}
        self._all: tuple[Durations, ...] | None = ()

    def add(self, pool: str, lane: str, minutes: float) -> None:
        """Work that ran its whole course."""
        key = (pool, lane)
        newest = self._newest.setdefault(key, deque())
        ordered = self._sorted.setdefault(key, [])
        newest.append(minutes)
        insort(ordered, minutes)
        if len(newest) > KEPT:
            del ordered[bisect_left(ordered, newest.popleft())]
        # Sorted already: routing sorts what it gets, and that is free then.
        self._rows[key] = Durations(pool=pool, lane=lane, minutes=tuple(ordered))
        self._all = None

    def rows(self) -> tuple[Durations, ...]:
        """All of them."""
        if self._all is None:
            self._all = tuple(self._rows.values())
        return self._all


class RateRecords:
    """The measured rates of one pool. Feed it every reading; ``started`` and ``ended`` every piece
    of work."""

    def __init__(self, pool: str) -> None:
        self.pool = pool
        self.rates: tuple[Rate, ...] = ()
        self._readings: list[Reading] = []
        self._work: dict[str, Work] = {}
        self._sums: dict[WindowKind, tuple[float, float, float]] = {}
        self._merged_at: datetime | None = None

    def put(self, work: Work) -> None:
        """A piece of work that started, or the same one when it ended."""
        self._work[work.id] = work

    def read(self, reading: Reading, now: datetime) -> bool:
        """Take a reading in; True where the rates changed."""
        if not reading.windows:
            return False
        readings = self._readings
        readings.append(reading)
        first = readings[0].observed_at
        assert first is not None
        age = (now - first).total_seconds() / 60.0
        if len(readings) < 2 or (self.rates and age < STRETCH_MINUTES):
            return False
        if not self._work:
            readings[:] = [reading]
            return False
        found = rates(readings, list(self._work.values()), now)
        found = tuple(rate for rate in found if rate.per_minute is not None)
        if not found:
            # Under five worker-minutes: the stretch goes on, so that nothing is lost.
            return False
        decay = 1.0
        if self._merged_at is not None:
            age = (now - self._merged_at).total_seconds() / 60.0
            decay = 0.5 ** (age / HALF_LIFE_MINUTES)
        merged: list[Rate] = []
        for rate in found:
            points, weight, plain = self._sums.get(rate.kind, (0.0, 0.0, 0.0))
            assert rate.per_minute is not None
            points = points * decay + rate.per_minute * rate.worker_minutes
            weight = weight * decay + rate.worker_minutes
            plain += rate.worker_minutes
            self._sums[rate.kind] = (points, weight, plain)
            merged.append(Rate(kind=rate.kind, per_minute=points / weight, worker_minutes=plain))
        self._merged_at = now
        known = {rate.kind for rate in merged}
        self.rates = (*merged, *(r for r in self.rates if r.kind not in known))
        readings[:] = [reading]
        since = reading.observed_at
        self._work = {
            id: one
            for id, one in self._work.items()
            if one.ended_at is None or (since is not None and one.ended_at > since)
        }
        return True


class HealthRecords:
    """Attempts, errors and the median seconds of successes in the last hour, of one pool."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, bool, bool, float]] = deque()
        self.health = Health()

    def add(self, at: float, ok: bool, error: bool, minutes: float) -> None:
        """One attempt that ended at ``at``. A spent quota is no error."""
        self._recent.append((at, ok, error, minutes * 60.0))

    def look(self, now: float) -> bool:
        """Count anew; True where it changed."""
        recent = self._recent
        while recent and recent[0][0] < now - HEALTH_MINUTES:
            recent.popleft()
        if not recent and not self.health.attempts:
            return False
        seconds = sorted(s for _, ok, _, s in recent if ok)
        half = len(seconds) // 2
        median = None
        if seconds:
            median = seconds[half] if len(seconds) % 2 else (seconds[half - 1] + seconds[half]) / 2
        health = Health(
            attempts=len(recent),
            errors=sum(error for _, _, error, _ in recent),
            median_seconds=median,
        )
        changed = health != self.health
        self.health = health
        return changed
