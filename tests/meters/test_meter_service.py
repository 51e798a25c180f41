from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import msgspec
import pytest
from meterkit import NOW, Clock, FakeProvider, account, after, five, reading, week

from bullswarm.meters import MemoryMeterStore, MeterError, Meters
from bullswarm.meters.backoff import wait_s
from bullswarm.providers.types import Account
from bullswarm.routing.types import Reading, Work


class Script:
    """Answers in turn; the last one for ever. An answer may be a reading, None or an error."""

    def __init__(self, *answers: Reading | MeterError | None) -> None:
        self.answers = list(answers)

    def __call__(self, account: Account, now: datetime) -> Reading | None:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, MeterError):
            raise answer
        return answer


def live(used: float, resets_in_days: float = 3) -> Callable[[Account, datetime], Reading]:
    def answer(account: Account, now: datetime) -> Reading:
        return Reading(
            pool=account.pool,
            source="live",
            observed_at=now,
            windows=(week(used, after(days=resets_in_days)),),
        )

    return answer


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store() -> MemoryMeterStore:
    return MemoryMeterStore()


@pytest.fixture
def meters(store: MemoryMeterStore, tmp_path: Path, clock: Clock) -> Meters:
    return Meters(store, tmp_path, clock, env={})


def test_a_reading_is_live_then_cached_until_its_ttl(meters: Meters, clock: Clock) -> None:
    provider = FakeProvider(live(10), meter_ttl_s=60)
    assert meters.read(provider, account()).source == "live"
    clock.pass_(seconds=59)
    cached = meters.read(provider, account())
    assert (cached.source, cached.observed_at) == ("cache", NOW)
    clock.pass_(seconds=1)
    assert meters.read(provider, account()).source == "live"
    assert len(provider.calls) == 2


def test_a_pools_setting_overrides_the_ttl(meters: Meters, clock: Clock) -> None:
    provider = FakeProvider(live(10), meter_ttl_s=60)
    for settings in ({"meterTtlS": 600}, {"meter_ttl_s": 600}):
        meters.read(provider, account(), settings)
        clock.pass_(seconds=100)
        assert meters.read(provider, account(), settings).source == "cache"
    assert len(provider.calls) == 1


def test_fresh_passes_over_the_ttl_but_not_over_a_back_off(meters: Meters, clock: Clock) -> None:
    ok = live(10)(account(), NOW)
    provider = FakeProvider(Script(ok, ok, MeterError("429", 0, kind="throttled")))
    meters.read(provider, account())
    meters.read(provider, account(), fresh=True)
    meters.read(provider, account(), fresh=True)
    assert len(provider.calls) == 3
    kept = meters.read(provider, account(), fresh=True)
    assert len(provider.calls) == 3
    assert kept.note is not None
    assert "not asked again before" in kept.note


def test_a_retry_after_of_zero_is_unknown_and_backs_off_by_minutes(
    meters: Meters, clock: Clock, store: MemoryMeterStore
) -> None:
    provider = FakeProvider(Script(MeterError("429", 0, kind="throttled")), meter_ttl_s=60)
    waits = []
    for _ in range(4):
        meters.read(provider, account(), fresh=True)
        ((until, _failures),) = store.backoffs.values()
        waits.append((until - clock.now).total_seconds())
        clock.now = until
    assert waits == [300, 600, 1200, 2400]
    assert len(provider.calls) == 4


@pytest.mark.parametrize(
    ("kind", "failures", "named", "wait"),
    [
        ("throttled", 1, 90.0, 90),
        ("throttled", 1, 0.0, 300),
        ("throttled", 99, None, 7200),
        ("throttled", 1, 1e9, 86400),
        ("unreachable", 1, None, 60),
        ("unreachable", 3, None, 240),
        ("unreachable", 99, None, 1800),
        ("expired", 1, None, 300),
        ("missing", 5, None, 0),
    ],
)
def test_how_long_a_meter_is_left_alone(
    kind: str, failures: int, named: float | None, wait: float
) -> None:
    assert wait_s(kind, failures, named) == wait  # type: ignore[arg-type]


