"""The simulation itself: what routing is told, what goes wrong, and what is counted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from simkit import BUSY, PROMPT, burst, fleet, pool, scenario

from bullswarm.routing.types import Snapshot
from bullswarm.simulate import draw, simulate
from bullswarm.simulate import world as world_module
from bullswarm.simulate.policies import BASELINES, USUAL
from bullswarm.simulate.types import DAY, Scenario


def seen_by_routing(monkeypatch: Any, one: Scenario, policy: str = "pace+hold") -> list[Snapshot]:
    """Every snapshot that the simulation hands to ``routing.serve``."""
    found: list[Snapshot] = []
    real = world_module.serve

    def serve(snapshot: Snapshot, line: Any) -> Any:
        found.append(snapshot)
        return real(snapshot, line)

    monkeypatch.setattr(world_module, "serve", serve)
    simulate(one, policy)
    return found


def test_it_decides_with_the_product_s_own_serve() -> None:
    from bullswarm.routing import serve

    assert world_module.serve is serve


def test_all_work_that_fits_is_done_and_counted_once() -> None:
    one = scenario(fleet(pool("a"), pool("b")), *burst(5, 6, 7.0), (300, 10.0))
    for policy in USUAL:
        out = simulate(one, policy)
        assert out.done == out.tasks == 7 and out.lost_to_limits == 0
        assert out.harvested == pytest.approx(6 * 7 + 10)
        assert sum(out.minutes.values()) == pytest.approx(6 * 7 + 10)
        assert out.waits == (0.0,) * 7 and out.wasted == 0.0


def test_the_same_scenario_gives_the_same_outcome_and_another_seed_another() -> None:
    first = draw(BUSY, 1)
    assert draw(BUSY, 1) == first and draw(BUSY, 2) != first
    for policy in ("pace+hold", "random", "weighted+hold"):
        assert simulate(first, policy) == simulate(draw(BUSY, 1), policy)
    assert simulate(first, "random") != simulate(draw(BUSY, 2), "random")


def test_the_world_does_not_change_with_the_policy() -> None:
    one = draw(BUSY, 3)
    before = msgspec.json.encode(one)
    for policy in USUAL:
        assert simulate(one, policy).tasks == len(one.tasks)
    assert msgspec.json.encode(one) == before


def test_meters_are_whole_numbers_that_come_late(monkeypatch: Any) -> None:
    one = scenario(fleet(pool("a")), (0.0, 60.0), (31.0, 1.0))
    snapshots = seen_by_routing(monkeypatch, one)
    by_minute = {
        round((s.now - snapshots[0].now).total_seconds() / 60, 3): s.pools[0] for s in snapshots
    }
    at = by_minute[31.0]
    assert at.reading is not None and at.reading.observed_at is not None
    five = next(w for w in at.reading.windows if w.kind == "five_hour")
    # Sampled at minute 25, shown at 27: half a point a minute, whole points only.
    assert five.used_pct == 12.0
    for snapshot in snapshots:
        reading = snapshot.pools[0].reading
        assert reading is None or all(
            w.used_pct is not None and w.used_pct == int(w.used_pct) for w in reading.windows
        )


def test_nobody_sees_what_a_pool_without_a_meter_has_used(monkeypatch: Any) -> None:
    one = scenario(fleet(pool("a", meter=False)), *burst(0, 3, 30.0), (100, 5.0))
    for snapshot in seen_by_routing(monkeypatch, one):
        assert snapshot.pools[0].reading is None and not snapshot.pools[0].rates
    out = simulate(scenario(fleet(pool("a", meter=False)), *burst(0, 30, 30.0)), "pace+hold")
    assert out.lost_to_limits > 0, "only the wall tells"


def test_a_full_window_ends_everybody_on_it_and_the_pool_is_benched(monkeypatch: Any) -> None:
    one = scenario(fleet(pool("a", five_hour=40.0), meter=PROMPT), *burst(0, 4, 30.0), (12, 1.0))
    out = simulate(one, "pace", trace=True)
    assert out.trace is not None
    # Four agents fill 40 worker-minutes in ten.
    assert out.trace.lost[:4] == [(10.0, "a")] * 4
    benched = [s for s in seen_by_routing(monkeypatch, one, "pace") if s.quarantines]
    first = benched[0].quarantines[0]
    assert first.kind == "quota" and first.pool == "a"
    left = (first.until - benched[0].now).total_seconds() / 60
    assert left == pytest.approx(290.0), "until the reset that the limit named"


def test_admission_saves_what_dies_without_it() -> None:
    held = [simulate(draw(BUSY, seed), "pace+hold") for seed in (1, 2, 3)]
    plain = [simulate(draw(BUSY, seed), "pace") for seed in (1, 2, 3)]
    assert sum(o.lost_to_limits for o in held) < sum(o.lost_to_limits for o in plain) / 3
    assert sum(o.harvested for o in held) > sum(o.harvested for o in plain)
    assert sum(o.wasted for o in held) < sum(o.wasted for o in plain) / 2


def test_an_early_reset_lifts_the_bench() -> None:
    one = fleet(pool("a", five_hour=40.0), meter=PROMPT)
    tasks = [(0, 30.0), (31, 15.0), (100, 5.0)]
    late = simulate(scenario(one, *tasks), "pace")
    early = simulate(scenario(one, *tasks, early_resets={"a": (60.0,)}), "pace")
    assert late.waits == pytest.approx((0.0, 300.0 - 31.0, 200.0))
    # Two readings agree on it before it is believed.
    assert 60.0 - 31.0 <= early.waits[1] <= 75.0 - 31.0 and early.waits[2] == 0.0


def test_an_auth_outage_fails_its_work_and_ends() -> None:
    one = scenario(fleet(), (0.0, 30.0), (20.0, 5.0), outages={"a": ((10.0, 40.0),)})
    out = simulate(one, "pace")
    assert out.lost_to_auth >= 1 and out.lost_to_limits == 0
    assert out.done == 2 and min(out.waits) >= 20.0
    other = scenario(fleet(pool("a"), pool("b")), (0.0, 30.0), outages={"a": ((10.0, 40.0),)})
    moved = simulate(other, "pace")
    assert moved.minutes["b"] == pytest.approx(30.0) and moved.lost_to_auth == 1


def test_what_is_refused_at_its_start_is_lost_and_never_done_in_no_time() -> None:
    # Blind, so routing sends work into the spent window until its reset, again and again.
    one = scenario(
        fleet(pool("a", five_hour=40.0, meter=False, names_reset=False)), *burst(0, 8, 20.0)
    )
    out = simulate(one, "pace")
    assert out.harvested == pytest.approx(20.0 * out.done)
    assert out.minutes["a"] == pytest.approx(20.0 * out.done)


def test_a_task_that_no_window_holds_dies_once_a_window_at_most_and_the_rest_is_done() -> None:
    one = scenario(
        fleet(pool("a", five_hour=60.0), days=4.0),
        (0.0, 250.0),
        *[(60.0 * n, 5.0) for n in range(1, 60)],
    )
    out = simulate(one, "pace+hold")
    assert out.done >= 55 and 1 <= out.lost_to_limits <= 4 * 24 / 5 + 1, "once a window at most"


def test_patience_counts_from_when_work_asks_and_not_from_when_it_arrives() -> None:
    """The backlog of an overloaded fleet waits at its callers: it is not impatient all at once."""
    one = scenario(fleet(pool("a", five_hour=60.0), days=3.0, worker_cap=4), *burst(0, 120, 5.0))
    out = simulate(one, "pace+hold")
    assert out.lost_to_limits <= 2 and out.done > 100


def test_a_pool_that_is_half_as_fast_takes_twice_as_long() -> None:
    out = simulate(scenario(fleet(pool("a", speed=2.0)), (0.0, 10.0)), "pace")
    assert out.minutes["a"] == pytest.approx(20.0)
    assert out.harvested == pytest.approx(10.0), "worth what the work is worth"


def test_money_is_known_or_null() -> None:
    tasks = burst(0, 4, 9.0)
    priced = simulate(scenario(fleet(pool("a", price=18.0)), *tasks), "pace")
    assert priced.cost == pytest.approx(36.0 * 18.0 / 1800.0)
    assert simulate(scenario(fleet(pool("a")), *tasks), "pace").cost is None
    unused = fleet(pool("a", price=18.0), pool("b", cost_rank=9.0, used=0.0, lanes=("chore",)))
    assert simulate(scenario(unused, *tasks), "pace").cost is not None, "nothing was spent there"
    metered = pool("a", five_hour=None, weekly=None, cost_per_minute=0.5)
    assert simulate(scenario(fleet(metered), *tasks), "pace").cost == pytest.approx(18.0)


def test_work_that_nobody_takes_waits_to_the_end() -> None:
    one = scenario(fleet(pool("a", lanes=("chore",))), (10.0, 5.0))
    out = simulate(one, "pace+hold")
    assert (out.done, out.waits) == (0, (3 * DAY - 10.0,))


def test_round_robin_goes_round_and_lowest_used_goes_where_the_meter_is_low() -> None:
    three = fleet(pool("a"), pool("b"), pool("c"))
    out = simulate(scenario(three, *[(20.0 * n, 6.0) for n in range(9)]), "round-robin")
    assert out.minutes == pytest.approx({"a": 18.0, "b": 18.0, "c": 18.0})
    full = fleet(pool("a", starts="fixed", used=50.0), pool("b", starts="fixed", used=10.0))
    low = simulate(scenario(full, *[(20.0 * n, 6.0) for n in range(9)]), "lowest-used")
    assert low.minutes == pytest.approx({"a": 0.0, "b": 54.0})


def test_weighted_prefers_what_is_left_and_random_does_not() -> None:
    lopsided = fleet(pool("a", starts="fixed", used=90.0), pool("b", starts="fixed", used=0.0))
    tasks = [(20.0 * n, 1.0) for n in range(150)]
    weighted = simulate(scenario(lopsided, *tasks), "weighted").minutes
    random = simulate(scenario(lopsided, *tasks), "random").minutes
    assert weighted["a"] < 30 < 50 < random["a"] < 100
    assert set(BASELINES) == {"round-robin", "random", "lowest-used", "weighted"}
