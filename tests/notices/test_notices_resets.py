"""Every form in which a provider names a reset, row by row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullswarm.dispatch.notices import parse_reset, parse_retry_after
from bullswarm.dispatch.notices.resets import from_epoch
from bullswarm.dispatch.notices.zones import find_zone

NOW = datetime(2026, 11, 30, 19, 7, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# 19:07 UTC on a Monday; 20:07 in Berlin, the machine's zone here.
FORMS = [
    # A time of day in a named zone.
    ("You've hit your session limit · resets 8:20pm (Asia/Hong_Kong)", "2026-12-01 12:20"),
    ("You’ve hit your session limit ∙ resets 9:10pm (UTC)", "2026-11-30 21:10"),
    ("resets 10am (America/Chicago)", "2026-12-01 16:00"),
    ("resets 10:30am (America/Sao_Paulo)", "2026-12-01 13:30"),
    ("resets 3:20pm (Asia/Shanghai)", "2026-12-01 07:20"),
    ("resets 3pm (Europe/Berlin)", "2026-12-01 14:00"),
    ("Your limit will reset at 1pm (Etc/GMT+5).", "2026-12-01 18:00"),
    ("at 1pm (Etc/GMT+5)", "2026-12-01 18:00"),
    ("8:20pm (Asia/Hong_Kong)", "2026-12-01 12:20"),
    ("resets 8:20pm (asia/hong_kong)", "2026-12-01 12:20"),
    ("resets 8:20pm (Asia/Hong Kong)", "2026-12-01 12:20"),
    ("resets 8:20pm Asia/Hong_Kong", "2026-12-01 12:20"),
    ("resets 8:20pm (Asia/Calcutta)", "2026-12-01 14:50"),
    ("resets 9:07pm GMT+2", "2026-11-30 19:07"),
    ("resets 3pm (EST)", "2026-11-30 20:00"),
    ("resets 15:00 UTC", "2026-12-01 15:00"),
    ("resets at midnight UTC", "2026-12-01 00:00"),
    ("resets at noon (UTC)", "2026-12-01 12:00"),
    ("Resets 12am (UTC)", "2026-12-01 00:00"),
    ("Resets 12pm (UTC)", "2026-12-01 12:00"),
    ("resets 8:20 p.m. (UTC)", "2026-11-30 20:20"),
    # A time of day without a zone is the machine's.
    ("or try again at 9:07 PM.", "2026-11-30 20:07"),
    ("resets 8pm", "2026-12-01 19:00"),
    ("resets at 9pm your local time", "2026-11-30 20:00"),
    # With a date.
    ("You've hit your weekly limit · resets Dec 4, 6:30am (UTC)", "2026-12-04 06:30"),
    (
        "You've hit your weekly limit · resets Dec 18 at 3am (America/Los_Angeles)",
        "2026-12-18 11:00",
    ),
    ("You've hit your limit · resets Jan 15, 8am (Europe/Berlin)", "2027-01-15 07:00"),
    ("resets on December 4 at 6:30 AM UTC", "2026-12-04 06:30"),
    ("resets 4 Dec, 06:30 UTC", "2026-12-04 06:30"),
    ("resets Dec 4 (UTC)", "2026-12-04 00:00"),
    ("resets Dec 4, 6:30am (UTC+5:30)", "2026-12-04 01:00"),
    ("Your limit resets Thursday, December 3 at 5pm (UTC)", "2026-12-03 17:00"),
    ("resets tomorrow at 3am (UTC)", "2026-12-01 03:00"),
    # With a year: the whole date wins, whatever words precede it.
    ("try again at Dec 11th, 2026 12:27 AM.", "2026-12-10 23:27"),
    ("visit the settings page or wait, Dec 11th, 2026 12:27 AM", "2026-12-10 23:27"),
    ("to purchase more credits or try again at Apr 16th, 2027\n12:04 AM.", "2027-04-15 22:04"),
    ("Reset time: Dec 4, 2026, 6:30 AM UTC", "2026-12-04 06:30"),
    # Weekdays.
    ("resets Monday 9am", "2026-12-07 08:00"),
    ("resets Monday 9am (Asia/Tokyo)", "2026-12-07 00:00"),
    ("resets Mon 9pm", "2026-11-30 20:00"),
    ("resets Fri, 9:00 AM (UTC)", "2026-12-04 09:00"),
    # Lengths of time.
    ("Try again in 2 days 17 hours 14 minutes.", "2026-12-03 12:21"),
    ("Try again in 5 days 22 hours\n11 minutes", "2026-12-06 17:18"),
    ("in 2 days 3 hours", "2026-12-02 22:07"),
    ("try again in 1 hour and 5 minutes", "2026-11-30 20:12"),
    ("try again in about 3 hours", "2026-11-30 22:07"),
    ("try again in an hour", "2026-11-30 20:07"),
    ("Resets in 2h42m39s", "2026-11-30 21:49:39"),
    ("Your quota will reset after 10h5m3s.", "2026-12-01 05:12:03"),
    ("Your quota will reset after 1s.", "2026-11-30 19:07:01"),
    ("Please retry in 12.5s.", "2026-11-30 19:07:12.5"),
    ('"retryDelay": "34.07s"', "2026-11-30 19:07:34.07"),
    ("Retrying after explicit delay of 1500ms...", "2026-11-30 19:07:01.5"),
    ("resets in 3d 4h", "2026-12-03 23:07"),
    ("Please wait 45 minutes", "2026-11-30 19:52"),
    # Instants.
    ("Claude AI usage limit reached|1796073058", "2026-11-30 21:10:58"),
    ("Claude AI usage limit reached|1796073058000", "2026-11-30 21:10:58"),
    ('"resets_at": 1796073058, "resets_in_seconds": 7200', "2026-11-30 21:10:58"),
    ('"resets_in_seconds": 7200', "2026-11-30 21:07"),
    ("resets at 2026-12-05T04:00:00Z", "2026-12-05 04:00"),
    ("resets at 2026-12-05T04:00:00.123Z", "2026-12-05 04:00"),
    ("resets at 2026-12-05 04:00:00 +0200", "2026-12-05 02:00"),
    ("try again at 2026-12-04 06:30", "2026-12-04 05:30"),
    # Headers in a text.
    ("retry-after: 3600", "2026-11-30 20:07"),
    ("Quota exceeded. Retry-After: Wed, 02 Dec 2026 07:28:00 GMT", "2026-12-02 07:28"),
]


@pytest.mark.parametrize(("text", "want"), FORMS, ids=[text for text, _ in FORMS])
def test_every_form_names_its_instant(text: str, want: str) -> None:
    assert parse_reset(text, NOW, BERLIN) == utc(want)


@pytest.mark.parametrize(("text", "want"), FORMS, ids=[text for text, _ in FORMS])
def test_a_form_may_be_wrapped_anywhere(text: str, want: str) -> None:
    assert parse_reset(text.replace(" ", "\n  "), NOW, BERLIN) == utc(want)


UNKNOWN = [
    "resets 3pm (Nowhere/Town)",
    "resets 3pm (PST)",
    "resets 3pm (posix/UTC)",
    "resets 25:00 (UTC)",
    "resets 13pm (UTC)",
    "resets 0:61am (UTC)",
    "resets Feb 30, 3pm (UTC)",
    "resets 12/4/2026 6:30am",
    "resets soon",
    "resets at midnight Pacific",
    "resets 8pm Eastern",
    "resets later today",
    "You've hit your limit",
    "try again in 0 seconds",
    "until 2026-12-04",
    "resets in 99999999999 days",
    "Claude AI usage limit reached|1749924000",
    "Claude AI usage limit reached|17",
    "try again at Jun 11th, 2026 12:27 AM.",
    "",
]


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_cannot_be_read_for_certain_is_unknown(text: str) -> None:
    assert parse_reset(text, NOW, BERLIN) is None


# now, zone, text, instant
CALENDAR = [
    # The year rolls over.
    ("2026-12-30 12:00", "UTC", "resets Jan 2, 8am (UTC)", "2027-01-02 08:00"),
    ("2026-12-31 23:30", "UTC", "resets 1am (UTC)", "2027-01-01 01:00"),
    ("2026-12-31 12:00", "UTC", "resets 6:30am (UTC)", "2027-01-01 06:30"),
    ("2026-11-30 12:00", "UTC", "resets 6:30am (UTC)", "2026-12-01 06:30"),
    ("2026-12-31 23:00", "UTC", "resets Friday 1am (Asia/Tokyo)", "2027-01-07 16:00"),
    ("2027-01-01 00:01", "UTC", "resets Dec 31, 11:59pm (UTC)", "2027-01-01 00:01"),
    ("2026-03-01 00:00", "UTC", "resets Feb 29, 3am (UTC)", None),
    ("2027-12-01 00:00", "UTC", "resets Feb 29, 3am (UTC)", "2028-02-29 03:00"),
    # One that is nearer in the past is over, and not a year away.
    ("2026-12-01 18:00", "UTC", "resets Dec 1 at 11am (UTC)", None),
    ("2026-12-01 18:00", "UTC", "resets Sept 5th, 11am (UTC)", None),
    # The zone's rules on the day of the reset, not of the day of the notice.
    ("2026-03-28 22:00", "Europe/Berlin", "resets 5:42 AM", "2026-03-29 03:42"),
    ("2026-10-24 21:00", "Europe/Berlin", "resets 5:42 AM", "2026-10-25 04:42"),
    ("2026-03-28 04:00", "Europe/Berlin", "resets Mar 30, 6am", "2026-03-30 04:00"),
    ("2026-03-07 20:00", "UTC", "resets 9am (America/New_York)", "2026-03-08 13:00"),
    ("2026-10-31 20:00", "UTC", "resets Nov 2 at 9am (America/New_York)", "2026-11-02 14:00"),
    # The hour that is skipped, and the one that comes twice.
    ("2026-03-28 22:00", "Europe/Berlin", "resets 2:30am", "2026-03-29 01:30"),
    ("2026-10-24 22:00", "Europe/Berlin", "resets 2:30am", "2026-10-25 00:30"),
    ("2026-10-25 00:45", "Europe/Berlin", "resets 2:30am", "2026-10-25 01:30"),
    # A length of time is a length, whatever the clocks do.
    ("2026-03-28 22:00", "Europe/Berlin", "in 1 day 3 hours", "2026-03-30 01:00"),
]


@pytest.mark.parametrize(("now", "zone", "text", "want"), CALENDAR)
def test_the_calendar(now: str, zone: str, text: str, want: str | None) -> None:
    assert parse_reset(text, utc(now), ZoneInfo(zone)) == (utc(want) if want else None)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("resets 19:06 (UTC)", NOW),
        ("resets 7:03pm (UTC)", NOW),
        ("resets 19:02 (UTC)", utc("2026-12-01 19:02")),
        ("resets 2026-11-30T19:02:30Z", NOW),
        ("resets 2026-11-30T19:01:30Z", None),
        (f"limit reached|{int(NOW.timestamp()) - 299}", NOW),
        (f"limit reached|{int(NOW.timestamp()) - 301}", None),
        ("resets Nov 30, 7:04pm (UTC)", NOW),
    ],
)
def test_a_time_just_past_means_now(text: str, want: datetime | None) -> None:
    assert parse_reset(text, NOW, BERLIN) == want


def test_the_machine_s_zone_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert parse_reset("try again at 9:07 PM.", NOW) == utc("2026-12-01 12:07")
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("value", "want"),
    [
        ("3600", utc("2026-11-30 20:07")),
        (90, utc("2026-11-30 19:08:30")),
        ("1.5", utc("2026-11-30 19:07:01.5")),
        ("Wed, 02 Dec 2026 07:28:00 GMT", utc("2026-12-02 07:28")),
        ("Mon, 30 Nov 2026 19:05:00 GMT", NOW),
        ("Mon, 30 Nov 2026 18:05:00 GMT", None),
        ("2026-12-02T07:28:00Z", utc("2026-12-02 07:28")),
        ("1796073058", utc("2026-11-30 21:10:58")),
        ("2h5m", utc("2026-11-30 21:12")),
        ("0", None),
        (0, None),
        ("-5", None),
        ("soon", None),
        ("", None),
        (None, None),
        (float("nan"), None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | float | None, want: datetime | None) -> None:
    assert parse_retry_after(value, NOW) == want


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (1796073058, utc("2026-11-30 21:10:58")),
        ("1796073058", utc("2026-11-30 21:10:58")),
        (1796073058000, utc("2026-11-30 21:10:58")),
        (7200, None),
        (True, None),
        (None, None),
        ("x", None),
    ],
)
def test_an_epoch_in_seconds_or_milliseconds(value: object, want: datetime | None) -> None:
    assert from_epoch(value) == want  # type: ignore[arg-type]


def test_zones_are_known_by_name_in_any_case() -> None:
    assert find_zone("europe/berlin") == ZoneInfo("Europe/Berlin")
    assert find_zone("America/Argentina/Buenos Aires") is not None
    assert find_zone("Europe") is None
    assert find_zone("../etc/passwd") is None
    assert find_zone("Factory") is None


WORDS = """
    resets reset at in on try again retry-after : | ( ) UTC Europe/Berlin Etc/GMT+5 Dec Feb 29 30 31
    4 4th 2026 2027 9999 12am 0pm 13:61 24:00 6:30am Monday tomorrow 2 days 3 hours 5h 1s 999d a an
    1796073058 1796073058000 99999999999999 2026-12-04T06:30:00Z 0000-00-00T00:00:00Z - , ·
"""


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        st.text(max_size=80), st.lists(st.sampled_from(WORDS.split()), max_size=12).map(" ".join)
    ),
    st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),
    st.sampled_from([None, UTC, BERLIN, ZoneInfo("Pacific/Apia")]),
)
def test_it_never_crashes_and_never_names_a_past(
    text: str, now: datetime, zone: ZoneInfo | None
) -> None:
    found = parse_reset(text, now, zone)
    assert found is None or (found >= now and found.tzinfo is UTC)


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 6 * 24 * 60), st.sampled_from(["Europe/Berlin", "America/New_York", "UTC"]))
def test_a_written_date_is_read_back(minutes: int, key: str) -> None:
    zone = ZoneInfo(key)
    at = (NOW + timedelta(minutes=minutes)).astimezone(zone)
    clock = f"{at:%I:%M%p}".lstrip("0").lower()
    assert parse_reset(f"resets {at:%b} {at.day}, {clock} ({key})", NOW) == at
    assert parse_reset(f"try again at {at:%b} {at.day}th, {at.year} {clock}", NOW, zone) == at
