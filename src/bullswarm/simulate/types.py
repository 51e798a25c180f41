"""What a simulation is asked: fleets as people describe them, and scenarios drawn from them.

Times are minutes since the start of the simulation, percentages percent points (0..100).
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from bullswarm.routing.types import LANES, Admission, LatencyClass

Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Percent = Annotated[float, Meta(ge=0, le=100)]
Share = Annotated[float, Meta(ge=0)]

HOUR = 60.0
DAY = 1440.0
FIVE_HOURS = 300.0
WEEK = 10080.0


class Section(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """Base of what a person may write: immutable, camelCase, an unknown key is an error."""


class PoolSpec(Section, frozen=True, kw_only=True):
    """One account. Capacities are worker-minutes that fill the window; None means that there is no
    such window. At most one of ``weekly`` and ``monthly`` is set.

    ``starts``: a "first-use" window begins with the first work after the last one ended; a "fixed"
    one follows a calendar, the running one ending ``resets_in_hours`` after the start of the
    simulation with ``used`` percent of it gone. ``meter`` False: nobody can read its use.
    ``names_reset`` False: its limit notice names no reset. ``speed`` multiplies how long work takes
    here (2 is half as fast). ``value`` is the worth of one whole pacing window: None counts the
    work that fits in; ``minute_value`` is that of a worker-minute, and takes its place. ``price``
    is what one pacing window costs; ``cost_per_minute`` that of an account without one; None is
    unknown. ``latency`` is the class of its model.
    """

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    five_hour: Positive | None = None
    weekly: Positive | None = None
    monthly: Positive | None = None
    starts: Literal["first-use", "fixed"] = "first-use"
    resets_in_hours: NotNegative | None = None
    used: Percent = 0.0
    meter: bool = True
    names_reset: bool = True
    lanes: tuple[Literal["analyze", "build", "chore"], ...] = LANES
    speed: Positive = 1.0
    value: NotNegative | None = None
    minute_value: NotNegative | None = None
    price: NotNegative | None = None
    cost_per_minute: NotNegative | None = None
    cost_rank: float = 1.0
    latency: LatencyClass = "slow"

    @property
    def pacing_capacity(self) -> float | None:
        """Worker-minutes that fill the pacing window; None without one."""
        return self.weekly if self.weekly is not None else self.monthly

    @property
    def value_per_minute(self) -> float:
        """The worth of a worker-minute here: 0 where no window is there to be harvested."""
        if self.minute_value is not None:
            return self.minute_value
        capacity = self.pacing_capacity
        if capacity is None:
            return 0.0
        return 1.0 / self.speed if self.value is None else self.value / capacity

    @property
    def money_per_minute(self) -> float | None:
        """What a worker-minute costs here; None where nobody said."""
        capacity = self.pacing_capacity
        if capacity is None:
            return self.cost_per_minute
        return None if self.price is None else self.price / capacity


class LaneSpec(Section, frozen=True, kw_only=True):
    """One lane's work. ``share`` weighs it against the other lanes, by number of tasks; ``mean``
    is the mean duration in minutes, ``sigma`` the spread of its logarithm (0.9: a long tail)."""

    share: Share = 1.0
    mean: Positive = 6.0
    sigma: Annotated[float, Meta(ge=0, le=3)] = 0.9


def _usual_lanes() -> dict[Literal["analyze", "build", "chore"], LaneSpec]:
    return {
        "analyze": LaneSpec(share=0.3, mean=5.0),
        "build": LaneSpec(share=0.5, mean=8.0),
        "chore": LaneSpec(share=0.2, mean=3.0),
    }


class WorkSpec(Section, frozen=True, kw_only=True):
    """The work that arrives. ``load`` is its worker-minutes as a share of what the fleet's pacing
    windows hold in the same time (1.0: all of it). Tasks come in bursts of ``burst`` (least, most)
    at random times; ``tasks_per_day`` takes the place of ``load`` where given. ``longest`` cuts
    the tail (minutes)."""

    load: Positive = 0.8
    tasks_per_day: Positive | None = None
    burst: tuple[Annotated[int, Meta(ge=1)], Annotated[int, Meta(ge=1)]] = (5, 20)
    lanes: dict[Literal["analyze", "build", "chore"], LaneSpec] = msgspec.field(
        default_factory=_usual_lanes
    )
    longest: Positive = 120.0


class EventSpec(Section, frozen=True, kw_only=True):
    """What goes wrong or unexpectedly right, a pool and week: ``early_resets`` (the provider gives
    all quota back before the time) and ``outages`` of the login of ``outage_minutes`` each."""

    early_resets: NotNegative = 0.05
    outages: NotNegative = 0.1
    outage_minutes: Positive = 45.0


class MeterSpec(Section, frozen=True, kw_only=True):
    """How meters are read: ``every`` so many minutes, each showing what was true ``late`` minutes
    before, as a whole number."""

    every: Annotated[float, Meta(ge=1)] = 5.0
    late: NotNegative = 2.0


class AdmissionSpec(Section, frozen=True, kw_only=True):
    """The constants of admission, where a policy holds work. Defaults are the product's."""

    five_hour_line: Percent = Admission().five_hour_line
    pacing_line: Percent = Admission().pacing_line
    cap_per_pool: Annotated[int, Meta(ge=1)] = Admission().cap_per_pool
    tail_factor: NotNegative = Admission().tail_factor
    patience_minutes: NotNegative = Admission().patience_minutes


class FleetSpec(Section, frozen=True, kw_only=True):
    """A fleet and its work. ``worker_cap`` bounds the live workers of all pools together; None
    means four a pool. ``inflight_penalty`` is surplus points for each agent in flight."""

    name: str = "fleet"
    about: str = ""
    days: Annotated[float, Meta(gt=0, le=366)] = 21.0
    pools: Annotated[tuple[PoolSpec, ...], Meta(min_length=1)]
    work: WorkSpec = WorkSpec()
    events: EventSpec = EventSpec()
    meter: MeterSpec = MeterSpec()
    admission: AdmissionSpec = AdmissionSpec()
    worker_cap: Annotated[int, Meta(ge=1)] | None = None
    inflight_penalty: Percent = 3.0

    @property
    def cap(self) -> int:
        """Live workers of all pools together."""
        return self.worker_cap if self.worker_cap is not None else 4 * len(self.pools)


class Task(msgspec.Struct, frozen=True):
    """One piece of work: when it arrives, its lane, and how long it takes at speed 1."""

    at: float
    lane: str
    minutes: float


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """All that happens, fixed before any policy runs: every policy meets the same world.

    ``tasks`` in order of arrival. ``early_resets`` are times, ``outages`` (from, to) pairs, by
    pool, in order. ``plan`` holds when an unstarted weekly window is to be started, by pool: the
    pool is left alone before. ``began`` is the real time of minute 0, as an ISO string, where the
    scenario comes from records.
    """

    fleet: FleetSpec
    seed: int
    horizon: float
    tasks: tuple[Task, ...]
    early_resets: dict[str, tuple[float, ...]] = {}
    outages: dict[str, tuple[tuple[float, float], ...]] = {}
    plan: dict[str, float] = {}
    began: str | None = None
