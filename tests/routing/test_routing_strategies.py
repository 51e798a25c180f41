"""The three simple strategies behind one policy."""

from __future__ import annotations

import pytest
from routekit import BUILD, bench, busy, five, paced, pick, pool, row, weekly

from bullswarm.routing.types import Decision, Health, Model, Policy, Pool, Request

FAST = Model(name="mini", latency="fast")
SLOW = Model(name="max", latency="slow")


def order(*pools: Pool, request: Request = BUILD, **more: object) -> Decision:
    return pick(*pools, request=request, policy=Policy(strategy="prefer-order", **more))  # type: ignore[arg-type]


def test_prefer_order_walks_the_list_of_pools_and_providers() -> None:
    fleet = (paced("a", used=0), paced("b", used=50), paced("x:1", used=60), paced("x:2", used=40))
    assert order(*fleet, prefer=("b", "a")).pool == "b"
    made = order(*fleet, prefer=("x", "a"))
    assert made.pool == "x:2" and made.strategy == "prefer-order"
    assert "first in the preference that passes" in made.reason and "40%" in made.reason


def test_prefer_order_skips_whoever_is_over_the_ceiling_of_its_fullest_window() -> None:
    full = pool("a", five(85), weekly(10))
    made = order(full, paced("b", used=70), prefer=("a", "b"))
    assert made.pool == "b" and made.note is None
    assert "85% used is over the 80% ceiling" in (row(made, "a").lost or "")
    assert order(full, paced("b"), prefer=("a", "b"), quota_ceiling=85).pool == "a"


def test_every_candidate_over_its_ceiling_runs_the_first_preference_and_notes_it() -> None:
    fleet = (paced("a", used=95), paced("b", used=85))
    for strategy in ("prefer-order", "most-quota", "lowest-latency"):
        made = pick(*fleet, policy=Policy(strategy=strategy, prefer=("a", "b")))  # type: ignore[arg-type]
        assert made.pool == "a"
        assert made.note is not None and "over the 80% quota ceiling" in made.note
        assert made.note in made.reason


def test_a_domain_overrides_the_preference() -> None:
    fleet = (paced("a"), paced("b"))
    policy = {"prefer": ("a",), "domains": {"sql": ("b",)}}
    assert order(*fleet, request=Request(lane="build", domain="sql"), **policy).pool == "b"
    assert order(*fleet, request=Request(lane="build", domain="css"), **policy).pool == "a"


def test_unknown_passes_the_ceiling_but_is_never_zero() -> None:
    unknown, known = pool("a"), paced("b", used=70)
    assert order(unknown, known, prefer=("a",)).pool == "a"
    made = pick(unknown, known, policy=Policy(strategy="most-quota"))
    assert made.pool == "b"
    assert row(made, "a").lost == "no reading ranks after a known headroom"


def test_most_quota_ranks_unknown_pools_by_load_and_says_so() -> None:
    made = pick(pool("a"), pool("b"), policy=Policy(strategy="most-quota"), work=busy("a", 1))
    assert made.pool == "b" and "no candidate has a known headroom" in made.reason


def test_most_quota_looks_at_the_fullest_window_and_the_load() -> None:
    policy = Policy(strategy="most-quota")
    made = pick(pool("a", five(60), weekly(0)), pool("b", five(10), weekly(50)), policy=policy)
    assert made.pool == "b" and "50.0 points left" in made.reason
    assert pick(paced("a"), paced("b"), policy=policy, work=busy("a", 1)).pool == "b"


def test_lowest_latency_takes_the_fast_model_then_the_measured_seconds() -> None:
    policy = Policy(strategy="lowest-latency")
    both = paced("a", used=70, models=(SLOW, FAST), default_model="max")
    made = pick(both, paced("b", used=0, models=(SLOW,), default_model="max"), policy=policy)
    assert (made.pool, made.model) == ("a", "mini")
    slow, quick = Health(median_seconds=90), Health(median_seconds=20)
    made = pick(
        paced("a", used=0, models=(FAST,), health=slow),
        paced("b", used=50, models=(FAST,), health=quick),
        paced("c", used=0, models=(FAST,)),
        policy=policy,
    )
    assert made.pool == "b" and "median 20 s" in made.reason
    assert row(made, "c").lost == "latency not measured"


def test_latency_asks_for_a_fast_model_only_where_none_was_asked_for() -> None:
    both = paced("a", models=(SLOW, FAST), default_model="max")
    for policy, model in (
        (Policy(strategy="prefer-order", latency="fast"), "mini"),
        (Policy(strategy="lowest-latency", latency="slow"), "max"),
        (Policy(strategy="pace"), "max"),
    ):
        assert pick(both, policy=policy).model == model
    asked = Request(lane="build", model="max")
    made = pick(both, request=asked, policy=Policy(strategy="lowest-latency"))
    assert made.model == "max" and row(made, "a").latency == "slow"


@pytest.mark.parametrize("strategy", ["prefer-order", "most-quota", "lowest-latency"])
def test_no_strategy_passes_over_the_filters(strategy: str) -> None:
    policy = Policy(strategy=strategy, prefer=("a",))  # type: ignore[arg-type]
    made = pick(paced("a", used=0), paced("b"), policy=policy, quarantines=(bench("a"),))
    assert made.pool == "b"
    assert pick(paced("a", used=100), paced("b"), policy=policy).pool == "b"


@pytest.mark.parametrize("strategy", ["prefer-order", "most-quota", "lowest-latency"])
def test_the_caller_comes_last_under_every_strategy(strategy: str) -> None:
    policy = Policy(strategy=strategy, prefer=("cc",))  # type: ignore[arg-type]
    asked = Request(lane="build", caller="cc")
    made = pick(paced("cc", used=0), paced("b", used=50), policy=policy, request=asked)
    assert (made.pool, made.keep_on_caller) == ("b", False)
    assert pick(paced("cc"), policy=policy, request=asked).keep_on_caller
