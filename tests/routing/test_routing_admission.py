"""Caps, holds and the line: one test a rule."""

from __future__ import annotations

import msgspec
import pytest
from routekit import (
    BUILD,
    NOW,
    at,
    bench,
    busy,
    five,
    lasting,
    paced,
    pool,
    rates,
    row,
    snap,
    weekly,
    work,
)

from bullswarm.routing import Waiting, admit, route, serve
from bullswarm.routing.types import Admission, Config, Request

HOLD = Admission(mode="hold")
SIX = (lasting(6),)


def test_without_a_rule_it_is_the_ordinary_pick() -> None:
    snapshot = snap(pool("a", five(95), weekly(99)), paced("b", used=99.5))
    assert admit(snapshot, BUILD) == route(snapshot, BUILD)


def test_the_snapshot_s_own_rule_applies_where_none_is_given() -> None:
    snapshot = snap(pool("a", five(95)), config=Config(admission=HOLD))
    assert admit(snapshot, BUILD).hold is not None
    assert admit(snapshot, BUILD, admission=Admission()).pool == "a"


def test_a_pool_at_its_cap_is_passed_over() -> None:
    made = admit(snap(paced("a", used=0, cap=1), paced("b"), work=busy("a", 1)), BUILD)
    assert made.pool == "b"
    assert row(made, "a").why_not == "at its cap of 1 live workers"


def test_all_pools_at_their_caps_hold_until_the_first_expected_end() -> None:
    made = admit(
        snap(
            paced("a", cap=1),
            paced("b", cap=2),
            work=(work("a", started=2), work("b", started=5), work("b", started=3, n=2)),
            durations=SIX,
        ),
        BUILD,
    )
    assert made.pool is None and made.hold is not None
    assert (made.hold.kind, made.hold.until, made.hold.pool) == ("cap", at(1), "b")
    assert made.hold.patience_ends is None and "cap of 1 live workers" in made.hold.reason


def test_the_cap_over_all_pools_counts_every_worker() -> None:
    config = Config(worker_cap=2)
    running = (work("gone", started=1), work("a", started=4), work("a", started=9, ended=1))
    made = admit(snap(paced("b"), work=running, durations=SIX, config=config), BUILD)
    assert made.hold is not None
    assert (made.hold.kind, made.hold.until) == ("cap", at(2))
    assert "2 workers are live and the cap of all pools together is 2" in made.reason


def test_no_patience_ends_a_cap() -> None:
    asked = Request(lane="build", waiting_since=at(-10000))
    made = admit(snap(paced("a", cap=1), work=busy("a", 1)), asked, admission=HOLD)
    assert made.hold is not None and made.hold.kind == "cap"


def test_the_caller_s_own_session_is_no_worker() -> None:
    asked = Request(lane="build", caller="a")
    snapshot = snap(paced("a", cap=1), work=busy("a", 1), config=Config(worker_cap=1))
    assert admit(snapshot, asked).keep_on_caller


@pytest.mark.parametrize(
    ("windows", "rate", "until"),
    [
        ((five(90, left=70), weekly(10)), rates(), 70),
        ((five(10, left=70), weekly(97)), rates(), 5040),
        ((five(95, left=70), weekly(97)), rates(), 5040),
        # 3 x 6 candidate minutes at a point each: 72 + 18 is the line.
        ((five(72, left=70), weekly(10)), rates(1.0), 70 - 18 + 1 / 60),
        # Nothing is known: look again when the patience ends.
        ((five(95, left=None),), rates(), 600),
    ],
)
def test_no_room_holds_until_room_is_expected(
    windows: tuple[object, ...], rate: tuple[object, ...], until: float
) -> None:
    made = admit(
        snap(pool("a", *windows, rates=rate), durations=SIX),  # type: ignore[arg-type]
        BUILD,
        admission=HOLD,
    )
    assert made.pool is None and made.hold is not None
    assert abs((made.hold.until - at(min(until, 600))).total_seconds()) < 0.01
    assert made.hold.kind == "admission" and made.hold.patience_ends == at(600)
    assert row(made, "a").lost and row(made, "a").eligible


def test_just_under_the_lines_is_room() -> None:
    ready = pool("a", five(71.9, left=70), weekly(96.9), rates=rates(1.0, 0.0))
    assert admit(snap(ready, durations=SIX), BUILD, admission=HOLD).pool == "a"


