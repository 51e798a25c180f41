"""A snapshot seen once for any number of requests: windows, load and benches of every pool."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bullswarm.routing.durations import DurationBook
from bullswarm.routing.forecast import Load, grown
from bullswarm.routing.types import Pool, Quarantine, Snapshot, Window, Work
from bullswarm.routing.windows import (
    LEAD_SHARE,
    length_minutes,
    pacing_window,
    pick_window,
    rate_of,
    running,
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
        "windows",
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
        self.windows = windows = running(reading, now)
        self.pacing = pacing_window(windows, pool.pacing)
        self.five = pick_window(windows, "five_hour")
        self.full = self.family_full = _NO_WINDOWS
        self.worst_used: float | None = None
        self.pacing_left: float | None = None
        self.left_share: float | None = None
        self.elapsed: float | None = None
        self.surplus: float | None = None
        self.ends_soon = False
        self.pacing_rate: float | None = None
        self.five_left: float | None = None
        self.five_elapsed: float | None = None
        self.five_rate: float | None = None
        if windows:
            self._look_at_fullness(pool)
            if self.pacing is not None:
                self._look_at_pacing(pool, self.pacing, now)
            if self.five is not None:
                self._look_at_five(pool, self.five, now)
        self.set_work(work, now, book)

    def set_work(self, work: Sequence[Work], now: datetime, book: DurationBook) -> None:
        """Count this work, and only this, on the pool."""
        five, pacing = self.five, self.pacing
        self.five_projected = five.used_pct if five is not None else None
        self.pacing_projected = pacing.used_pct if pacing is not None else None
        if not work:
            self.load = _IDLE
            return
        reading = self.pool.reading
        self.load = load = Load(
            work, reading.observed_at if reading is not None else None, now, book
        )
        unread = load.unread_minutes
        self.five_projected = grown(
            self.five_projected, self.five_rate, unread + load.rest_minutes(self.five_left)
        )
        self.pacing_projected = grown(
            self.pacing_projected, self.pacing_rate, unread + load.rest_sum
        )

    def _look_at_fullness(self, pool: Pool) -> None:
        worst = -1.0
        for window in self.windows:
            used = window.used_pct
            if used is None:
                continue
            line = 100.0 - pool.reserve_pct if window is self.pacing else 100.0
            if window.family is not None:
                if used >= line:
                    self.family_full = (*self.family_full, window)
                continue
            if used > worst:
                worst = used
            if used >= line:
                self.full = (*self.full, window)
        if worst >= 0.0:
            self.worst_used = worst

    def _look_at_pacing(self, pool: Pool, pacing: Window, now: datetime) -> None:
        self.pacing_rate = rate_of(pool.rates, pacing)
        if pacing.resets_at is None:
            return
        left = self.pacing_left = (pacing.resets_at - now).total_seconds() / 60.0
        share = left / length_minutes(pacing)
        if share > 1.0:
            # A reset further away than the length: nothing of the window is over yet.
            share = 1.0
        self.left_share = share
        self.elapsed = elapsed = 100.0 * (1.0 - share)
        self.ends_soon = share <= LEAD_SHARE.get(pacing.kind, 0.0)
        if pacing.used_pct is not None:
            self.surplus = elapsed - pacing.used_pct

    def _look_at_five(self, pool: Pool, five: Window, now: datetime) -> None:
        self.five_rate = rate_of(pool.rates, five)
        if five.resets_at is None:
            return
        left = self.five_left = (five.resets_at - now).total_seconds() / 60.0
        share = left / length_minutes(five)
        self.five_elapsed = 100.0 * (1.0 - share) if share < 1.0 else 0.0


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


_NO_WINDOWS: tuple[Window, ...] = ()
_IDLE = Load((), None, datetime.min, DurationBook((), 1.0))
