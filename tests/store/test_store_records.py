from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from storekit import START, Clock, store_at

from bullswarm.errors import UsageError
from bullswarm.meters.store import MeterStore
from bullswarm.routing.types import (
    Admission,
    Candidate,
    Decision,
    Health,
    Hold,
    Model,
    Policy,
    Pool,
    Quarantine,
    Rate,
    Reading,
    Request,
    Snapshot,
    Window,
    Work,
)
from bullswarm.store import DecisionRecord, RunRecord, Store, short_id
from bullswarm.store import records as records_module

READING = Reading(
    pool="codex",
    source="live",
    observed_at=START + timedelta(microseconds=123457),
    windows=(Window(kind="weekly", minutes=10080, used_pct=33.3, resets_at=START), ),
    account="digest",
    note="odd",
)  # fmt: skip


def record(id: str = "d", run_id: str = "r") -> DecisionRecord:
    pool = Pool(
        name="codex", provider="codex", models=(Model(name="m", family="f"),), reading=READING,
        rates=(Rate(kind="weekly", per_minute=0.1),), health=Health(attempts=2),
    )  # fmt: skip
    work = (Work(id="w", pool="codex", lane="build", started_at=START),)
    bench = (Quarantine(pool="codex", kind="quota", until=START, reason="x"),)
    return DecisionRecord(
        id=id,
        run_id=run_id,
        at=START,
        snapshot=Snapshot(now=START, pools=(pool,), work=work, quarantines=bench),
        request=Request(lane="build", use=("codex",), waiting_since=START),
        policy=Policy(strategy="prefer-order", domains={"web": ("codex",)}),
        admission=Admission(mode="hold"),
        decision=Decision(
            pool=None,
            reason="held",
            hold=Hold(until=START, reason="full"),
            candidates=(Candidate(pool="codex", provider="codex", tier="normal", pace=1.5),),
        ),
    )


def test_a_decision_comes_back_with_the_very_values_it_was_made_of(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    store.put_decision(record())
    assert store.decision("d") == record()
    assert store.decision("other") is None


def test_only_the_newest_decisions_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records_module, "KEEP_DECISIONS", 3)
    store = store_at(tmp_path)
    for n in range(5):
        store.put_decision(record(str(n)))
    store.put_decision(record("4"))
    assert [d.id for d in store.decisions("r")] == ["2", "3", "4"]
    assert store.decisions("other") == ()


def run(run_id: str, **fields: object) -> RunRecord:
    values: dict[str, object] = {"short_id": short_id(run_id), "started_at": START}
    return RunRecord(run_id=run_id, **(values | fields))  # type: ignore[arg-type]


def test_a_run_is_found_by_id_short_id_and_prefix(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    one = run(
        "20260302-120000-000-abc234",
        verdict={"ok": True, "pick": {"pool": "codex"}, "wallS": 1.5},
        ended_at=START,
        state="ok",
    )
    other = run("20260302-120001-000-abd567", purpose="fix it")
    store.put_run(one)
    store.put_run(other)
    for given in (one.run_id, "abc234", "abc", "20260302-120000"):
        assert store.run(given) == one
    assert store.run("xyz") is None
    assert store.run("") is None
    assert store.run("%") is None
    with pytest.raises(UsageError, match=r"'ab' fits several runs: abd567 .*fix it.*abc234 "):
        store.run("ab")
    with pytest.raises(UsageError, match="several"):
        store.run("2026")


def test_an_exact_short_id_is_not_ambiguous(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    store.put_run(run("abcdef", short_id="abcdef"))
    store.put_run(run("abcdefg", short_id="zzzzzz"))
    found = store.run("abcdef")
    assert found is not None
    assert found.run_id == "abcdef"


def test_runs_are_listed_newest_first(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    for n in range(4):
        store.put_run(run(f"r{n}", started_at=START + timedelta(seconds=n)))
    store.put_run(run("r1", started_at=START + timedelta(seconds=1), state="failed"))
    assert [r.run_id for r in store.runs(2)] == ["r3", "r2"]
    assert [r.state for r in store.runs(None)] == ["running", "running", "failed", "running"]


def test_run_ids_sort_by_time_and_are_unique(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    times = [START + timedelta(seconds=n) for n in range(200)]
    ids = [store.new_run_id(when) for when in times]
    assert sorted(ids) == ids
    assert len({short_id(id) for id in ids}) == 200
    assert all(short_id(id)[0].isalpha() for id in ids)
    assert ids[0].startswith("20260302-120000-000-")


def test_a_short_id_that_is_stored_is_not_given_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_at(tmp_path)
    store.put_run(run("r", short_id="aaaaaa"))
    ids = iter(["aaaaaa", "bbbbbb"])
    monkeypatch.setattr(records_module, "_short", lambda: next(ids))
    assert store.new_run_id().endswith("-bbbbbb")


def test_an_incumbent_counts_for_a_day(tmp_path: Path) -> None:
    clock = Clock()
    store = store_at(tmp_path, clock)
    assert store.incumbent("repo build") is None
    store.set_incumbent("repo build", "codex")
    store.set_incumbent("repo build", "qwen")
    clock.on(hours=24)
    assert store.incumbent("repo build") == "qwen"
    clock.on(seconds=1)
    assert store.incumbent("repo build") is None


def test_the_store_is_a_meter_store(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    meters: MeterStore = store
    meters.put_reading(READING)
    assert meters.get_reading("codex", "digest") == READING
    assert meters.get_reading("codex", None) is None
    assert meters.get_reading("qwen", "digest") is None
    unknown = Reading(pool="codex")
    meters.put_reading(unknown)
    assert meters.get_reading("codex", None) == unknown
    assert meters.get_reading("codex", "digest") == READING
    when = datetime(2026, 3, 2, 12, 0, 0, 999_999, tzinfo=UTC)
    assert meters.get_backoff("key") is None
    meters.put_backoff("key", when, 2)
    assert meters.get_backoff("key") == (when, 2)
    meters.clear_backoff("key")
    assert meters.get_backoff("key") is None


def test_small_values_are_kept_by_name(tmp_path: Path) -> None:
    store: Store = store_at(tmp_path)
    assert store.get_value("a") is None
    assert store.get_value("a", 7) == 7
    store.set_value("a", {"b": [1, 2.5, None]})
    assert store_at(tmp_path).get_value("a") == {"b": [1, 2.5, None]}
    store.set_value("a", None)
    assert store.get_value("a") is None


def test_starts_of_one_login_are_apart(tmp_path: Path) -> None:
    clock = Clock()
    store = store_at(tmp_path, clock)
    assert [store.claim_start("login", 5) for _ in range(3)] == [0, 5, 10]
    assert store.claim_start("other", 5) == 0
    clock.on(seconds=12)
    assert store.claim_start("login", 5) == 3
    clock.on(minutes=1)
    assert store.claim_start("login", 5) == 0
    clock.on(days=-1)
    assert store.claim_start("login", 5) == 0, "a clock that was set back makes nobody wait"