def test_a_reserve_lowers_the_pacing_line() -> None:
    kept = pool("a", weekly(78), reserve_pct=20)
    assert admit(snap(kept), BUILD, admission=HOLD).hold is not None
    assert admit(snap(pool("a", weekly(78))), BUILD, admission=HOLD).pool == "a"


def test_unknown_windows_have_room() -> None:
    assert admit(snap(pool("a")), BUILD, admission=HOLD).pool == "a"


def test_four_in_flight_are_enough_for_one_pool() -> None:
    held = admit(
        snap(paced("a"), work=(*busy("a", 3), work("a", started=4)), durations=SIX),
        BUILD,
        admission=HOLD,
    )
    assert held.hold is not None and held.hold.until == at(2)
    assert admit(snap(paced("a"), work=busy("a", 3)), BUILD, admission=HOLD).pool == "a"


def test_pools_with_room_are_routed_among_as_ever() -> None:
    made = admit(
        snap(pool("a", five(95), weekly(0)), paced("b", used=60), paced("c", used=40)),
        BUILD,
        admission=HOLD,
    )
    assert made.pool == "c"
    assert "at its line of 90%" in (row(made, "a").lost or "")
    assert [c.pool for c in made.candidates] == ["c", "b", "a"]


def test_when_the_patience_is_over_the_least_loaded_takes_it() -> None:
    snapshot = snap(pool("a", five(97), weekly(10)), pool("b", five(93), weekly(90)))
    waiting = Request(lane="build", waiting_since=at(-599))
    held = admit(snapshot, waiting, admission=HOLD)
    assert held.hold is not None and held.hold.until == at(1)
    over = Request(lane="build", waiting_since=at(-600))
    assert admit(snapshot, over, admission=HOLD).pool == "b"


OVER = Request(lane="build", waiting_since=at(-601))


def test_out_of_patience_it_still_goes_where_there_is_room() -> None:
    crowded = pool("a", five(95), weekly(0))
    made = admit(snap(crowded, paced("b", used=80)), OVER, admission=HOLD)
    assert made.pool == "b" and "at its line of 90%" in (row(made, "a").lost or "")


def test_a_line_that_runs_out_of_patience_together_does_not_die_on_one_pool() -> None:
    names = ("a", "b", "c")
    fleet = [
        pool(n, five(0), weekly(97.2 + k / 10), rates=rates(0.1, 0.05)) for k, n in enumerate(names)
    ]
    line = [Waiting(id=f"{n}", request=OVER, admission=HOLD) for n in range(15)]
    made = serve(snap(*fleet, durations=SIX), line)
    taken = [made[f"{n}"].pool for n in range(15)]
    assert [taken.count(n) for n in names] == [5, 5, 5]
    first = made["0"]
    assert first.pool == "a" and "patience is over" in first.reason and first.note
    assert "a is the least loaded" in (row(first, "b").lost or "")


def test_work_that_a_limit_cut_off_is_known_to_be_long() -> None:
    durations = (lasting(5, 5, 5, 5, 60, 100),)
    ready = pool("a", five(40, left=200), weekly(10), rates=rates(0.5, 0.01))
    fresh = admit(snap(ready, durations=durations), BUILD, admission=HOLD)
    assert fresh.pool == "a" and fresh.candidates[0].expected_minutes == 30
    cut = Request(lane="build", ran_minutes=50)
    made = admit(snap(ready, durations=durations), cut, admission=HOLD)
    # 50 it ran, and three times the 30 that are left at that age: 40 + 140 / 2.
    assert made.hold is not None and "5-hour forecast 110.0%" in made.reason
    assert made.candidates[0].expected_minutes == 80
    roomy = pool("a", five(0, left=200), weekly(10), rates=rates(0.5, 0.01))
    assert admit(snap(roomy, durations=durations), cut, admission=HOLD).pool == "a"


