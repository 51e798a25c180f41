"""Which bench follows from a notice, until when, and what a fresh reading does to it."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullswarm.dispatch.notices import Bench, bench, released_by
from bullswarm.dispatch.types import Notice
from bullswarm.routing.types import Model, Pool, Quarantine, Reading, Window

NOW = datetime(2026, 11, 30, 19, 7, tzinfo=UTC)
POOL = Pool(
    name="claude-code",
    provider="claude-code",
    models=(Model(name="opus", family="opus"), Model(name="claude-sonnet-5", family="sonnet")),
)
LENGTHS = {"five_hour": 300.0, "weekly": 10080.0, "monthly": 43200.0, "other": 60.0}


def after(**kwargs: float) -> datetime:
    return NOW + timedelta(**kwargs)


def notice(kind: str = "quota", **kwargs: Any) -> Notice:
    return Notice(kind=kind, text=kwargs.pop("text", "No more."), source="text", **kwargs)  # type: ignore[arg-type]


def window(
    kind: Any, used: float | None, resets_in_h: float | None = None, family: str | None = None
) -> Window:
    at = after(hours=resets_in_h) if resets_in_h is not None else None
    return Window(kind=kind, minutes=LENGTHS[kind], used_pct=used, resets_at=at, family=family)


def reading(*windows: Window, age_min: float = 0.0, source: Any = "live") -> Reading:
    return Reading(
        pool=POOL.name, source=source, observed_at=after(minutes=-age_min), windows=windows
    )


def made(found: Bench | None) -> Bench:
    assert found is not None
    return found


# --- how long ---


def test_until_the_reset_that_was_named() -> None:
    found = made(bench(notice(resets_at=after(hours=3), window="weekly"), pool=POOL, now=NOW))
    assert (found.kind, found.until, found.source) == ("quota", after(hours=3), "named")
    assert (found.since, found.cut, found.family) == (NOW, False, None)
    assert found.reason == (
        'usage limit (weekly): "No more."; until 2026-11-30 22:07 UTC, the reset it named'
    )


def test_else_until_the_cached_5_hour_reset() -> None:
    cached = reading(
        window("five_hour", 99, 2), window("weekly", 60, 90), age_min=50, source="cache"
    )
    found = made(bench(notice(), pool=POOL, now=NOW, reading=cached))
    assert (found.until, found.source) == (after(hours=2), "meter")


@pytest.mark.parametrize(
    "cached",
    [
        None,
        reading(window("five_hour", 99, -1)),
        reading(window("weekly", 99, 30)),
        reading(window("five_hour", 99)),
    ],
)
def test_else_for_30_minutes_marked_as_a_guess(cached: Reading | None) -> None:
    found = made(bench(notice(), pool=POOL, now=NOW, reading=cached))
    assert (found.until, found.source) == (after(minutes=30), "guess")
    assert "guess" in found.reason


def test_a_dead_credential_for_10_minutes() -> None:
    found = made(bench(notice("auth"), pool="codex", now=NOW))
    assert (found.pool, found.kind, found.until) == ("codex", "auth", after(minutes=10))


@pytest.mark.parametrize("kind", ["auth-race", "login-damaged", "overloaded"])
def test_what_is_not_the_pool_s_fault_benches_nothing(kind: str) -> None:
    assert bench(notice(kind, wait_s=900.0), pool=POOL, now=NOW) is None


@pytest.mark.parametrize(
    ("wait_s", "minutes"), [(None, None), (1.0, None), (120.0, None), (900.0, 15), (1e6, 60)]
)
def test_a_throttle_benches_only_for_a_long_named_wait(
    wait_s: float | None, minutes: int | None
) -> None:
    found = bench(notice("throttle", wait_s=wait_s), pool=POOL, now=NOW)
    assert (found.until if found else None) == (after(minutes=minutes) if minutes else None)


@pytest.mark.parametrize(
    ("pool", "known", "hours", "until_h", "cut"),
    [
        (POOL, None, 167, 167, False),
        (POOL, None, 24 * 30, 24 * 7, True),
        (Pool(name="m", provider="m", pacing="monthly"), None, 24 * 30, 24 * 30, False),
        (Pool(name="m", provider="m", pacing="monthly"), None, 24 * 90, 24 * 31, True),
        (Pool(name="u", provider="u", pacing=None), (("five_hour", 50),), 24, 5, True),
        (Pool(name="u", provider="u", pacing=None), None, 24 * 90, 24 * 31, True),
        ("u", None, 24 * 20, 24 * 20, False),
    ],
)
def test_a_reset_beyond_the_longest_window_is_cut_to_it(
    pool: Any, known: Any, hours: float, until_h: float, cut: bool
) -> None:
    seen = reading(*(window(kind, used) for kind, used in known), age_min=60) if known else None
    found = made(bench(notice(resets_at=after(hours=hours)), pool=pool, now=NOW, reading=seen))
    assert (found.until, found.cut) == (after(hours=until_h), cut)
    assert ("cut to it" in found.reason) is cut


# --- one model family ---


def test_a_limit_of_one_family_benches_that_family() -> None:
    found = made(bench(notice(family="opus", window="model"), pool=POOL, now=NOW))
    assert found.family == "opus"
    assert "(opus)" in found.reason
    assert found.quarantine().family == "opus"


def test_a_model_s_name_stands_for_its_family() -> None:
    found = made(bench(notice(family="claude-sonnet-5"), pool=POOL, now=NOW))
    assert found.family == "sonnet"


def test_a_family_the_pool_does_not_know_benches_the_pool() -> None:
    found = made(bench(notice(family="fable"), pool=POOL, now=NOW))
    assert found.family is None


def test_a_pool_with_any_model_keeps_the_family() -> None:
    found = made(bench(notice(family="opus"), pool=Pool(name="x", provider="x"), now=NOW))
    assert found.family == "opus"


# --- a meter that says otherwise ---


@pytest.mark.parametrize(
    ("said", "windows", "age", "contradicted"),
    [
        (notice(resets_at=after(days=5)), (("five_hour", 12, None), ("weekly", 40, None)), 2, True),
        (
            notice(resets_at=after(days=5)),
            (("five_hour", 12, None), ("weekly", 40, None)),
            -2,
            True,
        ),
        (
            notice(resets_at=after(days=5)),
            (("five_hour", 12, None), ("weekly", 40, None)),
            6,
            False,
        ),
        (
            notice(resets_at=after(days=5)),
            (("five_hour", 12, None), ("weekly", 97, None)),
            2,
            False,
        ),
        (
            notice(resets_at=after(days=5)),
            (("five_hour", 12, None), ("weekly", None, None)),
            2,
            False,
        ),
        (
            notice(resets_at=after(days=5), window="weekly"),
            (("five_hour", 99, None), ("weekly", 40, None)),
            2,
            True,
        ),
        (notice(resets_at=after(days=5), window="monthly"), (("weekly", 40, None),), 2, False),
        (notice(resets_at=after(days=5), window="balance"), (("weekly", 40, None),), 2, False),
        (notice(resets_at=after(days=5), family="opus"), (("weekly", 40, None),), 2, False),
        (
            notice(resets_at=after(days=5), family="opus"),
            (("weekly", 99, None), ("weekly", 30, "opus")),
            2,
            True,
        ),
        (notice(resets_at=after(days=5)), (("weekly", 40, None), ("weekly", 99, "opus")), 2, True),
        (notice(resets_at=after(days=5)), (), 2, False),
    ],
)
def test_a_notice_that_a_fresh_meter_contradicts_benches_for_minutes(
    said: Notice, windows: Any, age: float, contradicted: bool
) -> None:
    seen = reading(*(window(k, u, 20, f) for k, u, f in windows), age_min=age)
    found = made(bench(said, pool=POOL, now=NOW, reading=seen))
    assert (found.source == "contradicted") is contradicted
    if contradicted:
        assert found.until == after(minutes=10)
        assert "No more." in found.reason and "% of the" in found.reason
    else:
        assert found.until == after(days=5)


def test_a_contradicted_notice_never_benches_beyond_its_own_reset() -> None:
    seen = reading(window("weekly", 40, 20))
    found = made(bench(notice(resets_at=after(minutes=3)), pool=POOL, now=NOW, reading=seen))
    assert found.until == after(minutes=3)


def test_a_cached_reading_contradicts_nothing() -> None:
    seen = reading(window("weekly", 40, 20), source="cache")
    found = made(bench(notice(resets_at=after(hours=9)), pool=POOL, now=NOW, reading=seen))
    assert found.source == "named"


# --- limits.mode = return ---


@pytest.mark.parametrize(
    ("said", "seen", "hours"),
    [
        # Its meter can be read: nothing is remembered.
        (notice(resets_at=after(hours=3)), reading(window("weekly", 100, 9)), None),
        (notice(resets_at=after(hours=3)), reading(window("weekly", 40, 9)), None),
        # It can't: full until a reset that is known.
        (notice(resets_at=after(hours=3)), None, 3),
        (notice(resets_at=after(hours=3)), reading(source="none"), 3),
        (notice(), reading(window("five_hour", 99, 2), age_min=40, source="cache"), 2),
        (
            notice(window="weekly"),
            reading(window("five_hour", 9, 2), window("weekly", 99, 30), age_min=40),
            30,
        ),
        # And never by a guess.
        (notice(), None, None),
        (notice(), reading(window("five_hour", 99, -2), age_min=40), None),
        (notice("auth"), None, None),
        (notice("throttle", wait_s=900.0), None, None),
    ],
)
def test_in_return_mode_only_a_known_reset_counts(
    said: Notice, seen: Reading | None, hours: float | None
) -> None:
    found = bench(said, pool=POOL, now=NOW, reading=seen, mode="return")
    assert (found.until if found else None) == (after(hours=hours) if hours else None)


def test_wait_mode_benches_as_quarantine_does() -> None:
    said = notice(resets_at=after(hours=3))
    assert bench(said, pool=POOL, now=NOW, mode="wait") == bench(said, pool=POOL, now=NOW)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["quota", "throttle", "auth", "auth-race", "login-damaged", "overloaded"]),
    st.one_of(st.none(), st.integers(-(10**6), 10**8)),
    st.one_of(st.none(), st.floats(0, 1e7)),
    st.lists(
        st.tuples(
            st.sampled_from(sorted(LENGTHS)),
            st.one_of(st.none(), st.floats(0, 100)),
            st.floats(-200, 800),
        ),
        max_size=3,
    ),
    st.sampled_from(["quarantine", "return", "wait"]),
)
def test_a_bench_never_ends_before_now_nor_after_a_month(
    kind: str, reset_s: int | None, wait_s: float | None, windows: Any, mode: Any
) -> None:
    at = after(seconds=reset_s) if reset_s is not None else None
    seen = reading(*(window(k, u, h) for k, u, h in windows))
    found = bench(
        notice(kind, resets_at=at, wait_s=wait_s), pool=POOL, now=NOW, reading=seen, mode=mode
    )
    if found is not None and mode != "return":
        assert NOW <= found.until <= after(days=34)
        assert found.reason


# --- released early ---


def benched(**kwargs: Any) -> Quarantine:
    base: dict[str, Any] = {
        "pool": POOL.name,
        "kind": "quota",
        "until": after(hours=156),
        "reason": "x",
        "source": "named",
        "since": after(minutes=-30),
    }
    return Quarantine(**(base | kwargs))  # fmt: skip


def test_a_fresh_reading_with_room_releases_at_once() -> None:
    why = released_by(benched(), reading(window("five_hour", 3, 4), window("weekly", 3, 160)), NOW)
    assert (
        why == "the meter, read at 2026-11-30 19:07 UTC, shows 3% of the 5-hour window: it has "
        "room again"
    )


@pytest.mark.parametrize(
    ("record", "seen"),
    [
        (benched(kind="auth"), reading(window("weekly", 3, 90))),
        (benched(kind="throttle"), reading(window("weekly", 3, 90))),
        (benched(source="contradicted"), reading(window("weekly", 3, 90))),
        (benched(until=NOW), reading(window("weekly", 3, 90))),
        (benched(), None),
        (benched(), reading(window("weekly", 3, 90), source="cache")),
        (benched(), reading(window("weekly", 3, 90), age_min=30)),
        (benched(), reading(window("weekly", 3, 90), age_min=90)),
        (benched(), reading(window("weekly", 80, 90))),
        (benched(), reading(window("weekly", 100, 90), window("five_hour", 3, 3))),
        (benched(), reading(window("weekly", None, 90))),
        (benched(), reading()),
        (benched(family="opus"), reading(window("weekly", 3, 90))),
        (
            benched(family="opus"),
            reading(window("weekly", 3, 90), window("weekly", 99, 90, "opus")),
        ),
    ],
)
def test_anything_less_releases_nothing(record: Quarantine, seen: Reading | None) -> None:
    assert released_by(record, seen, NOW) is None


@pytest.mark.parametrize(
    ("before", "now_is", "released"),
    [
        # Given back early: lower, or with a later reset, whatever its value.
        ((("weekly", 100.0, 60.0),), (("weekly", 3.0, 160.0),), True),
        ((("weekly", 100.0, 60.0),), (("weekly", 80.0, 60.0),), True),
        ((("weekly", 53.0, 60.0),), (("weekly", 1.0, 160.0),), True),
        ((("weekly", 1.0, 60.0),), (("weekly", 1.0, 160.0),), True),
        ((("weekly", 100.0, 60.0),), (("weekly", 92.0, 160.0),), False),
        # The same numbers as before are no news: the meter lags.
        ((("weekly", 60.0, 60.0),), (("weekly", 62.0, 60.0),), False),
        ((("weekly", 60.0, 60.0),), (("weekly", 59.0, 60.02),), False),
        # What has room again must be what had run out.
        (
            (("weekly", 89.0, 60.0), ("five_hour", 40.0, 1.0)),
            (("weekly", 89.0, 60.0), ("five_hour", 2.0, 4.0)),
            False,
        ),
        (
            (("weekly", 50.0, 60.0), ("five_hour", 100.0, 1.0)),
            (("weekly", 51.0, 60.0), ("five_hour", 2.0, 4.0)),
            True,
        ),
    ],
)
def test_with_an_earlier_reading_there_must_be_a_change(
    before: Any, now_is: Any, released: bool
) -> None:
    old = reading(*(window(*w) for w in before), age_min=40)
    new = reading(*(window(*w) for w in now_is))
    assert (released_by(benched(), new, NOW, old) is not None) is released


def test_a_family_s_bench_is_released_by_its_own_window() -> None:
    new = reading(window("weekly", 95, 90), window("weekly", 10, 90, "opus"))
    why = released_by(benched(family="opus"), new, NOW)
    assert why is not None and "weekly opus" in why


def test_asking_for_a_release_loads_no_grammar() -> None:
    code = (
        "import sys; from bullswarm.dispatch.notices import released_by, bench\n"
        "bad = [m for m in sys.modules if m.split('.')[-1] in"
        " ('grammar', 'words', 'resets', 'wall', 'zoneinfo', 'asyncio', 'email')]\n"
        "assert not bad, bad\n"
        "assert callable(bench) and callable(released_by)\n"
        "from bullswarm.dispatch.notices import classify\n"
        "assert not {'asyncio', 'httpx', 'subprocess', 'jsonschema', 'psutil'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
