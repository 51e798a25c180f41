"""The bound: no policy beats it, and where the answer is plain it is that."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simkit import burst, fleet, pool, scenario

from bullswarm.simulate import bound, draw, simulate
from bullswarm.simulate.policies import USUAL
from bullswarm.simulate.scenario import staggered
from bullswarm.simulate.types import EventSpec, FleetSpec, LaneSpec, MeterSpec, PoolSpec, WorkSpec

LANES = ("analyze", "build", "chore")


@st.composite
def pools(draw_: st.DrawFn, name: str) -> PoolSpec:
    starts = draw_(st.sampled_from(["first-use", "fixed"]))
    fixed = starts == "fixed"
    paced = draw_(st.sampled_from(["weekly", "weekly", "monthly", None]))
    capacity = draw_(st.sampled_from([60.0, 250.0, 900.0]))
    return PoolSpec(
        name=name,
        five_hour=draw_(st.sampled_from([None, 20.0, 60.0, 200.0])),
        weekly=capacity if paced == "weekly" else None,
        monthly=capacity if paced == "monthly" else None,
        starts=starts,
        resets_in_hours=draw_(st.sampled_from([None, 0.0, 5.0, 30.0])) if fixed else None,
        used=draw_(st.sampled_from([0.0, 40.0, 95.0])) if fixed else 0.0,
        meter=draw_(st.sampled_from([True, True, False])),
        names_reset=draw_(st.booleans()),
        lanes=draw_(st.sampled_from([LANES, LANES, ("build",)])),
        speed=draw_(st.sampled_from([1.0, 1.0, 0.5, 2.0])),
        value=draw_(st.sampled_from([None, None, 100.0])) if paced else None,
        minute_value=None if paced else 1.0,
        cost_rank=draw_(st.sampled_from([1.0, 2.0])),
        latency=draw_(st.sampled_from(["fast", "slow"])),
    )


@st.composite
def fleets(draw_: st.DrawFn) -> FleetSpec:
    names = ("a", "b", "c")[: draw_(st.integers(1, 3))]
    made = tuple(draw_(pools(name)) for name in names)
    everywhere = any(set(pool.lanes) == set(LANES) for pool in made)
    lanes = {"build": LaneSpec(mean=draw_(st.sampled_from([4.0, 12.0])))}
    if everywhere:
        lanes["chore"] = LaneSpec(mean=3.0)
    return FleetSpec(
        name="random",
        pools=made,
        days=draw_(st.sampled_from([0.4, 1.5, 4.0])),
        work=WorkSpec(
            tasks_per_day=draw_(st.sampled_from([10.0, 40.0, 120.0])),
            burst=(1, draw_(st.integers(1, 12))),
            lanes=lanes,  # type: ignore[arg-type]
            longest=draw_(st.sampled_from([20.0, 120.0])),
        ),
        events=EventSpec(
            early_resets=draw_(st.sampled_from([0.0, 2.0])),
            outages=draw_(st.sampled_from([0.0, 3.0])),
        ),
        meter=MeterSpec(late=draw_(st.sampled_from([0.0, 2.0]))),
        worker_cap=draw_(st.sampled_from([None, 1, 3])),
    )


@settings(max_examples=60, deadline=None)
@given(fleets(), st.integers(0, 10**6), st.sampled_from(USUAL), st.booleans())
def test_no_policy_beats_the_bound(one: FleetSpec, seed: int, policy: str, stagger: bool) -> None:
    drawn = draw(one, seed)
    best = bound(drawn)
    out = simulate(staggered(drawn) if stagger else drawn, policy)
    assert out.harvested <= best * (1 + 1e-6) + 1e-6
    assert (
        best
        <= sum(
            max(p.value_per_minute * p.speed for p in one.pools) * t.minutes for t in drawn.tasks
        )
        * (1 + 1e-6)
        + 1e-6
    ), "nothing is worth more than all the work there is"


@pytest.mark.parametrize(
    ("capacity", "tasks", "best"),
    [
        # All that arrives fits.
        (200.0, burst(0, 5, 10.0), 50.0),
        # A window may begin before and one after: of 15 tasks at most two windows' worth counts.
        (40.0, burst(0, 15, 10.0), 40.0 * 2),
        # Nothing that can't end within the time counts.
        (200.0, [(0.0, 10.0), (570.0, 60.0)], 10.0),
    ],
)
def test_plain_cases(capacity: float, tasks: list[tuple[float, float]], best: float) -> None:
    one = scenario(
        fleet(pool("a", five_hour=capacity, weekly=None, minute_value=1.0), days=600 / 1440), *tasks
    )
    assert bound(one) == pytest.approx(best)


def test_a_fixed_week_holds_what_it_holds() -> None:
    used = pool("a", five_hour=None, weekly=100.0, starts="fixed", resets_in_hours=24, used=70.0)
    one = scenario(fleet(used, days=3.0), *burst(0, 40, 10.0))
    assert bound(one) == pytest.approx(30.0 + 100.0)
    early = scenario(fleet(used, days=3.0), *burst(0, 40, 10.0), early_resets={"a": (600.0,)})
    assert bound(early) == pytest.approx(30.0 + 100.0)
    twice = scenario(fleet(used, days=3.0), *burst(0, 40, 10.0), early_resets={"a": (600.0, 900.0)})
    assert bound(twice) == pytest.approx(30.0 + 200.0)


def test_an_outage_and_the_cap_on_workers_bind_it() -> None:
    free = pool("a", five_hour=None, weekly=None, minute_value=1.0)
    day = scenario(fleet(free, days=1.0, worker_cap=1), *burst(0, 300, 10.0))
    assert bound(day) == pytest.approx(1440.0)
    out = scenario(
        fleet(free, days=1.0, worker_cap=1), *burst(0, 300, 10.0), outages={"a": ((0.0, 600.0),)}
    )
    assert bound(out) == pytest.approx(840.0)


def test_of_no_work_there_is_nothing_to_harvest() -> None:
    assert bound(scenario(fleet())) == 0.0
