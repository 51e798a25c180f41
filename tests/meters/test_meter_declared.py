from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from meterkit import NOW, after, reading, week

from bullswarm.errors import UsageError
from bullswarm.meters import declare, roll_forward, window_from
from bullswarm.routing.types import Reading


def day(year: int, month: int, date: int, hour: int = 9) -> datetime:
    return datetime(year, month, date, hour, tzinfo=UTC)


@pytest.mark.parametrize(
    ("anchor", "now", "rolled"),
    [
        (day(2026, 1, 31), day(2026, 2, 1), day(2026, 2, 28)),
        (day(2026, 1, 31), day(2026, 3, 1), day(2026, 3, 31)),
        (day(2024, 1, 31), day(2024, 2, 1), day(2024, 2, 29)),
        (day(2025, 12, 15), day(2026, 1, 15, 9), day(2026, 2, 15)),
        (day(2025, 12, 15), day(2026, 1, 15, 8), day(2026, 1, 15)),
        (day(2026, 5, 1), day(2026, 4, 1), day(2026, 5, 1)),
    ],
)
def test_a_month_keeps_its_day_clamped(anchor: datetime, now: datetime, rolled: datetime) -> None:
    assert roll_forward(anchor, "monthly", now) == rolled


@given(
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
    st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
)
def test_a_rolled_reset_is_the_first_one_ahead(anchor: datetime, now: datetime) -> None:
    weekly = roll_forward(anchor, "weekly", now)
    assert weekly > now
    assert (weekly - anchor) % timedelta(days=7) == timedelta(0)
    monthly = roll_forward(anchor, "monthly", now)
    assert monthly > now
    if anchor <= now:
        assert weekly - now <= timedelta(days=7)
        assert monthly - now <= timedelta(days=31)


def test_a_declared_reset_paces_usage_that_came_without_one() -> None:
    settings = {"resetsAt": "2026-03-01T09:00:00Z", "quotaWindow": "weekly"}
    read = declare(reading(week(40)), settings, NOW)
    (window,) = read.windows
    assert window.resets_at == day(2026, 3, 8)
    assert window.reset_declared
    assert (window.used_pct, read.source) == (40, "live")


def test_the_providers_own_reset_always_wins() -> None:
    read = reading(week(40, after(days=1)))
    assert declare(read, {"resets_at": "2026-03-01T09:00:00Z"}, NOW) is read


def test_with_nothing_read_the_source_is_declared_and_the_usage_unknown() -> None:
    settings = {"resets_at": "2026-03-01T09:00:00Z"}
    for read in (None, Reading(pool="p", note="no answer")):
        shown = declare(read, settings, NOW, pool="p", quota_window="monthly")
        (window,) = shown.windows
        assert shown.source == "declared"
        assert shown.pool == "p"
        assert (window.kind, window.used_pct) == ("monthly", None)
        assert window.resets_at == day(2026, 4, 1)


def test_usage_read_before_the_declared_window_began_is_unknown() -> None:
    settings = {"resets_at": "2026-03-04T11:00:00Z"}
    stale = declare(reading(week(93), at=after(-120)), settings, NOW)
    assert stale.windows[0].used_pct is None
    assert stale.note is not None
    assert "stale" in stale.note
    assert declare(reading(week(3), at=after(-30)), settings, NOW).windows[0].used_pct == 3


def test_the_other_windows_stay() -> None:
    read = reading(window_from(300, 10, after(60)), week(40))
    shown = declare(read, {"resets_at": "2026-03-01T09:00:00Z"}, NOW)
    assert {w.kind for w in shown.windows} == {"five_hour", "weekly"}


def test_without_a_declaration_nothing_changes() -> None:
    read = reading(week(40))
    assert declare(read, {}, NOW) is read
    assert declare(read, None, NOW) is read


def test_a_declared_reset_that_is_no_time_names_the_field() -> None:
    with pytest.raises(UsageError, match="resetsAt"):
        declare(None, {"resetsAt": "tuesday"}, NOW, pool="p")
    with pytest.raises(UsageError, match="quotaWindow"):
        declare(None, {"resetsAt": NOW.isoformat(), "quotaWindow": "daily"}, NOW, pool="p")
