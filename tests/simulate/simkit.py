"""Small fleets and scenarios for the simulation's tests."""

from __future__ import annotations

from typing import Any

from bullswarm.simulate.types import (
    EventSpec,
    FleetSpec,
    MeterSpec,
    PoolSpec,
    Scenario,
    Task,
    WorkSpec,
)

QUIET = EventSpec(early_resets=0.0, outages=0.0)


def pool(name: str = "a", **more: Any) -> PoolSpec:
    more.setdefault("five_hour", 200.0)
    more.setdefault("weekly", 1800.0)
    return PoolSpec(name=name, **more)


def fleet(*pools: PoolSpec, **more: Any) -> FleetSpec:
    more.setdefault("events", QUIET)
    more.setdefault("days", 3.0)
    return FleetSpec(name="test", pools=pools or (pool(),), **more)


def scenario(one: FleetSpec, *tasks: tuple[float, float], **more: Any) -> Scenario:
    """Tasks as (minute of arrival, minutes of work), all of them in the build lane."""
    made = tuple(Task(at, "build", minutes) for at, minutes in sorted(tasks))
    return Scenario(fleet=one, seed=1, horizon=one.days * 1440.0, tasks=made, **more)


def burst(at: float, count: int, minutes: float) -> list[tuple[float, float]]:
    return [(at, minutes)] * count


SMALL = fleet(pool("a"), pool("b", starts="fixed", resets_in_hours=20.0, used=60.0))
BUSY = fleet(
    pool("a", five_hour=60.0, weekly=300.0),
    pool("b", five_hour=60.0, weekly=300.0, starts="fixed", resets_in_hours=30.0, used=40.0),
    work=WorkSpec(load=1.5),
    events=EventSpec(early_resets=0.5, outages=2.0),
    days=5.0,
)
PROMPT = MeterSpec(every=5.0, late=0.0)