def test_an_error_keeps_the_last_reading_with_its_age_and_says_why(
    meters: Meters, clock: Clock
) -> None:
    ok = live(53)(account(), NOW)
    provider = FakeProvider(Script(ok, MeterError("the endpoint is throttled", kind="throttled")))
    meters.read(provider, account())
    clock.pass_(minutes=20)
    kept = meters.read(provider, account())
    assert (kept.source, kept.observed_at) == ("cache", NOW)
    assert kept.windows == ok.windows
    assert kept.note == "the endpoint is throttled"


@pytest.mark.parametrize("kind", ["unreachable", "throttled", "expired", "missing", "damaged"])
def test_an_error_is_never_zero_percent(meters: Meters, kind: str) -> None:
    error = MeterError("no", kind=kind)  # type: ignore[arg-type]
    read = meters.read(FakeProvider(Script(error)), account())
    assert (read.source, read.windows, read.observed_at) == ("none", (), None)
    assert read.note == "no"


def test_a_kept_reading_whose_reset_passed_meanwhile_is_unknown(
    meters: Meters, clock: Clock
) -> None:
    ok = live(99, resets_in_days=0.5)(account(), NOW)
    provider = FakeProvider(Script(ok, MeterError("down")))
    meters.read(provider, account())
    clock.pass_(days=1)
    read = meters.read(provider, account())
    assert (read.source, read.windows) == ("none", ())
    assert read.note is not None
    assert "stale" in read.note


def test_a_meter_that_works_again_is_forgiven(
    meters: Meters, clock: Clock, store: MemoryMeterStore
) -> None:
    ok = live(10)(account(), after(2))
    provider = FakeProvider(Script(MeterError("down"), ok))
    meters.read(provider, account())
    assert store.backoffs
    clock.pass_(minutes=2)
    read = meters.read(provider, account())
    assert (read.source, read.note) == ("live", None)
    assert not store.backoffs


def test_a_meter_that_asked_nobody_is_not_backed_off(
    meters: Meters, store: MemoryMeterStore
) -> None:
    provider = FakeProvider(Script(MeterError("no login", kind="missing")))
    meters.read(provider, account())
    meters.read(provider, account())
    assert len(provider.calls) == 2
    assert not store.backoffs


def test_a_window_that_ended_since_it_was_read_is_read_again_within_the_ttl(
    meters: Meters, clock: Clock
) -> None:
    def answer(account: Account, now: datetime) -> Reading:
        end = after(5) if now < after(5) else after(305)
        return Reading(pool="p", observed_at=now, windows=(five(80, end),))

    provider = FakeProvider(answer, meter_ttl_s=3600)
    meters.read(provider, account())
    clock.pass_(minutes=6)
    assert meters.read(provider, account()).source == "live"


def test_a_provider_stuck_on_a_past_reset_is_not_asked_at_every_pick(
    meters: Meters, clock: Clock
) -> None:
    provider = FakeProvider(
        lambda a, now: Reading(pool="p", observed_at=now, windows=(week(99, after(-5)),))
    )
    for _ in range(3):
        read = meters.read(provider, account())
        assert (read.source, read.windows) == ("none", ())
        clock.pass_(seconds=10)
    assert len(provider.calls) == 1


def test_a_swapped_login_starts_afresh(meters: Meters, clock: Clock) -> None:
    provider = FakeProvider(Script(live(90)(account(), NOW), MeterError("down")))
    meters.read(provider, account(identity="old"))
    read = meters.read(provider, account(identity="new"))
    assert (read.source, read.windows) == ("none", ())


def test_a_reading_left_behind_by_the_login_before_is_not_this_ones(
    meters: Meters, clock: Clock, tmp_path: Path
) -> None:
    login = tmp_path / "auth.json"
    login.write_text("{}")
    os.utime(login, (after(30).timestamp(),) * 2)
    left = reading(week(90, after(days=3)), at=after(20))
    newer = reading(week(4, after(days=3)), at=after(40))
    provider = FakeProvider(Script(reading(week(80, after(days=3))), left, newer))
    meters.read(provider, account(identity="old", login_file=str(login)))
    clock.pass_(hours=1)
    read = meters.read(provider, account(identity="new", login_file=str(login)))
    assert (read.source, read.windows) == ("none", ())
    assert read.note is not None
    assert "before the login changed" in read.note
    read = meters.read(provider, account(identity="new", login_file=str(login)))
    assert read.windows == newer.windows


