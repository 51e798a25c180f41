"""Limits on echo pools: what is benched, until when and why, and where the work goes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from runskit import WORK, Bench, kinds_of, pools_of, task_of

from bullswarm.routing.types import Policy
from rig import World

LIMIT = "limit-event five_hour {}"


def test_quarantine_benches_until_the_named_reset_and_the_work_moves(world: World) -> None:
    bench = Bench(world, "a", "b")
    bench.script("a", "say I read half of it.", LIMIT.format(bench.in_(5400)))
    verdict = bench.go()
    assert verdict.ok and pools_of(verdict) == ["a", "b"] and kinds_of(verdict) == ["quota", None]
    held = bench.benches()["echo:a"]
    assert abs((held.until - bench.now()).total_seconds() - 5400) < 60
    assert held.kind == "quota" and held.since is not None and held.source == "provider"
    assert "five_hour" in held.reason and "the reset it named" in held.reason
    assert "I read half of it." in task_of(verdict, 2)
    # Another process, the same answer.
    assert pools_of(bench.go()) == ["b"]


@pytest.mark.parametrize(
    ("meter", "seconds", "word"), [(None, 1800, "guess"), ((100.0, 40.0), 7200, "5-hour reset")]
)
def test_without_a_named_reset_the_meters_counts_and_else_half_an_hour(
    world: World, meter: tuple[float, float] | None, seconds: int, word: str
) -> None:
    bench = Bench(world, "a", "b")

    def spend(item: Any) -> None:
        # The meter is full only once the worker ran.
        if item.kind == "started" and meter is not None and item.pool == "echo:a":
            bench.meter("a", *meter)

    bench.script("a", "limit session")
    assert bench.go(on=spend).ok
    held = bench.benches()["echo:a"]
    assert abs((held.until - bench.now()).total_seconds() - seconds) < 60
    assert word in held.reason


def test_guesses_in_a_row_double_and_a_success_forgets_them(world: World) -> None:
    bench = Bench(world, "a", "b")
    bench.script("a", "limit session")
    lengths = []
    for _ in range(3):
        assert bench.go().ok
        held = bench.benches()["echo:a"]
        lengths.append(round((held.until - bench.now()).total_seconds() / 60))
        bench.skew += timedelta(minutes=lengths[-1] + 1)
    assert lengths == [30, 60, 120]
    bench.script("a")
    assert pools_of(bench.go()) == ["a"]
    bench.script("a", "limit session")
    assert bench.go().ok
    held = bench.benches()["echo:a"]
    assert round((held.until - bench.now()).total_seconds() / 60) == 30


def test_a_hint_longer_than_the_longest_window_is_cut_to_it_then_probed_once(world: World) -> None:
    bench = Bench(world, "a", "b")
    bench.script("a", LIMIT.format(bench.in_(86400 * 40)))
    assert bench.go().ok
    held = bench.benches()["echo:a"]
    assert abs(held.until - bench.now() - timedelta(days=7)) < timedelta(minutes=2)
    assert "cut to it" in held.reason

    bench.skew += timedelta(days=7, minutes=1)
    bench.script("a")
    seen: list[Any] = []

    def while_one_tries(item: Any) -> None:
        if item.kind == "started" and not seen:
            seen.append(bench.benches()["echo:a"].kind)
            seen.append(pools_of_second(bench))

    verdict = bench.go(on=while_one_tries)
    assert pools_of(verdict) == ["a"] and seen == ["probe", ["b"]]
    assert not bench.benches(), "a success forgets the bench"


def pools_of_second(bench: Bench) -> list[str]:
    seen, other = bench.seen, bench.go()
    bench.seen = seen
    return pools_of(other)


def test_a_notice_that_a_fresh_meter_contradicts_benches_for_minutes_with_both_facts(
    world: World,
) -> None:
    bench = Bench(world, "a", "b")
    bench.meter("a", 20, 30)
    bench.meter("b", 20, 30)
    bench.script("a", LIMIT.format(bench.in_(86400 * 3)))
    verdict = bench.go()
    assert verdict.ok and pools_of(verdict) == ["a", "b"]
    held = bench.benches()["echo:a"]
    minutes = (held.until - bench.now()).total_seconds() / 60
    assert 5 < minutes <= 10
    assert "usage limit" in held.reason and "20%" in held.reason
    # The same meter does not lift it at once.
    assert pools_of(bench.go()) == ["b"]


def test_a_fresh_reading_that_shows_room_lifts_a_quota_bench_early(world: World) -> None:
    bench = Bench(world, "a", "b")
    bench.script("a", LIMIT.format(bench.in_(5400)))

    def spend(item: Any) -> None:
        if item.kind == "started" and item.pool == "echo:a":
            bench.meter("a", 100, 40)

    assert pools_of(bench.go(on=spend)) == ["a", "b"]
    bench.script("a")
    assert pools_of(bench.go()) == ["b"]
    for step in (1, 2):
        # A reset is believed once two readings agree on it.
        bench.skew = timedelta(minutes=step)
        bench.meter("a", 3, 40, h=5)
        bench.rows()
    assert not bench.benches()
    assert pools_of(bench.go()) == ["a"]
    events = [e.event for e in bench.app().store.bench_history("echo:a")]
    assert events[:2] == ["released-early", "benched"]


def test_release_by_hand_and_pause_with_an_end(world: World) -> None:
    bench = Bench(world, "a", "b")
    bench.script("a", LIMIT.format(bench.in_(5400)))
    bench.go()
    bench.script("a")
    assert pools_of(bench.go()) == ["b"]
    assert world.bullswarm("pools", "release", "echo:a", "--json").json == {
        "pool": "echo:a",
        "lifted": 1,
    }
    assert pools_of(bench.go()) == ["a"]

    world.bullswarm("pools", "pause", "echo:a", "--until", "2h")
    assert pools_of(bench.go()) == ["b"] and "paused" in bench.rows()["echo:a"].state
    bench.skew = timedelta(hours=2, minutes=1)
    assert pools_of(bench.go()) == ["a"], "a pause ends by itself"
    bench.skew = timedelta(0)
    assert world.bullswarm("pools", "resume", "echo:a", "--json").json["wasPaused"]
    assert pools_of(bench.go()) == ["a"]


@pytest.mark.parametrize(("used", "reserve", "eligible"), [(79, 20, True), (81, 20, False)])
def test_a_reserve_counts_as_full_at_a_hundred_minus_it(
    world: World, used: float, reserve: int, eligible: bool
) -> None:
    bench = Bench(world, "a", "b")
    bench.meter("a", 10, used)
    done = world.bullswarm("strategy", "set-subscription", "echo:a", "--reserve", str(reserve))
    assert done.code == 0
    row = bench.rows()["echo:a"]
    assert row.eligible is eligible
    if not eligible:
        assert "20% kept in reserve" in row.state
    # The ceiling of this strategy is its own affair.
    policy = Policy(strategy="prefer-order", prefer=("echo:a", "echo:b"), quota_ceiling=100)
    assert pools_of(bench.go(policy=policy)) == (["a"] if eligible else ["b"])


def test_the_first_run_of_the_day_on_a_full_pool_goes_elsewhere_or_waits(world: World) -> None:
    bench = Bench(world, "a", "b")
    bench.meter("a", 100, 40)
    assert pools_of(bench.go()) == ["b"]
    verdict = bench.go(pool="echo:a")
    assert not verdict.ok and verdict.failure_kind == "unavailable" and not verdict.attempts
    assert verdict.retry_at is not None
    named = datetime.fromisoformat(verdict.retry_at) - bench.now()
    assert timedelta(hours=1, minutes=58) < named < timedelta(hours=2, minutes=1)

    def later(item: Any) -> None:
        if item.kind == "held":
            bench.skew = timedelta(hours=2, minutes=1)
            bench.meter("a", 1, 40, h=5)

    waited = bench.go(pool="echo:a", on_limit="wait", on=later)
    assert waited.ok and pools_of(waited) == ["a"]
    assert any("reset" in text for text in bench.told("held"))


def test_quota_never_spends_the_automatic_retry(world: World) -> None:
    bench = Bench(world, "a", "b", "c", "d")
    for name in ("a", "b"):
        bench.script(name, LIMIT.format(bench.in_(5400)))
    bench.script("c", "error the model fell over")
    verdict = bench.go()
    assert verdict.ok
    assert kinds_of(verdict) == ["quota", "quota", "provider", None]
    assert pools_of(verdict) == ["a", "b", "c", "d"]


def test_return_stores_nothing_and_hands_the_limit_back(world: World) -> None:
    bench = Bench(world, "a", "b", mode="return")
    bench.script("a", LIMIT.format(bench.in_(5400)))
    verdict = bench.go()
    assert not verdict.ok and verdict.failure_kind == "quota" and pools_of(verdict) == ["a"]
    assert not bench.benches()
    # No meter: it counts as full until the reset that was named, and no longer.
    assert pools_of(bench.go()) == ["b"]
    bench.skew = timedelta(seconds=5500)
    bench.script("a")
    assert pools_of(bench.go()) == ["a"]


def test_return_without_any_known_reset_leaves_the_pool_in_play(world: World) -> None:
    bench = Bench(world, "a", "b", mode="return")
    bench.script("a", "limit session")
    assert pools_of(bench.go()) == ["a"]
    assert pools_of(bench.go()) == ["a"]


def test_return_reads_the_meter_again_at_once(world: World) -> None:
    bench = Bench(world, "a", "b", mode="return")
    bench.meter("a", 30, 30)

    def spend(item: Any) -> None:
        if item.kind == "started" and item.pool == "echo:a":
            bench.meter("a", 100, 40)

    bench.script("a", "limit session")
    verdict = bench.go(on=spend)
    assert verdict.failure_kind == "quota"
    assert "full (100%)" in bench.rows()["echo:a"].state


def test_the_cost_of_every_attempt_stands_in_the_verdict(world: World) -> None:
    bench = Bench(world, "a", "b")
    bench.script("a", "say half", LIMIT.format(bench.in_(5400)))
    verdict = bench.go(WORK)
    assert all(a.wall_s > 0 and a.usage.input_tokens == 100 for a in verdict.attempts)
    assert verdict.usage.input_tokens == 200
    assert verdict.wall_s >= sum(a.wall_s for a in verdict.attempts)


def test_a_family_that_no_model_bears_benches_the_pool(world: World) -> None:
    bench = Bench(world, "a", "b")
    bench.script("a", f"limit-event seven_day_opus {bench.in_(5400)}")
    assert bench.go().ok
    assert bench.benches()["echo:a"].family is None


def test_a_family_limit_leaves_the_other_models_of_the_pool(world: World) -> None:
    bench = Bench(world, "a", "b")
    bench.script("a", f"limit-event seven_day_large {bench.in_(5400)}")
    assert pools_of(bench.go(model="echo-large")) == ["a", "b"]
    assert bench.benches()["echo:a"].family == "large"
    bench.script("a")
    assert pools_of(bench.go(model="echo-large")) == ["b"]
    assert pools_of(bench.go(model="echo-small")) == ["a"]
    plain = bench.go()
    assert pools_of(plain) == ["a"] and plain.attempts[0].model == "echo-small"


def test_work_that_a_limit_cut_off_is_routed_as_longer_than_it_ran(world: World) -> None:
    bench = Bench(world, "a", "b")
    bench.script("a", "sleep 1", LIMIT.format(bench.in_(5400)))
    verdict = bench.go()
    assert verdict.ok and pools_of(verdict) == ["a", "b"]
    assert verdict.run_id is not None
    first, second = bench.app().store.decisions(verdict.run_id)
    assert first.request.ran_minutes == 0.0
    assert 1 / 60 <= second.request.ran_minutes < 1.0
    assert second.decision.candidates[0].expected_minutes is not None
    assert second.decision.candidates[0].expected_minutes > second.request.ran_minutes
