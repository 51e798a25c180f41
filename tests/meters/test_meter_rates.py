from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from meterkit import NOW, after, five, reading, week

from bullswarm.meters import rates
from bullswarm.routing.types import Rate, Reading, Work


def work(start: float, end: float | None, *, pool: str = "p", model: str | None = None) -> Work:
    return Work(
        id=f"{start}-{end}",
        pool=pool,
        lane="build",
        started_at=after(start),
        ended_at=None if end is None else after(end),
        model=model,
    )


def only(found: tuple[Rate, ...]) -> Rate:
    (rate,) = found
    return rate


RESET = after(200)


def test_a_rate_is_points_per_worker_minute() -> None:
    history = [reading(five(10, RESET), at=after(-20)), reading(five(16, RESET), at=after(-10))]
    rate = only(rates(history, [work(-20, -10)], NOW))
    assert rate.per_minute == pytest.approx(0.6)
    assert rate.worker_minutes == pytest.approx(10)


def test_two_workers_at_once_are_two_minutes_a_minute() -> None:
    history = [reading(five(10, RESET), at=after(-20)), reading(five(16, RESET), at=after(-10))]
    rate = only(rates(history, [work(-20, -10), work(-30, None)], NOW))
    assert rate.per_minute == pytest.approx(0.3)


@pytest.mark.parametrize(("minutes", "known"), [(4.99, False), (5.0, True)])
def test_below_five_worker_minutes_there_is_no_rate(minutes: float, known: bool) -> None:
    history = [reading(five(10, RESET), at=after(-20)), reading(five(16, RESET), at=after(-10))]
    rate = only(rates(history, [work(-20, -20 + minutes)], NOW))
    assert (rate.per_minute is not None) is known
    assert rate.worker_minutes == pytest.approx(minutes)


def test_spend_while_nothing_was_dispatched_is_somebody_elses() -> None:
    history = [
        reading(five(10, RESET), at=after(-30)),
        reading(five(40, RESET), at=after(-20)),
        reading(five(46, RESET), at=after(-10)),
    ]
    assert only(rates(history, [work(-20, -10)], NOW)).per_minute == pytest.approx(0.6)


def test_a_counter_that_went_down_starts_a_new_segment() -> None:
    history = [
        reading(five(90), at=after(-30)),
        reading(five(2), at=after(-20)),
        reading(five(8), at=after(-10)),
    ]
    rate = only(rates(history, [work(-30, -10)], NOW))
    assert rate.per_minute == pytest.approx(0.6)
    assert rate.worker_minutes == pytest.approx(10)


def test_a_changed_reset_starts_a_new_segment() -> None:
    history = [
        reading(five(10, after(-15)), at=after(-30)),
        reading(five(50, after(285)), at=after(-10)),
        reading(five(56, after(285)), at=NOW),
    ]
    rate = only(rates(history, [work(-30, 0)], NOW))
    assert rate.per_minute == pytest.approx(0.6)


def test_the_jitter_of_a_reset_is_no_new_segment() -> None:
    history = [
        reading(five(10, RESET), at=after(-20)),
        reading(five(16, RESET + timedelta(seconds=1)), at=after(-10)),
    ]
    assert only(rates(history, [work(-20, -10)], NOW)).per_minute is not None


def test_another_account_starts_a_new_segment() -> None:
    history = [
        reading(five(10, RESET), at=after(-20), account="old"),
        reading(five(16, RESET), at=after(-10), account="new"),
    ]
    assert only(rates(history, [work(-20, -10)], NOW)).worker_minutes == 0


def test_points_without_a_percentage_are_ignored() -> None:
    history = [
        reading(five(10, RESET), at=after(-20)),
        reading(five(None, RESET), at=after(-15)),
        reading(five(16, RESET), at=after(-10)),
    ]
    assert only(rates(history, [work(-20, -10)], NOW)).per_minute == pytest.approx(0.6)


def test_another_pools_work_does_not_count() -> None:
    history = [reading(five(10, RESET), at=after(-20)), reading(five(16, RESET), at=after(-10))]
    assert only(rates(history, [work(-20, -10, pool="q")], NOW)).worker_minutes == 0


def test_each_window_has_its_own_rate() -> None:
    history = [
        reading(five(10, RESET), week(1, after(days=2)), at=after(-20)),
        reading(five(20, RESET), week(2, after(days=2)), at=after(-10)),
    ]
    found = {r.kind: r.per_minute for r in rates(history, [work(-20, -10)], NOW)}
    assert found == {"five_hour": pytest.approx(1.0), "weekly": pytest.approx(0.1)}


