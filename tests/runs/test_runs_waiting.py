"""``limits.mode = wait``: seen by everybody, ended by anybody, gone on with where it stopped."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from runskit import Bench, kinds_of, pools_of, task_of, wait_for

from bullswarm.runs import Progress
from rig import World

SOON = 5400
LIMIT = "limit-event five_hour {}"


def limited(world: World, *names: str, **limits: Any) -> Bench:
    bench = Bench(world, *(names or ("a",)), mode="wait", **limits)
    for name in bench.names:
        bench.script(name, "say I read half of it.", LIMIT.format(bench.in_(SOON)))
    return bench


def past_the_reset(bench: Bench, seconds: float = SOON + 1) -> None:
    for name in bench.names:
        bench.script(name)
    bench.skew = timedelta(seconds=seconds)


def held(bench: Bench) -> list[Any]:
    return [a for a in bench.app().store.agents() if a.state == "held"]


def test_it_waits_for_the_reset_and_goes_on_with_the_same_session(world: World) -> None:
    bench = limited(world)
    seen: list[Any] = []

    def on(item: Progress) -> None:
        if item.kind == "held" and not seen:
            seen.extend(world.bullswarm("assignments", "--json").json["assignments"])
            past_the_reset(bench)

    verdict = bench.go(on=on)
    assert verdict.ok and pools_of(verdict) == ["a", "a"] and kinds_of(verdict) == ["quota", None]
    first, second = verdict.attempts
    assert first.session and second.session == first.session, "the same session of the CLI"
    assert "I read half of it." in task_of(verdict, 2)
    (one,) = seen
    assert one["state"] == "held" and one["pool"] is None
    assert "waiting for a reset" in one["why"] and "usage limit" in one["why"]
    assert one["until"] and not world.alive()


def test_another_pool_that_can_take_the_work_comes_first(world: World) -> None:
    bench = limited(world, "a", "b")
    bench.script("b")
    verdict = bench.go()
    assert verdict.ok and pools_of(verdict) == ["a", "b"]
    assert not bench.told("held")


def test_it_waits_for_the_earliest_of_several_resets(world: World) -> None:
    bench = limited(world, "a", "b")
    bench.script("b", LIMIT.format(bench.in_(900)))

    def on(item: Progress) -> None:
        if item.kind == "held":
            past_the_reset(bench, 901)

    verdict = bench.go(on=on)
    assert verdict.ok and pools_of(verdict) == ["a", "b", "b"]


def test_the_margin_after_the_reset_is_kept(world: World) -> None:
    bench = limited(world, waitMarginSeconds=120)
    steps = iter((SOON + 60, SOON + 121))
    seen: list[float] = []

    def on(item: Progress) -> None:
        if item.kind == "held":
            seen.append(bench.skew.total_seconds())
            past_the_reset(bench, next(steps))
            threading.Timer(0.8, past_the_reset, (bench, SOON + 121)).start()

    verdict = bench.go(on=on)
    assert verdict.ok and pools_of(verdict) == ["a", "a"]
    begun = verdict.attempts[1]
    assert begun.ok and bench.skew.total_seconds() >= SOON + 120


def test_a_release_wakes_it_before_the_reset(world: World) -> None:
    bench = limited(world, waitMarginSeconds=30)

    def on(item: Progress) -> None:
        if item.kind == "held":
            bench.script("a")
            assert world.bullswarm("pools", "release", "echo:a").code == 0

    verdict = bench.go(on=on)
    assert verdict.ok and pools_of(verdict) == ["a", "a"]
    assert verdict.wall_s < 15


def test_a_fresh_reading_wakes_it(world: World) -> None:
    bench = limited(world)

    def on(item: Progress) -> None:
        if item.kind == "started":
            bench.meter("a", 100, 40)
        if item.kind == "held":
            bench.script("a")
            for step in (1, 2):
                bench.skew = timedelta(minutes=step)
                bench.meter("a", 3, 40, h=5)
                bench.rows()

    verdict = bench.go(on=on)
    assert verdict.ok and pools_of(verdict) == ["a", "a"]
    assert bench.skew < timedelta(minutes=5)


@pytest.mark.parametrize("by", ["agent", "run", "interrupt"])
def test_a_wait_can_be_ended(world: World, by: str) -> None:
    bench = limited(world)
    stop = [0]

    def on(item: Progress) -> None:
        if item.kind == "held":
            (agent,) = held(bench)
            if by == "interrupt":
                stop[0] = 1
            else:
                target = agent.id if by == "agent" else agent.run_id
                assert world.bullswarm("cancel", target).code == 0

    verdict = bench.go(on=on, cancelled=lambda: stop[0])
    assert not verdict.ok and verdict.failure_kind == "cancelled"
    assert kinds_of(verdict) == ["quota"], "what was done stands in the record"
    assert not bench.app().store.agents()
    record = bench.app().store.run(verdict.run_id)
    assert record is not None and record.state == "cancelled"


def test_two_that_wait_are_both_served(world: World) -> None:
    bench = limited(world)
    found: dict[str, Any] = {}

    def one(name: str) -> None:
        found[name] = Bench.go(bench)

    threads = [threading.Thread(target=one, args=(name,)) for name in ("x", "y")]
    threads[0].start()
    wait_for(lambda: held(bench))
    threads[1].start()
    wait_for(lambda: len(held(bench)) == 2)
    # The second never started anything on the pool that is known to be dead.
    past_the_reset(bench)
    for thread in threads:
        thread.join(30)
    assert found["x"].ok and found["y"].ok
    assert pools_of(found["x"]) == ["a", "a"] and pools_of(found["y"]) == ["a"]


def test_a_pin_waits_for_its_own_pool(world: World) -> None:
    bench = limited(world, "a", "b")
    bench.script("b")

    def on(item: Progress) -> None:
        if item.kind == "held":
            past_the_reset(bench)

    verdict = bench.go(pool="echo:a", on=on)
    assert verdict.ok and pools_of(verdict) == ["a", "a"], "never silently moved"


def test_without_a_known_reset_there_is_nothing_to_wait_for(world: World) -> None:
    bench = Bench(world, "a", mode="wait")
    bench.configure(subscriptions={"echo:a": {"enabled": False}})
    verdict = bench.go()
    assert not verdict.ok and verdict.failure_kind == "unavailable" and not bench.told("held")


def test_a_jump_of_the_clocks_while_waiting_reads_the_meters_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bullswarm.dispatch import clocks
    from bullswarm.runs import placing

    bench = limited(world)
    wall = [0.0]
    asked: list[Any] = []
    real = placing.read_pools

    class Turned(clocks.Clocks):
        def __init__(self) -> None:
            super().__init__(wall=lambda: wall[0])

    def read(app: Any, fresh: Any) -> Any:
        asked.append(fresh)
        return real(app, fresh)

    monkeypatch.setattr(placing, "Clocks", Turned)
    monkeypatch.setattr(placing, "read_pools", read)

    def on(item: Progress) -> None:
        if item.kind == "held":
            asked.clear()
            wall[0] = 4 * 3600.0
            past_the_reset(bench)

    verdict = bench.go(on=on)
    assert verdict.ok and asked[0] is True, asked


def test_a_jump_while_an_agent_ran_reads_the_meters_before_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bullswarm.dispatch import watch
    from bullswarm.runs import placing

    bench = Bench(world, "a", "b")
    bench.script("a", "sleep 0.3", "exit 3")
    asked: list[Any] = []
    real = placing.read_pools

    def read(app: Any, fresh: Any) -> Any:
        asked.append(fresh)
        return real(app, fresh)

    def jumped(self: Any) -> bool:
        first = self.jumps == 0
        self.jumps += first
        return first

    monkeypatch.setattr(placing, "read_pools", read)
    monkeypatch.setattr(watch.Clocks, "look", jumped)
    verdict = bench.go()
    assert verdict.ok and pools_of(verdict) == ["a", "b"]
    assert asked[:2] == [False, True], "the first pick uses the cache, the one after the jump not"
    assert any("slept" in note for note in verdict.attempts[0].notes)
