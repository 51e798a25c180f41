"""One pool of a running simulation: the account as it is, and what routing gets to see of it."""

from __future__ import annotations

from math import floor
from typing import Any

from bullswarm.routing.types import Model, Pool, Quarantine, Reading, Window, Work
from bullswarm.simulate.account import Account, TrueWindow
from bullswarm.simulate.calendar import Clock
from bullswarm.simulate.learned import HealthRecords, RateRecords
from bullswarm.simulate.types import FIVE_HOURS, WEEK, PoolSpec

_MONTH = 43200.0

Sample = tuple[tuple[str, float, float | None], ...]
"""Kind, used percent and end of each window at one instant."""


class Attempt:
    """One agent on a pool. ``minutes`` is how long it takes there if nothing stops it; ``refused``
    ("auth", "limit") says that it was turned away at its start, and is about to be told so."""

    __slots__ = ("alive", "minutes", "pool", "refused", "start", "task", "work")

    def __init__(self, task: int, pool: PoolState, start: float, minutes: float, work: Work):
        self.task = task
        self.pool = pool
        self.start = start
        self.minutes = minutes
        self.work = work
        self.alive = True
        self.refused: str | None = None


class PoolState:
    """``moved``: something happened since the last sample, so the meter must be read again.
    ``version`` tells events that still hold from those that were overtaken."""

    def __init__(self, spec: PoolSpec, account: Account, clock: Clock) -> None:
        self.spec = spec
        self.account = account
        self.inflight: dict[str, Attempt] = {}
        self.unread: list[Work] = []
        self.benches: list[Quarantine] = []
        self.rates = RateRecords(spec.name)
        self.health = HealthRecords()
        self.reading: Reading | None = None
        self.outages = 0
        self.version = 0
        self.moved = True
        self.paused_until: float | None = None
        self._clock = clock
        self._fixed = _fixed_part(spec)
        self.pool = self._made()

    def sample(self) -> Sample:
        """What is true now: what a meter will say ``late`` minutes from now."""
        return tuple((w.kind, w.used, w.end) for w in self.account.windows)

    def late_sample(self, late: float) -> Sample:
        """What a meter that is so late says now, at the present burn."""
        load, now = self.account.load, self.account.now

        def before(window: TrueWindow) -> float:
            since = now if window.begin is None else window.begin
            return max(0.0, window.used - window.rate * load * min(late, now - since))

        return tuple((w.kind, before(w), w.end) for w in self.account.windows)

    def read(self, sample: Sample, now: float) -> None:
        """The meter shows this sample, in whole numbers. Work that ended before is read now."""
        clock = self._clock
        at = clock.time(now)
        self.reading = Reading(
            pool=self.spec.name,
            source="live",
            observed_at=at,
            windows=tuple(
                Window(
                    kind="five_hour"
                    if kind == "five_hour"
                    else "weekly"
                    if kind == "weekly"
                    else "monthly",
                    minutes=_LENGTHS[kind],
                    used_pct=float(floor(used + 1e-9)),
                    resets_at=clock.time(end) if end is not None else None,
                )
                for kind, used, end in sample
            ),
        )
        self.unread.clear()
        self.rates.read(self.reading, at)
        self.refresh(now)

    def refresh(self, now: float) -> None:
        """Make the pool anew as routing sees it."""
        self.health.look(now)
        self.pool = self._made()

    def _made(self) -> Pool:
        until = self.paused_until
        return Pool(
            **self._fixed,
            reading=self.reading,
            rates=self.rates.rates,
            health=self.health.health,
            paused=until is not None,
            paused_until=self._clock.time(until) if until is not None else None,
        )


_LENGTHS = {"five_hour": FIVE_HOURS, "weekly": WEEK, "monthly": _MONTH}


def _fixed_part(spec: PoolSpec) -> dict[str, Any]:
    return {
        "name": spec.name,
        "provider": spec.name,
        "lanes": spec.lanes,
        "models": (Model(name="model", latency=spec.latency),),
        "default_model": "model",
        "cost_rank": spec.cost_rank,
        "pacing": "monthly" if spec.monthly is not None else "weekly" if spec.weekly else None,
    }