def test_cut_off_work_in_flight_is_expected_to_last_longer() -> None:
    durations = (lasting(5, 5, 5, 5, 60, 100),)
    ready = pool("a", five(10, left=300), weekly(10), rates=rates(0.5, 0.01))
    young = work("a", started=10)
    known = msgspec.structs.replace(young, ran_minutes=50)
    plain = row(route(snap(ready, work=(young,), durations=durations), BUILD), "a")
    longer = row(route(snap(ready, work=(known,), durations=durations), BUILD), "a")
    # Ten minutes old, it has 70 left on the mean anyway; what ran 50 has 40 and then 30.
    assert plain.projected_five_hour_pct == pytest.approx(10 + 70 * 0.5)
    assert longer.projected_five_hour_pct == pytest.approx(10 + (40 + 30) * 0.5)
    short = (lasting(5, 5, 5, 12, 60, 100),)
    plain = row(route(snap(ready, work=(young,), durations=short), BUILD), "a")
    longer = row(route(snap(ready, work=(known,), durations=short), BUILD), "a")
    assert plain.projected_five_hour_pct == pytest.approx(10 + (2 + 50 + 90) / 3 * 0.5)
    assert longer.projected_five_hour_pct == pytest.approx(10 + 70 * 0.5)


def test_a_placed_piece_that_was_cut_off_counts_at_its_length() -> None:
    durations = (lasting(5, 5, 5, 5, 60, 100),)
    ready = pool("a", five(0, left=300), weekly(0), rates=rates(0.5, 0.01))
    cut = Waiting(id="cut", request=Request(lane="build", ran_minutes=50))
    made = serve(snap(ready, durations=durations), [cut, Waiting(id="next", request=BUILD)])
    assert made["next"].candidates[0].projected_five_hour_pct == pytest.approx(80 * 0.5)


def test_a_benched_pool_s_return_counts_for_the_hold() -> None:
    snapshot = snap(pool("a", five(95, left=70)), paced("b"), quarantines=(bench("b", 20),))
    made = admit(snapshot, BUILD, admission=HOLD)
    assert made.hold is not None and (made.hold.until, made.hold.pool) == (at(20), "b")


def test_nobody_eligible_holds_only_for_a_return_within_the_patience() -> None:
    back = admit(snap(paced("a"), quarantines=(bench("a", 20),)), BUILD, admission=HOLD)
    assert back.hold is not None and back.hold.until == at(20)
    late = admit(snap(paced("a"), quarantines=(bench("a", 700),)), BUILD, admission=HOLD)
    assert late.hold is None and late.pool is None and late.retry_at == at(700)
    never = admit(snap(paced("a", enabled=False)), BUILD, admission=HOLD)
    assert never.hold is None and never.pool is None


def test_a_pin_waits_for_its_own_pool() -> None:
    asked = Request(lane="build", pin="a")
    made = admit(snap(pool("a", five(95, left=70)), paced("b")), asked, admission=HOLD)
    assert made.hold is not None and made.hold.pool == "a"


def test_room_on_the_caller_only_keeps_the_work_there() -> None:
    asked = Request(lane="build", caller="cc")
    made = admit(snap(pool("a", five(95)), paced("cc")), asked, admission=HOLD)
    assert made.keep_on_caller and made.pool == "cc"


def line(count: int, **more: object) -> list[Waiting]:
    return [Waiting(id=f"w{n}", request=BUILD, **more) for n in range(count)]  # type: ignore[arg-type]


def test_a_line_spreads_over_equals() -> None:
    made = serve(snap(paced("a"), paced("b"), paced("c")), line(6))
    pools = [made[f"w{n}"].pool for n in range(6)]
    assert sorted(p or "" for p in pools) == ["a", "a", "b", "b", "c", "c"]


def test_a_placed_piece_counts_for_those_behind_it() -> None:
    made = serve(snap(paced("a", cap=2), config=Config(worker_cap=9)), line(3))
    assert [made[f"w{n}"].pool for n in range(3)] == ["a", "a", None]
    hold = made["w2"].hold
    assert hold is not None and hold.kind == "cap" and hold.until > NOW
    capped = serve(snap(paced("a"), config=Config(worker_cap=2)), line(3))
    assert [capped[f"w{n}"].pool for n in range(3)] == ["a", "a", None]
    assert made["w1"].candidates[0].inflight == 1


def test_a_held_piece_keeps_nobody_else_waiting() -> None:
    pinned = Waiting(id="p", request=Request(lane="build", pin="a"), admission=HOLD)
    made = serve(snap(pool("a", five(95)), paced("b")), [pinned, *line(1, admission=HOLD)])
    assert made["p"].hold is not None and made["w0"].pool == "b"


def test_serving_one_is_admitting_it() -> None:
    snapshot = snap(pool("a", five(95)), paced("b"), work=busy("b", 2))
    assert serve(snapshot, line(1, admission=HOLD))["w0"] == admit(snapshot, BUILD, admission=HOLD)
