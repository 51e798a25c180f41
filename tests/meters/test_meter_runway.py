from __future__ import annotations

import pytest
from meterkit import NOW, after, five, reading, week

from bullswarm.meters import runway


def test_dry_at_comes_from_the_recent_burn_not_from_the_whole_window() -> None:
    end = after(days=2)
    history = [
        reading(week(40, end), at=after(days=-3)),
        reading(week(40, end), at=after(hours=-2)),
        reading(week(60, end), at=after(hours=-1)),
    ]
    (found,) = runway(reading(week(80, end)), history, NOW)
    assert found.burn_per_hour == pytest.approx(20)
    assert found.dry_at == after(hours=1)
    assert found.resets_at == end
    assert found.dry_first


def test_resetting_before_it_runs_dry_is_said() -> None:
    end = after(30)
    history = [reading(five(10, end), at=after(-30))]
    (found,) = runway(reading(five(20, end)), history, NOW)
    assert found.dry_at is not None
    assert not found.dry_first


def test_without_a_known_burn_there_is_no_runway() -> None:
    end = after(days=2)
    for history in (
        [],
        [reading(week(None, end), at=after(-60))],
        [reading(week(10, end), at=after(-3))],
        [reading(week(10, after(days=-1)), at=after(-60))],
        [reading(week(10, end), at=after(-60), account="other")],
    ):
        (found,) = runway(reading(week(50, end)), history, NOW)
        assert found.burn_per_hour is None
        assert found.dry_at is None
        assert not found.dry_first


def test_nothing_spent_is_a_burn_of_zero_and_never_dry() -> None:
    end = after(days=2)
    (found,) = runway(reading(week(50, end)), [reading(week(50, end), at=after(-60))], NOW)
    assert (found.burn_per_hour, found.dry_at) == (0, None)


def test_a_reset_inside_the_stretch_is_not_a_negative_burn() -> None:
    end = after(days=6)
    history = [
        reading(week(90, end), at=after(-120)),
        reading(week(2, end), at=after(-60)),
    ]
    (found,) = runway(reading(week(8, end)), history, NOW)
    assert found.burn_per_hour == pytest.approx(6)


def test_a_full_window_is_dry_now() -> None:
    (found,) = runway(reading(week(100, after(days=1))), [], NOW)
    assert found.dry_at == NOW
    assert found.dry_first


def test_an_old_burn_is_not_recent() -> None:
    end = after(hours=4)
    history = [reading(five(10, end), at=after(-200)), reading(five(20, end), at=after(-180))]
    (found,) = runway(reading(five(20, end), at=after(-180)), history, NOW)
    assert found.burn_per_hour is None


def test_an_unknown_meter_has_no_windows_to_speak_of() -> None:
    assert runway(None, [], NOW) == ()