def test_a_familys_window_is_set_against_that_familys_work() -> None:
    end = after(days=2)
    history = [
        reading(week(10, end, "opus"), at=after(-20)),
        reading(week(20, end, "opus"), at=after(-10)),
    ]
    jobs = [work(-20, -10, model="claude-opus-4"), work(-20, -10, model="sonnet"), work(-20, -10)]
    rate = only(rates(history, jobs, NOW))
    assert (rate.family, rate.per_minute) == ("opus", pytest.approx(1.0))


def test_a_meter_that_reports_late_can_be_told_so() -> None:
    history = [
        reading(five(10, RESET), at=after(-18)),
        reading(five(20, RESET), at=after(-8)),
    ]
    rate = only(rates(history, [work(-20, -10)], NOW, lag_minutes=2))
    assert rate.per_minute == pytest.approx(1.0)


def test_recent_work_weighs_more() -> None:
    def pair(day: float, points: float) -> list[Reading]:
        end = after(days=day, hours=5)
        return [
            reading(five(0, end), at=after(days=day)),
            reading(five(points, end), at=after(10, days=day)),
        ]

    history = [*pair(-28, 10), *pair(-1, 20)]
    jobs = [work(-28 * 1440, -28 * 1440 + 10), work(-1440, -1430)]
    rate = only(rates(history, jobs, NOW))
    assert rate.per_minute is not None
    assert 1.8 < rate.per_minute < 2.0


minutes_ago = st.integers(min_value=1, max_value=2000)
spans = st.lists(st.tuples(minutes_ago, minutes_ago), max_size=12)
points = st.lists(
    st.tuples(minutes_ago, st.one_of(st.none(), st.floats(min_value=0, max_value=100))), max_size=20
)


def make(
    marks: list[tuple[int, float | None]], jobs: list[tuple[int, int]]
) -> tuple[list[Reading], list[Work]]:
    seen: dict[int, Reading] = {}
    for ago, used in marks:
        seen[ago] = reading(week(used, after(days=1)), at=after(-ago))
    return list(seen.values()), [work(-max(a, b), -min(a, b)) for a, b in jobs]


@settings(max_examples=150, deadline=None)
@given(points, spans)
def test_a_rate_is_null_or_not_negative(
    marks: list[tuple[int, float | None]], jobs: list[tuple[int, int]]
) -> None:
    history, spent = make(marks, jobs)
    for rate in rates(history, spent, NOW):
        assert rate.worker_minutes >= 0
        assert (rate.per_minute is None) == (rate.worker_minutes < 5)
        assert rate.per_minute is None or rate.per_minute >= 0


@settings(max_examples=100, deadline=None)
@given(points, spans, st.randoms(use_true_random=False))
def test_the_order_of_points_and_work_never_matters(
    marks: list[tuple[int, float | None]], jobs: list[tuple[int, int]], random: object
) -> None:
    history, spent = make(marks, jobs)
    first = rates(history, spent, NOW)
    random.shuffle(history)  # type: ignore[attr-defined]
    random.shuffle(spent)  # type: ignore[attr-defined]
    again = rates(history, spent, NOW)
    assert [(r.kind, r.worker_minutes) for r in again] == [
        (r.kind, pytest.approx(r.worker_minutes)) for r in first
    ]
    for a, b in zip(first, again, strict=True):
        assert a.per_minute == pytest.approx(b.per_minute)


@settings(max_examples=100, deadline=None)
@given(
    st.floats(min_value=0.001, max_value=0.04),
    st.lists(st.integers(min_value=1, max_value=60), min_size=2, max_size=15),
)
def test_a_steady_burn_is_found_whatever_the_spacing_of_readings(
    burn: float, gaps: list[int]
) -> None:
    at, history, passed = -2000.0, [], 0
    for gap in [0, *gaps]:
        passed += gap
        history.append(reading(week(burn * passed, after(days=2)), at=after(at + passed)))
    rate = only(rates(history, [work(at, at + passed)], NOW))
    if passed >= 5:
        assert rate.per_minute == pytest.approx(burn)


def test_worker_minutes_are_those_between_the_first_and_the_last_reading() -> None:
    start: datetime = after(-100)
    history = [
        reading(week(1, after(days=1)), at=start),
        reading(week(2, after(days=1)), at=after(-40)),
    ]
    assert only(rates(history, [work(-500, None)], NOW)).worker_minutes == pytest.approx(60)