def test_a_refused_login_is_tried_again_when_its_file_changes(
    meters: Meters, tmp_path: Path
) -> None:
    login = tmp_path / "login.json"
    login.write_text("old")
    provider = FakeProvider(
        Script(MeterError("login expired", kind="expired"), live(3)(account(), NOW))
    )
    who = account(login_file=str(login))
    meters.read(provider, who)
    meters.read(provider, who, fresh=True)
    assert len(provider.calls) == 1
    os.utime(login, (1, 1))
    assert meters.read(provider, who).source == "live"


def test_an_early_reset_is_shown_with_the_second_reading(meters: Meters, clock: Clock) -> None:
    provider = FakeProvider(
        lambda a, now: Reading(
            pool="p",
            observed_at=now,
            windows=(week(53, after(days=3)) if now == NOW else week(1, after(days=7)),),
        )
    )
    shown = []
    for _ in range(3):
        read = meters.read(provider, account(), fresh=True)
        shown.append(read.windows[0].used_pct)
        clock.pass_(minutes=1)
    assert shown == [53, 53, 1]


def test_a_declared_reset_rolls_forward_in_cached_readings_too(
    meters: Meters, clock: Clock
) -> None:
    provider = FakeProvider(
        lambda a, now: Reading(pool="p", observed_at=now, windows=(week(40),)), meter_ttl_s=1e9
    )
    settings = {"resetsAt": after(days=2).isoformat(), "quotaWindow": "weekly"}
    assert meters.read(provider, account(), settings).windows[0].resets_at == after(days=2)
    clock.pass_(days=3)
    window = meters.read(provider, account(), settings).windows[0]
    assert window.resets_at == after(days=9)
    assert window.used_pct is None


def test_a_pool_without_a_meter_is_unknown_or_declared(meters: Meters) -> None:
    provider = FakeProvider(Script(None), quota_window="monthly")
    assert meters.read(provider, account()).source == "none"
    declared = meters.read(provider, account(), {"resetsAt": "2026-03-20T00:00:00Z"})
    assert declared.source == "declared"
    assert declared.windows[0].kind == "monthly"
    assert declared.windows[0].used_pct is None


def test_a_login_without_a_subscription_says_so(meters: Meters, clock: Clock) -> None:
    note = Reading(pool="p", note="billed by use")
    provider = FakeProvider(Script(live(10)(account(), NOW), note))
    meters.read(provider, account())
    read = meters.read(provider, account(), fresh=True)
    assert (read.source, read.windows, read.note) == ("none", (), "billed by use")


def test_a_broken_reader_is_reported_on_its_pool_and_stops_nobody(meters: Meters) -> None:
    def broken(account: Account, now: datetime) -> Reading:
        raise ZeroDivisionError("oops")

    found = meters.read_all(
        [
            (FakeProvider(broken), account("bad", "b"), None),
            (FakeProvider(live(5)), account("good", "g"), None),
        ]
    )
    assert found["bad"].source == "none"
    assert "ZeroDivisionError" in (found["bad"].note or "")
    assert found["good"].windows[0].used_pct == 5


def test_a_reader_that_hangs_is_given_up(
    store: MemoryMeterStore, tmp_path: Path, clock: Clock
) -> None:
    meters = Meters(store, tmp_path, clock, env={}, live_timeout_s=0.2)
    gate = threading.Event()

    def hang(account: Account, now: datetime) -> Reading | None:
        gate.wait(20)
        return None

    started = time.monotonic()
    found = meters.read_all(
        [
            (FakeProvider(hang), account("slow", "s"), None),
            (FakeProvider(live(5)), account("good", "g"), None),
        ]
    )
    gate.set()
    assert time.monotonic() - started < 5
    assert found["slow"].note == "the meter did not answer in time"
    assert found["good"].source == "live"


def test_live_reads_run_side_by_side(meters: Meters) -> None:
    together = threading.Barrier(4, timeout=10)

    def answer(account: Account, now: datetime) -> Reading:
        together.wait()
        return live(5)(account, now)

    found = meters.read_all(
        [(FakeProvider(answer), account(f"p{n}", f"{n}"), None) for n in range(4)]
    )
    assert {read.source for read in found.values()} == {"live"}


