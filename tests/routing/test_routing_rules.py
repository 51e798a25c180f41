"""One test a routing rule, named after it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from routekit import (
    BUILD,
    at,
    bench,
    busy,
    five,
    lasting,
    paced,
    pick,
    pool,
    rates,
    row,
    snap,
    weekly,
    work,
)

from bullswarm.routing import route
from bullswarm.routing.types import Config, Health, Model, Request, Window
from bullswarm.routing.windows import month_days

OPUS = (Model(name="opus-5", family="opus"), Model(name="sonnet-5", family="sonnet"))


@pytest.mark.parametrize(("left", "elapsed"), [(5040, 50.0), (20000, 0.0), (1008, 90.0)])
def test_elapsed_is_a_clamped_share_of_the_window(left: float, elapsed: float) -> None:
    window = Window(kind="weekly", minutes=10080, used_pct=10, resets_at=at(left))
    assert row(pick(pool("a", window)), "a").elapsed_pct == pytest.approx(elapsed)


def test_elapsed_without_a_reset_is_unknown() -> None:
    got = row(pick(pool("a", weekly(10, elapsed=None), five(10, left=None))), "a")
    assert (got.elapsed_pct, got.five_hour_elapsed_pct, got.pace) == (None, None, None)


@pytest.mark.parametrize(
    ("end", "start"),
    [
        ((2026, 3, 15), (2026, 2, 15)),
        ((2026, 3, 31), (2026, 2, 28)),
        ((2028, 3, 30), (2028, 2, 29)),
        ((2026, 1, 1), (2025, 12, 1)),
        ((2100, 3, 29), (2100, 2, 28)),
        ((2000, 3, 29), (2000, 2, 29)),
    ],
)
def test_a_month_is_the_calendar_month_that_ends_at_the_reset(
    end: tuple[int, int, int], start: tuple[int, int, int]
) -> None:
    reset = datetime(*end, tzinfo=UTC)
    assert reset - timedelta(days=month_days(reset)) == datetime(*start, tzinfo=UTC)


def test_a_monthly_pool_is_paced_by_its_calendar_month() -> None:
    window = Window(
        kind="monthly", minutes=43200, used_pct=0, resets_at=datetime(2026, 3, 18, 12, tzinfo=UTC)
    )
    got = row(pick(pool("a", window, pacing="monthly")), "a")
    assert got.elapsed_pct == pytest.approx(50.0)
    assert got.pacing_window == "monthly"


def test_pace_the_pool_furthest_behind_wins() -> None:
    made = pick(paced("a", used=30), paced("b", used=20))
    assert made.pool == "b"
    assert row(made, "b").pace == pytest.approx(30.0)
    assert made.reason == (
        "b: surplus +30.0 of its weekly window (used 20%, elapsed 50%), 5h 0%->0%"
    )


def test_the_week_paces_even_where_the_five_hour_window_is_emptier() -> None:
    made = pick(pool("a", five(0), weekly(90)), pool("b", five(50), weekly(20)))
    assert made.pool == "b"


def test_a_provider_that_reports_only_the_other_subscription_window_is_paced_by_it() -> None:
    assert row(pick(pool("a", weekly(20), pacing="monthly")), "a").pace == pytest.approx(30.0)


def test_the_five_hour_window_never_paces() -> None:
    assert row(pick(pool("a", five(10))), "a").pace is None


def test_unmetered_ranks_as_surplus_zero() -> None:
    free = pool("free", pacing=None)
    assert pick(free, paced("ahead", used=60)).pool == "free"
    made = pick(free, paced("behind", used=40))
    assert made.pool == "behind"
    assert row(made, "free").pace is None
    assert "unmetered" in pick(free).reason


def test_unknown_is_its_own_state_and_spread_by_load() -> None:
    fleet = (pool("a"), pool("b"), pool("c"))
    made = pick(*fleet, work=(*busy("a", 1), *busy("c", 1)))
    assert made.pool == "b"
    assert "no reading" in made.reason
    assert row(made, "b").used_pct is None


@pytest.mark.parametrize(
    "stale",
    [weekly(90, elapsed=101), Window(kind="weekly", minutes=10080, used_pct=90)],
    ids=["reset has passed", "older than its own length"],
)
def test_a_reading_whose_window_is_over_is_not_a_reading(stale: Window) -> None:
    got = row(pick(pool("a", stale, seen=10081)), "a")
    assert (got.pace, got.used_pct, got.forecast_pacing_pct) == (None, None, None)
    assert got.eligible


@pytest.mark.parametrize(
    ("change", "request_", "why"),
    [
        ({"enabled": False}, BUILD, "disabled"),
        ({"unavailable": "no binary"}, BUILD, "unavailable: no binary"),
        ({"lanes": ("analyze",)}, BUILD, "does not take build work"),
        ({}, Request(lane="build", capabilities=("web",)), "lacks web"),
        ({"models": OPUS}, Request(lane="build", model="gpt"), "model gpt is not one of its"),
        ({}, Request(lane="build", pin="other"), "not the pinned pool other"),
        ({}, Request(lane="build", use=("other",)), "not among the pools asked for"),
        ({}, Request(lane="build", avoid=("a",)), "to be avoided, as asked"),
        ({"provider": "vendor"}, Request(lane="build", avoid=("vendor",)), "avoided"),
        ({}, Request(lane="build", exclude=("a",)), "already tried"),
        (
            {"credential_group": "g"},
            Request(lane="build", exclude_groups=("g",)),
            "dead credential",
        ),
        ({"paused": True}, BUILD, "paused by hand"),
        ({"paused": True, "paused_until": at(5)}, BUILD, "paused until 2026-03-04 12:05 UTC"),
    ],
)
def test_a_filtered_pool_says_why(change: dict[str, object], request_: Request, why: str) -> None:
    made = pick(
        paced("a", used=0, **change),
        paced("other", used=90, capabilities=("web",)),
        request=request_,
    )
    assert made.pool == "other"
    got = row(made, "a")
    assert not got.eligible and got.tier == "ineligible"
    assert why in (got.why_not or "")


def test_a_pause_ends_by_itself() -> None:
    assert pick(paced("a", paused=True, paused_until=at(-1))).pool == "a"


def test_excluding_an_account_leaves_its_provider_s_other_accounts() -> None:
    fleet = (paced("cc", used=0), paced("cc:work", used=50))
    assert pick(*fleet, request=Request(lane="build", exclude=("cc",))).pool == "cc:work"


def test_any_full_window_makes_a_pool_ineligible() -> None:
    daily = Window(kind="daily", minutes=1440, used_pct=100, resets_at=at(60))
    for full in (five(100), weekly(100), daily):
        made = pick(pool("a", full), paced("b", used=90))
        assert made.pool == "b"
        assert "full (100%)" in (row(made, "a").why_not or "")


def test_a_reserve_counts_as_full() -> None:
    kept = pool("a", weekly(80, elapsed=90), reserve_pct=20)
    assert pick(kept, paced("b", used=90)).pool == "b"
    assert pick(pool("a", weekly(79, elapsed=90), reserve_pct=20), paced("b", used=90)).pool == "a"


def test_quarantine_ends_by_itself_and_names_its_end() -> None:
    fleet = (paced("a", used=0), paced("b", used=90))
    made = pick(*fleet, quarantines=(bench("a", 60),))
    assert made.pool == "b"
    assert "quarantined (quota) until 2026-03-04 13:00 UTC" in (row(made, "a").why_not or "")
    assert pick(*fleet, quarantines=(bench("a", -1),)).pool == "a"


def test_a_quota_bench_never_spreads_by_vendor() -> None:
    fleet = (paced("sub", provider="v"), paced("key", provider="v"))
    assert pick(*fleet, quarantines=(bench("sub"),)).pool == "key"


def test_a_family_bench_binds_that_family_only() -> None:
    claude = paced("a", models=OPUS, default_model="opus-5")
    held = {"quarantines": (bench("a", family="opus"),)}
    made = pick(claude, **held)
    assert (made.pool, made.model) == ("a", "sonnet-5")
    sonnet = pick(claude, request=Request(lane="build", model="sonnet-5"), **held)
    assert (sonnet.pool, sonnet.model) == ("a", "sonnet-5")
    opus = pick(claude, request=Request(lane="build", model="opus-5"), **held)
    assert opus.pool is None and opus.retry_at == at(60)


def test_a_full_family_window_binds_that_family_only() -> None:
    claude = pool("a", weekly(10), weekly(100, family="opus"), models=OPUS, default_model="opus-5")
    assert pick(claude).model == "sonnet-5"
    assert pick(claude, request=Request(lane="build", model="opus-5")).pool is None


def test_eligibility_comes_before_every_preference() -> None:
    full = paced("a", used=100)
    other = paced("b", used=90)
    assigned = Config(assignments={"build": "a"})
    for request in (BUILD, Request(lane="build", incumbent="a")):
        assert pick(full, other, request=request, config=assigned).pool == "b"
    pinned = pick(full, other, request=Request(lane="build", pin="a"))
    assert pinned.pool is None
    assert "pinned pool a is not eligible: weekly window full" in pinned.reason
    assert pinned.retry_at == at(5040)


def test_retry_at_is_the_earliest_known_return_of_a_capable_pool() -> None:
    made = pick(
        paced("a"),
        paced("b"),
        paced("c", lanes=("chore",)),
        paced("d", paused=True),
        quarantines=(bench("a", 90), bench("b", 30), bench("c", 5)),
    )
    assert made.pool is None and made.retry_at == at(30)


def test_incumbency_margin_and_cost_guard() -> None:
    held = Request(lane="build", incumbent="a")
    inc = paced("a", used=30, cost_rank=2)
    cases = [
        (paced("b", used=21, cost_rank=1), "a"),  # within the margin
        (paced("b", used=20, cost_rank=1), "a"),  # ten is not over ten
        (paced("b", used=19, cost_rank=1), "b"),
        (paced("b", used=0, cost_rank=2), "a"),  # over the margin, not cheaper
    ]
    for challenger, winner in cases:
        assert pick(inc, challenger, request=held).pool == winner
    made = pick(inc, paced("b", used=0, cost_rank=2), request=held)
    assert "incumbent kept" in made.reason
    assert "not cheaper" in (row(made, "b").lost or "")


def test_a_cheaper_challenger_behind_a_dear_one_may_still_take_the_work() -> None:
    made = pick(
        paced("inc", used=40, cost_rank=2),
        paced("dear", used=0, cost_rank=3),
        paced("cheap", used=20, cost_rank=1),
        request=Request(lane="build", incumbent="inc"),
    )
    assert made.pool == "cheap"


def test_a_busier_incumbent_has_neither_margin_nor_guard() -> None:
    held = Request(lane="build", incumbent="a")
    made = pick(
        paced("a", used=30, cost_rank=1),
        paced("b", used=29, cost_rank=9),
        request=held,
        work=busy("a", 1),
    )
    assert made.pool == "b"


def test_the_caller_wins_only_when_nothing_else_is_eligible() -> None:
    asked = Request(lane="build", caller="cc")
    made = pick(paced("cc", used=0), paced("b", used=90), request=asked)
    assert (made.pool, made.keep_on_caller) == ("b", False)
    alone = pick(paced("cc", used=0), paced("b", used=100), request=asked)
    assert (alone.pool, alone.keep_on_caller) == ("cc", True)


def test_a_strict_pin_on_the_caller_runs() -> None:
    made = pick(paced("cc"), paced("b"), request=Request(lane="build", caller="cc", pin="cc"))
    assert (made.pool, made.keep_on_caller) == ("cc", False)


def test_near_limit_is_clock_relative() -> None:
    other = paced("b", used=60)
    late = pool("a", five(88, left=23), weekly(10))
    early = pool("a", five(77, left=240), weekly(10))
    assert pick(late, other).pool == "a"
    made = pick(early, other)
    assert made.pool == "b" and row(made, "a").tier == "near-limit"


def test_near_limit_outranks_assignment_and_incumbency_but_runs_when_alone() -> None:
    near = pool("a", five(80, left=240), weekly(10))
    asked = Request(lane="build", incumbent="a")
    assigned = Config(assignments={"build": "a"})
    assert pick(near, paced("b", used=60), request=asked, config=assigned).pool == "b"
    alone = pick(near)
    assert alone.pool == "a" and "near its 5-hour limit" in alone.reason


def test_no_five_hour_reading_is_headroom() -> None:
    assert row(pick(pool("a", weekly(10))), "a").tier == "normal"


def test_the_burst_gate_ignores_the_clock_and_ranks_below_the_caller() -> None:
    gated = pool("a", five(91, left=5), weekly(10))
    assert pick(gated, paced("b", used=90)).pool == "b"
    kept = pick(gated, paced("cc"), request=Request(lane="build", caller="cc"))
    assert kept.keep_on_caller


def test_all_gated_names_the_least_loaded_and_says_so() -> None:
    made = pick(pool("a", five(95), weekly(10)), pool("b", five(92), weekly(90)))
    assert made.pool == "b"
    assert made.note is not None and "least loaded at 92%" in made.note
    assert "every eligible pool is forecast at 90%" in made.reason


@pytest.mark.parametrize(("used", "word"), [(80.0, "near the limit"), (95.0, "forecast-gated")])
def test_a_pin_overrides_the_tiers_and_says_so(used: float, word: str) -> None:
    made = pick(
        pool("a", five(used, left=240), weekly(90)),
        paced("b"),
        request=Request(lane="build", pin="a"),
    )
    assert made.pool == "a" and word in made.reason and made.note is None


def test_the_forecast_is_reading_plus_in_flight_plus_candidate() -> None:
    made = pick(
        pool("a", five(40, left=200), weekly(20), seen=10, rates=rates(1.0, 0.1)),
        work=(work("a", started=4), work("a", started=30, ended=5, n=2)),
        durations=(lasting(10),),
    )
    got = row(made, "a")
    # Since the reading: 4 min in flight and 5 min ended; 6 min to come; then 10 for the candidate.
    assert got.projected_five_hour_pct == pytest.approx(40 + 4 + 5 + 6)
    assert got.forecast_five_hour_pct == pytest.approx(65)
    assert got.forecast_pacing_pct == pytest.approx(22.5)
    assert (got.rate_per_minute, got.pacing_rate_per_minute) == (1.0, 0.1)
    assert (got.estimate_source, got.expected_minutes, got.inflight) == ("history", 10, 1)
    assert "5h 40%->65%" in made.reason


def test_spend_after_the_reset_is_credited_to_the_next_window() -> None:
    made = pick(
        pool("a", five(70, left=5), weekly(20), rates=rates(1.0, 0.1)),
        work=(work("a"),),
        durations=(lasting(60),),
    )
    got = row(made, "a")
    assert got.projected_five_hour_pct == pytest.approx(75)
    assert got.forecast_five_hour_pct == pytest.approx(80)
    assert got.charge == pytest.approx(12.0)  # the pacing charge is never clipped


def test_a_null_rate_adds_nothing() -> None:
    got = row(pick(pool("a", five(70), weekly(20)), work=busy("a", 1)), "a")
    assert got.forecast_five_hour_pct == 70 and got.forecast_pacing_pct == 20
    assert got.rate_per_minute is None and got.estimate_source == "none"


@pytest.mark.parametrize(
    ("rate", "records", "charge", "basis"),
    [
        (None, (), 6.0, "penalty"),
        (0.01, (), 6.0, "penalty"),
        (1.0, (), 18.0, "bootstrap"),
        (1.0, (10.0,), 30.0, "history"),
    ],
)
def test_the_charge_has_a_floor_and_names_its_basis(
    rate: float | None, records: tuple[float, ...], charge: float, basis: str
) -> None:
    made = pick(
        paced("a", rates=rates(None, rate)),
        work=busy("a", 2),
        durations=(lasting(*records),) if records else (),
    )
    got = row(made, "a")
    assert (got.charge, got.charge_basis) == (pytest.approx(charge), basis)
    assert got.effective_surplus == pytest.approx(20.0 - charge)
    assert f"charged {charge:.1f} ({basis})" in made.reason


def test_the_penalty_can_be_turned_off() -> None:
    off = Config(inflight_penalty_pct=0.0)
    got = row(pick(paced("a"), work=busy("a", 2), config=off), "a")
    assert (got.charge, got.charge_basis) == (0.0, None)


def test_load_separates_pools_of_similar_pace_only() -> None:
    assert pick(paced("a", used=30), paced("b", used=32), work=busy("a", 1)).pool == "b"
    assert pick(paced("a", used=30), paced("b", used=34), work=busy("a", 1)).pool == "a"


def test_a_burst_over_near_equals_spreads_before_any_meter_moves() -> None:
    fleet = (paced("a"), paced("b"), paced("c"))
    placed: list[str] = []
    for n in range(9):
        made = pick(*fleet, work=tuple(work(p, n=i) for i, p in enumerate(placed)))
        assert made.pool is not None, n
        placed.append(made.pool)
    assert {name: placed.count(name) for name in "abc"} == {"a": 3, "b": 3, "c": 3}


def test_work_that_ended_since_the_reading_still_counts_between_equals() -> None:
    ended = (work("a", started=6, ended=1),)
    fleet = (paced("a", seen=10), paced("b", seen=10))
    assert pick(*fleet, work=ended).pool == "b"
    measured = tuple(paced(p, seen=10, rates=rates(None, 0.2)) for p in "ab")
    assert row(pick(*measured, work=ended), "a").charge == pytest.approx(2.2)


def test_urgent_ranks_before_a_bigger_surplus_and_overrides_preference() -> None:
    ending = pool("a", weekly(70, elapsed=90))
    other = paced("b", used=0)
    asked = Request(lane="build", incumbent="b")
    made = pick(ending, other, request=asked, config=Config(assignments={"build": "b"}))
    assert made.pool == "a"
    got = row(made, "a")
    assert got.tier == "urgent" and got.urgency == pytest.approx(200.0)
    assert "urgent: the weekly window ends in 16 h 48" in made.reason


def test_urgency_ranks_by_what_is_left_of_the_window() -> None:
    soon, later = pool("a", weekly(90, elapsed=99)), pool("b", weekly(70, elapsed=90))
    assert row(pick(soon, later), "a").tier == "draining"
    soon = pool("a", weekly(89, elapsed=99))
    assert pick(soon, later).pool == "a"


def test_urgency_looks_at_the_pacing_window_not_at_the_five_hour_one() -> None:
    short = pool("a", five(50, left=10), weekly(30, elapsed=40))
    assert not row(pick(short), "a").urgent


@pytest.mark.parametrize(("days", "urgent"), [(1.1, False), (0.9, True)])
def test_the_lead_of_a_week_is_a_seventh(days: float, urgent: bool) -> None:
    window = Window(kind="weekly", minutes=10080, used_pct=10, resets_at=at(days * 1440))
    assert row(pick(pool("a", window)), "a").urgent is urgent


@pytest.mark.parametrize(("days", "urgent"), [(2.9, False), (2.7, True)])
def test_the_lead_of_a_month_is_a_tenth(days: float, urgent: bool) -> None:
    reset = at(days * 1440)  # ends in March: its month began in February and is 28 days long
    window = Window(kind="monthly", minutes=43200, used_pct=10, resets_at=reset)
    assert row(pick(pool("a", window, pacing="monthly")), "a").urgent is urgent


def test_urgency_never_rescues_a_pool_near_its_limit() -> None:
    near = pool("a", five(80, left=240), weekly(10, elapsed=95))
    made = pick(near, paced("b", used=60))
    assert made.pool == "b"


def test_draining_is_a_fallback_before_the_five_hour_tiers() -> None:
    draining = pool("a", weekly(92, elapsed=95))
    assert pick(draining, paced("b", used=80)).pool == "b"
    made = pick(draining, pool("c", five(80, left=240), weekly(0)))
    assert made.pool == "a" and row(made, "a").tier == "draining"


def test_draining_ahead_of_pace_is_no_better_than_draining_behind_it() -> None:
    ahead, behind = pool("a", weekly(97, elapsed=95)), pool("b", weekly(92, elapsed=95))
    made = pick(ahead, behind)
    assert made.pool == "b"
    assert row(made, "a").tier == "draining" and row(made, "a").urgency is None


def test_ending_soon_but_ahead_of_pace_is_normal() -> None:
    assert row(pick(pool("a", weekly(89, elapsed=88))), "a").tier == "normal"


def test_least_used_first_does_not_let_an_expiring_window_go() -> None:
    soon, later = pool("a", weekly(50, elapsed=99.9)), pool("b", weekly(30, elapsed=97.6))
    assert pick(soon, later).pool == "a"


@pytest.mark.parametrize(
    ("assignments", "winner"),
    [
        ({"build": "b"}, "b"),
        ({"high": "b"}, "b"),
        ({"build": "c", "high": "b"}, "c"),
        ({"build/high": "b", "build": "c", "high": "a"}, "b"),
        ({"chore": "b"}, "a"),
    ],
)
def test_the_most_specific_assignment_counts(assignments: dict[str, str], winner: str) -> None:
    fleet = (paced("a", used=0), paced("b", used=30), paced("c", used=30))
    made = pick(
        *fleet,
        request=Request(lane="build", effort="high"),
        config=Config(assignments=assignments),
    )
    assert made.pool == winner


def test_the_last_ties_go_to_cheaper_then_fewer_errors_then_faster_then_name() -> None:
    assert pick(paced("a", cost_rank=2), paced("b", cost_rank=1)).pool == "b"
    sick = Health(attempts=10, errors=5)
    assert pick(paced("a", health=sick), paced("b")).pool == "b"
    slow, fast = Health(median_seconds=90), Health(median_seconds=30)
    made = pick(paced("a", health=slow), paced("b", health=fast))
    assert made.pool == "b" and row(made, "b").median_seconds == 30
    assert pick(paced("b"), paced("a")).pool == "a"


def test_health_never_outranks_pace() -> None:
    sick = Health(attempts=10, errors=9, median_seconds=900)
    assert pick(paced("a", used=29, health=sick), paced("b", used=30)).pool == "a"


def test_work_on_a_benched_pool_charges_nobody_else() -> None:
    made = pick(paced("a"), paced("b"), work=busy("a", 5), quarantines=(bench("a"),))
    assert row(made, "b").charge == 0.0


def test_every_pool_has_a_row_and_every_loser_a_reason() -> None:
    made = pick(paced("a"), paced("b"), paced("c", enabled=False), pool("d", five(95)))
    assert [c.rank for c in made.candidates] == [1, 2, 3, 4]
    assert made.candidates[0].pool == made.pool and made.candidates[0].lost is None
    for other in made.candidates[1:]:
        assert other.lost or other.why_not


def test_nothing_known_says_so() -> None:
    assert route(snap(), BUILD).reason == "no pool is known"
    assert "no pool is named x" in pick(paced("a"), request=Request(lane="build", pin="x")).reason


def test_every_field_of_a_row_holds_what_it_says() -> None:
    claude = pool(
        "cc:w",
        five(40, left=150),
        weekly(20),
        seen=3,
        rates=rates(1.0, 0.1),
        models=OPUS,
        default_model="opus-5",
        cost_rank=4,
        health=Health(attempts=4, errors=1, median_seconds=70),
    )
    request = Request(lane="build", caller="cc", incumbent="cc:w")
    config = Config(assignments={"build": "cc:w"})
    got = row(pick(claude, request=request, config=config, durations=(lasting(8),)), "cc:w")
    values = {name: getattr(got, name) for name in got.__struct_fields__}
    assert values == {
        "pool": "cc:w",
        "provider": "cc",
        "tier": "caller",
        "rank": 1,
        "eligible": True,
        "why_not": None,
        "lost": None,
        "pace": pytest.approx(30.0),
        "elapsed_pct": pytest.approx(50.0),
        "used_pct": 20,
        "pacing_window": "weekly",
        "pacing_resets_at": at(5040),
        "effective_surplus": pytest.approx(29.2),
        "charge": pytest.approx(0.8),
        "charge_basis": "history",
        "inflight": 0,
        "five_hour_pct": 40,
        "five_hour_elapsed_pct": pytest.approx(50.0),
        "five_hour_resets_at": at(150),
        "projected_five_hour_pct": 40,
        "forecast_five_hour_pct": pytest.approx(48.0),
        "forecast_pacing_pct": pytest.approx(20.8),
        "rate_per_minute": 1.0,
        "pacing_rate_per_minute": 0.1,
        "estimate_source": "history",
        "expected_minutes": 8,
        "near_limit": False,
        "forecast_gated": False,
        "urgent": False,
        "draining": False,
        "urgency": None,
        "incumbent": True,
        "assigned": True,
        "is_caller": True,
        "cost_rank": 4,
        "model": "opus-5",
        "latency": "slow",
        "reading_source": "live",
        "reading_age_minutes": pytest.approx(3.0),
        "error_share": 0.25,
        "median_seconds": 70,
    }
