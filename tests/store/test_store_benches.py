from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from storekit import START, Clock, agent, quota, store_at

from bullswarm.routing.types import Quarantine


def at(**delta: float) -> datetime:
    return START + timedelta(**delta)


def auth(until: datetime, pool: str = "codex") -> Quarantine:
    return Quarantine(pool=pool, kind="auth", until=until, reason="login refused")


def test_a_bench_holds_until_its_time_and_not_longer(tmp_path: Path) -> None:
    clock = Clock()
    store = store_at(tmp_path, clock)
    held = store.bench(quota(at(hours=2)), source="event")
    assert held == quota(at(hours=2), source="event", since=START)
    assert store.quarantines() == (held,)
    assert store.quarantines(at(hours=2)) == ()
    clock.on(hours=2)
    assert store.quarantines() == ()


@pytest.mark.parametrize(
    ("first", "second", "source", "guess", "until"),
    [
        (3, 99, "event", False, 99),  # the weekly window was the true binder
        (99, 3, "event", False, 3),  # the provider's own second word
        (99, 3, "text", False, 3),
        (99, 3, "sibling", False, 99),
        (99, 3, "meter", False, 99),
        (99, 3, "text", True, 99),  # its notice, but our deadline
        (99, -1, "event", False, 99),  # a reset that has passed releases nobody
        (3, 99, "meter", False, 99),
    ],
)
def test_the_later_deadline_wins_but_for_the_providers_own_second_word(
    tmp_path: Path, first: int, second: int, source: str, guess: bool, until: int
) -> None:
    store = store_at(tmp_path)
    store.bench(quota(at(hours=first)), source="event")
    held = store.bench(quota(at(hours=second)), source=source, guess=guess)
    assert held.until == at(hours=until)
    assert [q.until for q in store.quarantines()] == [at(hours=until)]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 500), st.booleans()), min_size=1, max_size=8))
def test_an_auth_bench_is_never_shortened(
    tmp_path_factory: pytest.TempPathFactory, benches: list[tuple[int, bool]]
) -> None:
    store = store_at(tmp_path_factory.mktemp("s"))
    for minutes, guess in benches:
        store.bench(auth(at(minutes=minutes)), source="event", guess=guess)
    assert store.quarantines()[0].until == at(minutes=max(minutes for minutes, _ in benches))
    store.close()


