"""Staggered weeks: where the starts lie, and that the simulation heeds them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from simkit import burst, fleet, pool, scenario

from bullswarm.routing.stagger import WEEK, stagger
from bullswarm.routing.types import Pool, Reading, Snapshot, Window
from bullswarm.simulate import simulate
from bullswarm.simulate.scenario import staggered
from rig import World

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def seat(name: str, resets_in_hours: float | None = None, **more: Any) -> Pool:
    reset = None if resets_in_hours is None else NOW + timedelta(hours=resets_in_hours)
    week = Window(kind="weekly", minutes=10080, used_pct=0.0, resets_at=reset)
    reading = Reading(pool=name, source="live", observed_at=NOW, windows=(week,))
    return Pool(name=name, provider="p", reading=reading, **more)


def idle(name: str, **more: Any) -> Pool:
    ended = NOW - timedelta(hours=1)
    week = Window(kind="weekly", minutes=10080, used_pct=30.0, resets_at=ended)
    reading = Reading(pool=name, source="live", observed_at=NOW, windows=(week,))
    return Pool(name=name, provider="p", reading=reading, **more)


def starts(*pools: Pool) -> dict[str, float]:
    """Hours from now, by pool."""
    made = stagger(Snapshot(now=NOW, pools=pools))
    assert all(one.reason and one.resets_at == one.at + WEEK for one in made)
    return {one.pool: (one.at - NOW).total_seconds() / 3600 for one in made}


def test_accounts_without_a_running_week_start_evenly_the_cheaper_first() -> None:
    assert starts(idle("a", cost_rank=2.0), idle("b"), idle("c"), idle("d")) == {
        "b": 0.0,
        "c": 42.0,
        "d": 84.0,
        "a": 126.0,
    }
    assert starts(idle("a")) == {"a": 0.0}


def test_new_ones_go_into_the_widest_gaps_of_those_that_run() -> None:
    made = starts(seat("a", 24.0), seat("b", 48.0), idle("c"), idle("d"))
    # Resets at 24 and 48 leave a gap of 144 hours: thirds of it.
    assert made == {"c": 96.0, "d": 144.0}


def test_who_is_left_alone() -> None:
    for other in (
        idle("x", enabled=False),
        idle("x", unavailable="no binary"),
        idle("x", paused=True),
        idle("x", pacing="monthly"),
        Pool(name="x", provider="p"),
        seat("x", 10.0),
    ):
        assert "x" not in starts(idle("a"), other)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.floats(0.1, 167.0), max_size=5), st.integers(1, 5))
def test_no_gap_is_wider_than_it_must_be(running: list[float], count: int) -> None:
    pools = [seat(f"r{n}", hours) for n, hours in enumerate(running)]
    pools += [idle(f"i{n}") for n in range(count)]
    made = starts(*pools)
    assert len(made) == count and all(0.0 <= hours < 168.0 for hours in made.values())
    points = sorted([*running, *made.values()])
    gaps = [b - a for a, b in zip(points, [*points[1:], points[0] + 168.0], strict=True)]
    if not running:
        assert max(gaps) <= 168.0 / count + 1e-6
        return
    # Each gap of the running ones is divided evenly, and no other division has a smaller widest.
    ordered = sorted(running)
    old = [b - a for a, b in zip(ordered, [*ordered[1:], ordered[0] + 168.0], strict=True)]
    best = _best(old, count)
    assert abs(max(gaps) - best) < 1e-4


def _best(gaps: list[float], count: int) -> float:
    """The smallest widest gap, by trying every way to share the points out."""
    if len(gaps) == 1:
        return gaps[0] / (count + 1)
    return min(max(gaps[0] / (n + 1), _best(gaps[1:], count - n)) for n in range(count + 1))


def test_a_simulated_account_is_left_alone_until_its_start() -> None:
    one = fleet(pool("a"), pool("b"), days=5.0)
    drawn = scenario(one, *burst(0, 4, 10.0), *burst(4.5 * 1440, 8, 10.0))
    late = staggered(drawn)
    assert late.plan == {"a": 0.0, "b": 84 * 60.0}
    at_once = simulate(drawn, "pace+hold", trace=True)
    spread = simulate(late, "pace+hold", trace=True)
    assert at_once.trace is not None
    assert max(used or 0.0 for at, _, used in at_once.trace.used["b"] if at < 84 * 60.0) > 0.0
    assert spread.trace is not None
    before = [used for at, _, used in spread.trace.used["b"] if at < 84 * 60.0]
    assert set(before) == {0.0} and spread.minutes["b"] > 0.0


def test_pools_says_when_to_start_only_where_it_was_asked_for(world: World) -> None:
    world.echo("a", "b")
    for name in ("a", "b"):
        world.meter(name, {"minutes": 10080, "usedPct": 0, "resetsAt": None})

    def shown() -> list[Any]:
        pools = world.bullswarm("pools", "--json").json["pools"]
        return [p["startAt"] for p in pools if p["provider"] == "echo"]

    assert shown() == [None, None]
    assert world.bullswarm("strategy", "set", "--stagger", "on").code == 0
    first, second = sorted(datetime.fromisoformat(at) for at in shown())
    assert abs((second - first) - WEEK / 2) < timedelta(minutes=1)
    assert "start its week about" in world.bullswarm("pools").stdout
    assert "staggered weeks        on" in world.bullswarm("strategy", "show").stdout
