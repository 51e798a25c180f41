"""A home's own records, replayed; and what they can't tell is said."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bullswarm.errors import BullswarmError
from bullswarm.routing.types import Pool, Rate, Reading, Window, Work
from bullswarm.simulate.history import replay
from bullswarm.simulate.report import compare
from bullswarm.store.ended import EndedWork

BEGAN = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return BEGAN + timedelta(minutes=minutes)


def ended(id: str, start: float, minutes: float, kind: str | None = None, pool: str = "a") -> Any:
    work = Work(id=id, pool=pool, lane="build", started_at=at(start), ended_at=at(start + minutes))
    run = id.rpartition(".")[0]
    return EndedWork(
        work=work, run_id=run, ok=kind is None, failure_kind=kind, wall_s=minutes * 60.0
    )


def reading(minute: float, week: float, resets: float, five: float = 10.0) -> Reading:
    return Reading(
        pool="a",
        source="live",
        observed_at=at(minute),
        windows=(
            Window(kind="five_hour", minutes=300, used_pct=five, resets_at=at(minute + 100)),
            Window(kind="weekly", minutes=10080, used_pct=week, resets_at=at(resets)),
        ),
    )


KNOWN = Pool(
    name="a",
    provider="a",
    rates=(
        Rate(kind="five_hour", per_minute=0.5, worker_minutes=90.0),
        Rate(kind="weekly", per_minute=0.05, worker_minutes=90.0),
    ),
)
RUNS = (
    ended("r1.1", 10, 20.0),
    ended("r2.1", 30, 15.0, "quota"),
    ended("r2.2", 60, 25.0, pool="b"),
    ended("r3.1", 100, 5.0, "not-produced"),
    ended("r4.1", 110, 0.0, "cancelled"),
    ended("r5.1", 120, 9.0, "quota"),
)
ARRIVED = {"r1": at(0), "r2": at(20), "r3": at(100), "r4": at(100), "r5": at(118)}
SERIES = {"a": (reading(-30, 40.0, 600.0), reading(50, 42.0, 600.0))}


def made(**more: Any) -> Any:
    return replay(RUNS, ARRIVED, [KNOWN], SERIES, **more)


def test_work_arrives_as_it_did_and_lasts_as_long_as_its_whole_attempt_did() -> None:
    one = made()
    assert [(t.at, t.minutes) for t in one.scenario.tasks] == [
        (0.0, 20.0),
        (20.0, 25.0),
        (100.0, 5.0),
        (118.0, 9.0),
    ]
    assert one.scenario.began == BEGAN.isoformat()


def test_capacities_are_the_measured_burn_turned_round() -> None:
    a, b = made().scenario.fleet.pools
    assert (a.five_hour, a.weekly) == (200.0, 2000.0)
    assert (a.starts, a.resets_in_hours, a.used, a.meter) == ("fixed", 10.0, 40.0, True)
    assert (b.five_hour, b.weekly, b.meter) == (None, None, False)


def test_what_happened_is_counted_like_a_simulation() -> None:
    was = made().recorded
    assert (was.tasks, was.done, was.lost_to_limits) == (4, 3, 2)
    assert was.harvested == pytest.approx(20 + 25 + 5) and was.wasted == pytest.approx(15 + 9)
    assert was.waits == pytest.approx((10.0, 40.0, 0.0, 2.0)) and was.cost is None


def test_what_is_not_known_is_said() -> None:
    words = " / ".join(made().unknown)
    assert "b did work but is no pool of this home now" in words
    assert "1 of 4 tasks never ran their whole course" in words
    assert "1 tasks were cancelled or lost" in words
    assert "as long on any pool" in words
    bare = Pool(name="a", provider="a", reserve_pct=10.0)
    unmeasured = " / ".join(replay(RUNS, ARRIVED, [bare], SERIES).unknown)
    assert "too little work was measured" in unmeasured and "reserve" in unmeasured
    assert "no meter reading" in " / ".join(replay(RUNS, ARRIVED, [bare], {}).unknown)


def test_an_early_reset_in_the_readings_is_one_in_the_replay() -> None:
    series = {"a": (*SERIES["a"], reading(90, 1.0, 90 + 10080.0))}
    one = replay(RUNS, ARRIVED, [KNOWN], series)
    assert one.scenario.early_resets["a"] == (90.0,)
    assert made().scenario.early_resets["a"] == ()


def test_the_newest_days_only() -> None:
    old = ended("r0.1", -5 * 1440, 7.0)
    assert len(replay((old, *RUNS), ARRIVED, [KNOWN], SERIES).scenario.tasks) == 5
    assert len(replay((old, *RUNS), ARRIVED, [KNOWN], SERIES, days=2).scenario.tasks) == 4


def test_nothing_to_replay() -> None:
    with pytest.raises(BullswarmError, match="no finished work on record"):
        replay([], {}, [KNOWN], SERIES)


def test_the_report_sets_what_happened_beside_what_would_have() -> None:
    report = compare(made(), ["pace+hold", "random"], processes=1)
    assert report.recorded is not None and report.unknown == made().unknown
    assert report.recorded.policy == report.recorded.admission == "recorded"
    held = report.policies[0]
    assert held.done == held.tasks == 4 and held.lost_to_limits == 0
    assert held.harvested == pytest.approx(20 + 25 + 5 + 9)
    assert report.bound == pytest.approx(59.0) and held.cost is None


def test_work_of_less_than_a_second_counts_alike_in_what_happened_and_in_the_replay() -> None:
    tiny = replay([ended("r1.1", 10, 0.002)], {"r1": at(10)}, [KNOWN], {})
    (task,) = tiny.scenario.tasks
    value = tiny.scenario.fleet.pools[0].value_per_minute
    assert tiny.recorded.harvested == pytest.approx(task.minutes * value)