def test_kinds_and_model_families_are_benched_apart(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    store.bench(quota(at(hours=9), family="opus"))
    store.bench(quota(at(hours=1)))
    store.bench(auth(at(minutes=10)))
    found = {(q.kind, q.family): q.until for q in store.quarantines()}
    assert found == {
        ("quota", "opus"): at(hours=9),
        ("quota", None): at(hours=1),
        ("auth", None): at(minutes=10),
    }


def test_guesses_in_a_row_double_up_to_a_day_until_a_success(tmp_path: Path) -> None:
    clock = Clock()
    store = store_at(tmp_path, clock)

    def hours() -> float:
        now = clock()
        held = store.bench(quota(now + timedelta(minutes=30)), source="default", guess=True)
        clock.time = held.until + timedelta(minutes=1)
        return (held.until - now).total_seconds() / 3600

    assert [hours() for _ in range(8)] == [0.5, 1, 2, 4, 8, 16, 24, 24]
    store.succeeded("codex")
    assert hours() == 0.5
    clock.on(days=3)
    assert hours() == 0.5


def test_many_agents_that_meet_one_limit_are_one_strike(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    for _ in range(10):
        held = store.bench(quota(at(minutes=30)), source="default", guess=True)
    assert held.until == at(minutes=30)
    assert {event.strikes for event in store.bench_history("codex")} == {1}


def test_an_auth_guess_stays_flat(tmp_path: Path) -> None:
    clock = Clock()
    store = store_at(tmp_path, clock)
    for _ in range(3):
        now = clock()
        held = store.bench(auth(now + timedelta(minutes=10)), guess=True)
        assert held.until - now == timedelta(minutes=10)
        clock.on(minutes=11)


def test_a_credential_group_is_benched_on_one_deadline(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    store.bench(auth(at(hours=5), "relay-3"), source="event")
    store.bench(auth(at(minutes=10), "relay"), source="event")
    group = ("relay", "relay-2", "relay-3")
    assert store.siblings("relay", group, "login refused") == ("relay-2",)
    found = {q.pool: q for q in store.quarantines()}
    assert found["relay-2"].until == at(minutes=10)
    assert found["relay-2"].reason == "sibling of relay: login refused"
    assert found["relay-3"].until == at(hours=5)
    assert found["relay-3"].reason == "login refused"


def test_a_quota_never_spreads(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    store.bench(quota(at(hours=5), pool="relay"))
    assert store.siblings("relay", ("relay", "relay-2"), "limit") == ()
    assert [q.pool for q in store.quarantines()] == ["relay"]


def test_a_release_by_hand_lifts_everything_at_once(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    store.bench(quota(at(hours=5)))
    store.bench(quota(at(hours=5), family="opus"))
    store.bench(auth(at(hours=5)))
    store.bench(quota(at(hours=5), pool="qwen"))
    assert store.release("codex", "opus") == 1
    assert store.release("codex") == 2
    assert store.release("codex") == 0
    other = store_at(tmp_path)
    assert [q.pool for q in other.quarantines()] == ["qwen"]


def test_a_fresh_reading_ends_quota_benches_only(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    store.bench(quota(at(hours=156)), source="event")
    store.bench(auth(at(minutes=10)))
    assert store.release_early("codex", "the meter shows 3%") == 1
    assert [q.kind for q in store.quarantines()] == ["auth"]
    assert store.release_early("codex", "the meter shows 3%") == 0
    newest = store.bench_history("codex")[0]
    assert (newest.event, newest.reason) == ("released-early", "the meter shows 3%")


def test_a_guess_after_an_early_release_is_the_next_in_a_row(tmp_path: Path) -> None:
    clock = Clock()
    store = store_at(tmp_path, clock)
    store.bench(quota(at(minutes=30)), guess=True)
    store.release_early("codex", "room")
    clock.on(minutes=1)
    held = store.bench(quota(clock() + timedelta(minutes=30)), guess=True)
    assert held.until == clock() + timedelta(hours=1)


@pytest.mark.parametrize("how", ["guess", "cut"])
def test_after_an_unsure_bench_one_agent_tries_the_pool_out(tmp_path: Path, how: str) -> None:
    clock = Clock()
    store = store_at(tmp_path, clock)
    store.bench(quota(at(minutes=30)), **{how: True})
    store.add(agent(id="before"))
    clock.on(minutes=31)
    assert store.quarantines() == (), "nobody has tried yet"
    store.add(agent(id="first", started_at=at(minutes=31)))
    clock.on(minutes=2)
    (probe,) = store.quarantines()
    assert (probe.pool, probe.kind, probe.until) == ("codex", "probe", at(minutes=41))
    assert probe.reason == "one agent is trying the pool out after: limit"
    assert store.quarantines(at(minutes=41)) == (), "ten minutes at most"
    store.succeeded("codex")
    assert store.quarantines() == ()


def test_a_probe_that_ends_lets_the_next_one_try(tmp_path: Path) -> None:
    clock = Clock()
    store = store_at(tmp_path, clock)
    store.bench(quota(at(minutes=30)), guess=True)
    clock.on(minutes=31)
    store.add(agent(id="first", started_at=clock()))
    assert [q.kind for q in store.quarantines()] == ["probe"]
    store.end("first", clock(), False, "process")
    assert store.quarantines() == ()
    held = store.bench(quota(clock() + timedelta(minutes=30)), guess=True)
    assert [q.kind for q in store.quarantines()] == ["quota"]
    assert held.until == clock() + timedelta(hours=1)


def test_after_a_named_reset_nobody_has_to_try_first(tmp_path: Path) -> None:
    clock = Clock()
    store = store_at(tmp_path, clock)
    store.bench(quota(at(minutes=30)), source="event")
    clock.on(minutes=31)
    store.add(agent(started_at=clock()))
    assert store.quarantines() == ()


def test_a_probe_of_one_model_family_leaves_the_others_alone(tmp_path: Path) -> None:
    clock = Clock()
    store = store_at(tmp_path, clock)
    store.bench(quota(at(minutes=30), family="opus"), guess=True)
    clock.on(minutes=31)
    store.add(agent(id="sonnet", model="claude-sonnet-4", started_at=clock()))
    assert store.quarantines() == ()
    store.succeeded("codex", "claude-sonnet-4")
    store.add(agent(id="opus", model="claude-opus-4", started_at=clock()))
    assert [(q.kind, q.family) for q in store.quarantines()] == [("probe", "opus")]
    store.succeeded("codex", "claude-opus-4")
    assert store.quarantines() == ()


def test_a_success_does_not_end_an_active_bench(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    store.bench(quota(at(minutes=30)), guess=True)
    store.succeeded("codex")
    assert [q.until for q in store.quarantines()] == [at(minutes=30)]


def test_the_history_says_what_happened_newest_first(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    store.bench(quota(at(hours=1), reason="spent"), source="event")
    store.bench(quota(at(minutes=30)), guess=True)
    store.release("codex")
    history = store.bench_history("codex")
    assert [(e.event, e.reason, e.source) for e in history] == [
        ("released", "by hand", "event"),
        ("benched", "spent", "event"),
    ]
    assert len(store.bench_history("codex", limit=1)) == 1
