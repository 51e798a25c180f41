"""A snapshot seen once for any number of requests: windows, load and benches of every pool."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bullswarm.routing.durations import DurationBook
from bullswarm.routing.forecast import Load, grown
from bullswarm.routing.types import Pool, Quarantine, Snapshot, Work
from bullswarm.routing.windows import (
    LEAD_SHARE,
    NOTHING,
    length_minutes,
    running,
    sort_out,
)


class PoolView:
    """One pool at one instant, before any request: what its windows say and what its load adds.

    ``surplus`` is elapsed% - used% of the pacing window, None where either is unknown.
    ``left_share`` is the share of the pacing window left (0..1). ``worst_used`` is the fullest
    window that binds the whole pool; None where no percentage is known.
    """

    __slots__ = (
        "age_minutes",
        "benches",
        "elapsed",
        "ends_soon",
        "family_full",
        "five",
        "five_elapsed",
        "five_left",
        "five_projected",
        "five_rate",
        "full",
        "left_share",
        "load",
        "pacing",
        "pacing_left",
        "pacing_projected",
        "pacing_rate",
        "pool",
        "surplus",
        "worst_used",
    )

    def __init__(
        self,
        pool: Pool,
        now: datetime,
        work: Sequence[Work],
        benches: Sequence[Quarantine],
        book: DurationBook,
    ) -> None:
        self.pool = pool
        self.benches = benches
        reading = pool.reading
        seen = reading.observed_at if reading is not None else None
        self.age_minutes = (now - seen).total_seconds() / 60.0 if seen is not None else None
        windows = running(reading, now)
        pacing, five, self.full, self.family_full, self.worst_used = (
            sort_out(windows, pool.pacing, pool.reserve_pct) if windows else NOTHING
        )
        self.pacing = pacing
        self.five = five
        self.five_rate: float | None = None
        self.pacing_rate: float | None = None
        for rate in pool.rates:
            if rate.family is None:
                if five is not None and rate.kind == "five_hour":
                    self.five_rate = rate.per_minute
                elif pacing is not None and rate.kind == pacing.kind:
                    self.pacing_rate = rate.per_minute

        self.pacing_left: float | None = None
        self.left_share: float | None = None
        self.elapsed: float | None = None
        self.surplus: float | None = None
        self.ends_soon = False
        if pacing is not None and pacing.resets_at is not None:
            left = self.pacing_left = (pacing.resets_at - now).total_seconds() / 60.0
            share = left / length_minutes(pacing)
            if share > 1.0:
                # A reset further away than the length: nothing of the window is over yet.
                share = 1.0
            self.left_share = share
            self.elapsed = elapsed = 100.0 * (1.0 - share)
            self.ends_soon = share <= LEAD_SHARE[pacing.kind]
            if pacing.used_pct is not None:
                self.surplus = elapsed - pacing.used_pct
        self.five_left: float | None = None
        self.five_elapsed: float | None = None
        if five is not None and five.resets_at is not None:
            left = self.five_left = (five.resets_at - now).total_seconds() / 60.0
            share = left / five.minutes if five.minutes > 0.0 else 1.0
            self.five_elapsed = 100.0 * (1.0 - share) if share < 1.0 else 0.0

        self.five_projected = five.used_pct if five is not None else None
        self.pacing_projected = pacing.used_pct if pacing is not None else None
        self.load = _IDLE
        if work:
            self.set_work(work, now, book)

    def set_work(self, work: Sequence[Work], now: datetime, book: DurationBook) -> None:
        """Count this work (at least one), and only this, on the pool."""
        five, pacing = self.five, self.pacing
        reading = self.pool.reading
        self.load = load = Load(
            work, reading.observed_at if reading is not None else None, now, book
        )
        unread = load.unread_minutes
        self.five_projected = grown(
            five.used_pct if five is not None else None,
            self.five_rate,
            unread + load.rest_minutes(self.five_left),
        )
        self.pacing_projected = grown(
            pacing.used_pct if pacing is not None else None,
            self.pacing_rate,
            unread + load.rest_sum,
        )


class FleetView:
    """Every pool of a snapshot, and what is in flight over all of them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.now = now = snapshot.now
        self.config = snapshot.config
        self.book = DurationBook(snapshot.durations, snapshot.config.bootstrap_minutes)
        self._work: dict[str, list[Work]] = {}
        self.inflight_total = 0
        for one in snapshot.work:
            mine = self._work.get(one.pool)
            if mine is None:
                self._work[one.pool] = [one]
            else:
                mine.append(one)
            if one.ended_at is None or one.ended_at > now:
                self.inflight_total += 1
        benches: dict[str, list[Quarantine]] = {}
        for bench in snapshot.quarantines:
            if bench.until > now:
                benches.setdefault(bench.pool, []).append(bench)
        work, book = self._work, self.book
        self.pools = [
            PoolView(pool, now, work.get(pool.name, ()), benches.get(pool.name, ()), book)
            for pool in snapshot.pools
        ]
        self.names = {pool.name for pool in snapshot.pools}

    def add(self, work: Work) -> None:
        """Count one more agent in flight, for the requests after it."""
        mine = self._work.setdefault(work.pool, [])
        mine.append(work)
        self.inflight_total += 1
        for view in self.pools:
            if view.pool.name == work.pool:
                view.set_work(mine, self.now, self.book)

    def rests(self) -> list[float]:
        """The expected rest in minutes of everything in flight, shortest first; work on pools that
        are gone included."""
        known = [rest for view in self.pools for rest in view.load.rests]
        for name, work in self._work.items():
            if name not in self.names:
                known.extend(Load(work, None, self.now, self.book).rests)
        return sorted(known)


_IDLE = Load((), None, datetime.min, DurationBook((), 1.0))
