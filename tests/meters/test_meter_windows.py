from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from meterkit import NOW, after

from bullswarm.meters import claimed_window, kind_of, limit_reading, period_window, window_from
from bullswarm.meters.windows import instant, percent


@pytest.mark.parametrize(
    ("minutes", "kind"),
    [
        (300, "five_hour"),
        (299, "five_hour"),
        (10080, "weekly"),
        (10079, "weekly"),
        (28 * 1440, "monthly"),
        (30 * 1440, "monthly"),
        (31 * 1440, "monthly"),
        (1440, "daily"),
        (60, "other"),
        (14 * 1440, "other"),
        (26 * 60, "other"),
    ],
)
def test_a_window_is_known_by_its_length(minutes: float, kind: str) -> None:
    assert kind_of(minutes) == kind
    assert window_from(minutes, 5, None).kind == kind


@given(st.floats(min_value=1440.001, max_value=1e7))
def test_a_window_over_a_day_is_never_a_burst_window(minutes: float) -> None:
    assert kind_of(minutes) != "five_hour"


@pytest.mark.parametrize("minutes", [0, -5, math.nan, math.inf])
def test_a_length_that_is_no_length_is_refused(minutes: float) -> None:
    with pytest.raises(ValueError, match="length"):
        window_from(minutes, 5, None)


@pytest.mark.parametrize("value", [None, "12", True, math.nan, math.inf, [], {}])
def test_an_unknown_percentage_is_never_zero(value: object) -> None:
    assert percent(value) is None


@pytest.mark.parametrize(("value", "known"), [(0, 0.0), (-1, 0.0), (41.5, 41.5), (130, 100.0)])
def test_a_percentage_is_clamped(value: float, known: float) -> None:
    assert percent(value) == known


@pytest.mark.parametrize(
    ("value", "known"),
    [
        ("2026-03-04T12:00:00Z", NOW),
        ("2026-03-04T13:00:00.5+01:00", NOW.replace(microsecond=500000)),
        ("2026-03-04T12:00:00", NOW),
        (NOW.timestamp(), NOW),
        (NOW.timestamp() * 1000, NOW),
        (datetime(2026, 3, 4, 12, tzinfo=UTC), NOW),
        (0, None),
        (1e30, None),
        ("soon", None),
        (None, None),
        (True, None),
    ],
)
def test_a_time_is_read_in_the_forms_providers_use(value: object, known: datetime | None) -> None:
    assert instant(value) == known


def test_a_week_named_by_the_payload_with_no_percentage_is_a_fresh_start() -> None:
    window = period_window("USAGE_PERIOD_TYPE_WEEKLY", resets_at=after(days=6))
    assert window is not None
    assert (window.kind, window.used_pct) == ("weekly", 0.0)


def test_a_limit_of_zero_is_no_window_and_never_divides() -> None:
    assert period_window("monthly", used=3, limit=0, resets_at=after(days=3)) is None


def test_an_amount_and_a_limit_make_a_percentage() -> None:
    window = period_window("monthly", used=3, limit=12)
    assert window is not None
    assert (window.kind, window.used_pct) == ("monthly", 25.0)


def test_an_amount_without_a_limit_and_a_broken_percentage_stay_unknown() -> None:
    for window in (
        period_window("weekly", used=3),
        period_window("weekly", percent_used=math.nan),
    ):
        assert window is not None
        assert window.used_pct is None


def test_an_unnamed_period_is_no_window() -> None:
    assert period_window(None, percent_used=3) is None
    assert period_window("USAGE_PERIOD_TYPE_UNSPECIFIED", percent_used=3) is None


def test_a_limit_notice_from_a_usage_reader_is_a_full_window_of_unknown_kind() -> None:
    read = limit_reading("p", after(80), NOW)
    (window,) = read.windows
    assert (window.kind, window.used_pct, window.resets_at) == ("other", 100.0, after(80))
    assert read.observed_at == NOW


@pytest.mark.parametrize(
    ("claim", "kind", "family"),
    [
        ("five_hour", "five_hour", None),
        ("seven_day", "weekly", None),
        ("seven_day_opus", "weekly", "opus"),
        ("monthly", "monthly", None),
        ("something_new", "other", None),
        (None, "other", None),
    ],
)
def test_a_rejected_claim_is_a_full_window(
    claim: str | None, kind: str, family: str | None
) -> None:
    window = claimed_window(claim, status="rejected", used_pct=None, resets_at=after(60), now=NOW)
    assert window is not None
    assert (window.kind, window.family, window.used_pct) == (kind, family, 100.0)


def test_a_status_without_a_number_gives_no_number() -> None:
    window = claimed_window(
        "five_hour", status="allowed", used_pct=None, resets_at=after(60), now=NOW
    )
    assert window is not None
    assert window.used_pct is None
    assert (
        claimed_window("five_hour", status="allowed", used_pct=None, resets_at=None, now=NOW)
        is None
    )
