"""Accounts as they truly are: windows that fill, begin, end and are given back."""

from __future__ import annotations

import pytest
from simkit import pool

from bullswarm.simulate.account import Account
from bullswarm.simulate.calendar import Clock, fixed_windows
from bullswarm.simulate.types import DAY, FIVE_HOURS, WEEK, PoolSpec

CLOCK = Clock()


def account(spec: PoolSpec | None = None, early: tuple[float, ...] = ()) -> Account:
    return Account(spec or pool(), CLOCK, 30 * DAY, early)


def test_windows_start_at_first_use_and_not_before() -> None:
    one = account()
    assert [w.end for w in one.windows] == [None, None] and one.next_at() == float("inf")
    one.advance(500.0)
    one.use()
    assert one.five is not None and one.pacing is not None
    assert (one.five.begin, one.five.end) == (500.0, 500.0 + FIVE_HOURS)
    assert (one.pacing.begin, one.pacing.end) == (500.0, 500.0 + WEEK)


def test_a_window_fills_by_worker_minutes_and_says_when() -> None:
    one = account()
    one.use()
    one.use()
    assert one.next_at() == 100.0, "two agents fill 200 worker-minutes in 100"
    one.advance(100.0)
    assert one.five is not None and one.five.full
    assert one.full_until() == FIVE_HOURS and one.full_kind() == "five_hour"
    assert one.pacing is not None and one.pacing.used == pytest.approx(100 * 200 / 1800)


def test_a_window_that_ends_begins_anew_only_with_somebody_at_work() -> None:
    one = account()
    one.use()
    one.advance(10.0)
    one.leave()
    one.advance(FIVE_HOURS)
    assert one.turn()
    assert one.five is not None and one.five.end is None and one.five.used == 0.0
    busy = account()
    busy.use()
    busy.advance(FIVE_HOURS)
    busy.turn()
    assert busy.five is not None and busy.five.end == 2 * FIVE_HOURS


def test_an_early_reset_gives_all_back() -> None:
    one = account()
    one.use()
    one.advance(50.0)
    one.reset_early()
    assert [w.used for w in one.windows] == [0.0, 0.0]
    assert [w.begin for w in one.windows] == [50.0, 50.0]


def test_a_fixed_week_follows_its_calendar_whatever_the_work() -> None:
    spec = pool(starts="fixed", resets_in_hours=10.0, used=30.0)
    assert fixed_windows(spec, CLOCK, 15 * DAY) == [
        (0.0, 600.0, 30.0),
        (600.0, 600.0 + WEEK, 0.0),
        (600.0 + WEEK, 600.0 + 2 * WEEK, 0.0),
        (600.0 + 2 * WEEK, 600.0 + 3 * WEEK, 0.0),
    ]
    cut = fixed_windows(spec, CLOCK, 8 * DAY, (700.0,))
    assert cut[:2] == [(0.0, 600.0, 30.0), (600.0, 700.0, 0.0)]
    assert cut[2:] == [(700.0, 700.0 + WEEK, 0.0), (700.0 + WEEK, 700.0 + 2 * WEEK, 0.0)]


def test_a_month_is_a_month_of_the_calendar() -> None:
    spec = PoolSpec(name="m", monthly=1000.0)
    # Minute 0 is the 5th of January.
    assert CLOCK.pacing_end(spec, 0.0) == 31 * DAY
    assert CLOCK.pacing_end(spec, 31 * DAY) == (31 + 28) * DAY
    last = CLOCK.minutes(CLOCK.origin.replace(day=31))
    assert CLOCK.time(CLOCK.pacing_end(spec, last)).day == 28


def test_time_goes_on_however_small_the_window() -> None:
    one = account(PoolSpec(name="tiny", five_hour=1e-6))
    one.advance(400 * DAY)
    one.use()
    for _ in range(3):
        if one.full_until() is not None:
            break
        at = one.next_at()
        assert at > one.now
        one.advance(at)
    assert one.full_kind() == "five_hour"