def test_pools_of_one_login_share_one_back_off(meters: Meters) -> None:
    provider = FakeProvider(Script(MeterError("429", kind="throttled")))
    meters.read(provider, account("p", "same"))
    meters.read(provider, account("q", "same"))
    assert provider.calls == ["p"]


def test_every_live_reading_is_recorded_and_gives_rates(meters: Meters, clock: Clock) -> None:
    used = iter((10.0, 16.0))
    provider = FakeProvider(
        lambda a, now: Reading(
            pool="p", observed_at=now, windows=(week(next(used), after(days=3)),)
        )
    )
    meters.read(provider, account())
    clock.pass_(minutes=10)
    read = meters.read(provider, account())
    assert len(meters.history("p").load()) == 2
    job = Work(id="1", pool="p", lane="build", started_at=NOW)
    (rate,) = meters.rates("p", [job])
    assert rate.per_minute == pytest.approx(0.6)
    (way,) = meters.runway(read)
    assert way.burn_per_hour == pytest.approx(36)


def test_something_older_than_what_is_known_changes_nothing(meters: Meters, clock: Clock) -> None:
    provider = FakeProvider(
        Script(
            reading(week(50, after(days=3)), at=after(-5)),
            reading(week(20, after(days=3)), at=after(-50)),
        )
    )
    meters.read(provider, account())
    read = meters.read(provider, account(), fresh=True)
    assert (read.windows[0].used_pct, read.source) == (50, "cache")


def test_a_streams_status_moves_nothing_but_a_reset(meters: Meters, clock: Clock) -> None:
    provider = FakeProvider(Script(reading(five(40, after(60)), week(30, after(days=3)))))
    meters.read(provider, account())
    clock.pass_(seconds=10)
    meters.observe(reading(five(None, after(90)), at=clock.now))
    read = meters.read(provider, account())
    assert [(w.used_pct, w.resets_at) for w in read.windows] == [
        (40, after(90)),
        (30, after(days=3)),
    ]
    assert read.observed_at == NOW


def test_a_streams_numbers_replace_those_windows(meters: Meters, clock: Clock) -> None:
    provider = FakeProvider(Script(reading(five(40, after(60)), week(30, after(days=3)))))
    meters.read(provider, account())
    clock.pass_(seconds=10)
    meters.observe(reading(five(100, after(60)), at=clock.now))
    read = meters.read(provider, account())
    assert [w.used_pct for w in read.windows] == [100, 30]
    assert read.observed_at == NOW
    meters.observe(reading(five(100, after(60)), week(31, after(days=3)), at=clock.now))
    assert meters.read(provider, account()).observed_at == clock.now
    assert len(meters.history("p").load()) == 3


def test_a_status_alone_is_no_reading(meters: Meters) -> None:
    meters.observe(reading(five(None, after(60))))
    provider = FakeProvider(Script(MeterError("down")))
    read = meters.read(provider, account())
    assert provider.calls == ["p"]
    assert [(w.used_pct, w.resets_at) for w in read.windows] == [(None, after(60))]


def test_an_unwritable_home_still_reads(store: MemoryMeterStore, clock: Clock) -> None:
    meters = Meters(store, "/proc/nowhere", clock, env={})
    assert meters.read(FakeProvider(live(10)), account()).source == "live"


def test_importing_meters_loads_nothing_heavy() -> None:
    heavy = (
        "httpx",
        "sqlalchemy",
        "dbos",
        "rich",
        "textual",
        "asyncio",
        "jsonschema",
        "subprocess",
    )
    code = (
        "import sys, bullswarm.meters, bullswarm.providers.claude_code.meter, "
        "bullswarm.providers.codex.meter\n"
        f"print([m for m in {heavy!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_notes_do_not_pile_up(meters: Meters, clock: Clock) -> None:
    provider = FakeProvider(Script(live(10)(account(), NOW), MeterError("down")))
    meters.read(provider, account())
    for _ in range(5):
        clock.pass_(minutes=40)
        read = meters.read(provider, account())
        assert read.note == "down"
    assert msgspec.json.encode(read)
