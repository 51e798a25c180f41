from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from storekit import NOBODY, START, Clock, agent, python, store_at, waiting

from bullswarm.errors import BullswarmError, UsageError
from bullswarm.routing.types import Quarantine, Reading, Work
from bullswarm.store import RunRecord, alive, me, started

DAY = timedelta(days=1)


def test_an_agent_comes_back_as_it_was_put(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    one = agent(
        step_id="s", model="m", pid=1, pid_started=2.5, cwd="/w", purpose="p", priority=3,
        until=START, why="w", request={"request": {"lane": "build"}}, cancel=1,
    )  # fmt: skip
    store.add(one)
    assert store.agent(one.id) == one
    assert store.agents() == (one,)


def test_fields_of_an_agent_change_and_others_stay(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    one = waiting(purpose="p")
    store.add(one)
    changed = store.change(one.id, state="running", pool="codex", started_at=START)
    assert changed is not None
    assert store.agent(one.id) == changed
    assert (changed.state, changed.pool, changed.purpose) == ("running", "codex", "p")
    assert store.change("nobody", state="running") is None
    with pytest.raises(TypeError):
        store.change(one.id, colour="red")


def test_the_line_is_served_by_priority_then_by_who_asked_first(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    later = START + timedelta(minutes=1)
    for one in (
        waiting(id="late", queued_at=later),
        waiting(id="b"),
        waiting(id="a", state="held"),
        waiting(id="urgent", queued_at=later, priority=1),
        agent(id="runs"),
        agent(id="starts", state="starting"),
    ):
        store.add(one)
    assert [one.id for one in store.line()] == ["urgent", "a", "b", "late"]


@pytest.mark.parametrize("state", ["waiting", "held", "starting", "running"])
@pytest.mark.parametrize("owner", ["alive", "dead"])
@pytest.mark.parametrize("worker", ["none", "alive", "dead"])
def test_an_agent_stays_while_its_owner_or_its_worker_lives(
    tmp_path: Path, state: str, owner: str, worker: str
) -> None:
    store = store_at(tmp_path)
    pid, since = me()
    store.add(
        agent(
            state=state,
            owner_pid=pid if owner == "alive" else NOBODY,
            owner_started=since,
            pid={"none": None, "alive": pid, "dead": NOBODY}[worker],
            pid_started=None if worker == "none" else since,
        )
    )
    stays = owner == "alive" or worker == "alive"
    assert len(store.agents()) == (1 if stays else 0)


def test_a_pid_that_is_used_again_is_another_process(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    pid, since = me()
    store.add(agent(owner_pid=pid, owner_started=since - 5))
    assert store.agents() == ()


def test_a_process_is_known_by_both_kinds_of_start_time() -> None:
    psutil = pytest.importorskip("psutil")
    pid, since = me()
    born = psutil.Process(pid).create_time()
    assert alive(pid, since)
    assert alive(pid, born)
    assert not alive(pid, born - 60)
    assert not alive(NOBODY, None)
    assert not alive(0, None)


def test_a_process_that_waits_to_be_reaped_is_dead() -> None:
    child = python("")
    pid = child.pid
    assert child.stdout is not None
    child.stdout.read()
    for _ in range(200):
        if started(pid) is None:
            break
        child_ended = python("import time; time.sleep(0.02)")
        child_ended.wait()
    assert started(pid) is None
    child.wait()


def test_what_a_killed_process_left_is_pruned_and_kept_as_lost(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    code = (
        "import sys; from storekit import *; s = store_at(Path(sys.argv[1]));"
        "s.add(agent(id='ran')); s.add(waiting(id='waited')); print('ready', flush=True);"
        "sys.stdin.read()"
    )
    child = python(code, str(tmp_path), cwd=Path(__file__).parent)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    assert [one.id for one in store.agents()] == ["ran", "waited"]
    child.kill()
    child.communicate()
    assert store.agents() == ()
    assert [(w.id, w.ended_at) for w in store.work(START)] == [("ran", START)]
    assert store.durations() == ()
    assert store.health(START) == {}
    # Whoever finds out later what became of it can still say so.
    assert store.end("ran", START + timedelta(minutes=3), True)
    assert store.durations()[0].minutes == (3,)


def test_an_agent_is_never_started_twice(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    other = python("input()")
    try:
        since = started(other.pid)
        assert since is not None
        store.add(agent(id="one", owner_pid=other.pid, owner_started=since))
        with pytest.raises(BullswarmError, match=f"belongs to process {other.pid}"):
            store.add(agent(id="one"))
    finally:
        other.kill()
        other.communicate()
    store.add(agent(id="one"))
    assert store.agents()[0].owner_pid == me()[0]


def test_an_agent_that_never_started_leaves_no_work(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    store.add(waiting(id="a"))
    store.add(waiting(id="b"))
    assert store.drop("a")
    assert not store.drop("a")
    assert store.end("b", START, False, "cancelled")
    assert not store.end("b", START, False, "cancelled")
    assert store.agents() == ()
    assert store.work() == ()


def test_work_is_what_is_in_flight_and_what_ended_since(tmp_path: Path) -> None:
    clock = Clock()
    store = store_at(tmp_path, clock)
    for id in ("old", "new", "runs"):
        store.add(agent(id=id, model="m"))
    store.add(agent(id="starts", state="starting", started_at=None))
    store.add(waiting(id="waits"))
    store.end("old", START + timedelta(minutes=1), True)
    store.end("new", START + timedelta(minutes=5), False, "quota")
    work = store.work(START + timedelta(minutes=5))
    assert {w.id: w.ended_at for w in work} == {
        "runs": None,
        "starts": None,
        "new": START + timedelta(minutes=5),
    }
    assert work[-1] == Work(
        id="new",
        pool="codex",
        lane="build",
        model="m",
        started_at=START,
        ended_at=START + timedelta(minutes=5),
    )
    assert len(store.work()) == 4


def test_durations_are_of_work_that_ran_its_course_by_pool_and_lane(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    ends = [
        ("codex", "build", True, None, 60.0),
        ("codex", "build", False, "not-produced", 120.0),
        ("codex", "build", False, "quota", 5.0),
        ("codex", "build", False, "stalled", 900.0),
        ("codex", "chore", True, None, 30.0),
        ("qwen", "build", True, None, None),
    ]
    for n, (pool, lane, ok, kind, wall) in enumerate(ends):
        store.add(agent(id=str(n), pool=pool, lane=lane))
        store.end(str(n), START + timedelta(minutes=9), ok, kind, wall)
    found = {(d.pool, d.lane): d.minutes for d in store.durations()}
    assert found == {
        ("codex", "build"): (1, 2),
        ("codex", "chore"): (0.5,),
        ("qwen", "build"): (9,),
    }
    newest = {(d.pool, d.lane): d.minutes for d in store.durations(limit=1)}
    assert newest[("codex", "build")] == (2,)


def test_a_spent_quota_is_no_error_of_the_pool(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    kinds = [None, None, None, "quota", "schema", "cancelled", "unavailable", "depth"]
    errors = ["provider", "process", "stalled", "throttle", "auth"]
    for n, kind in enumerate(kinds + errors):
        store.add(agent(id=str(n)))
        store.end(str(n), START + timedelta(minutes=1), kind is None, kind, (n + 1) * 10)
    store.add(agent(id="before"))
    store.end("before", START - timedelta(minutes=1), False, "provider", 1)
    health = store.health(START)
    assert list(health) == ["codex"]
    assert (health["codex"].attempts, health["codex"].errors) == (10, 5)
    assert health["codex"].median_seconds == 20


def test_a_cancelled_run_asks_all_its_agents_and_those_that_come_later(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    run = "20260302-120000-000-abc234"
    store.add(agent(id="one", run_id=run))
    store.add(waiting(id="two", run_id=run))
    store.add(agent(id="other"))
    assert store.cancel("abc234") == ("one", "two")
    store.add(agent(id="three", run_id=run))
    assert [store.cancel_level(id) for id in ("one", "two", "three", "other", run)] == [
        1, 1, 1, 0, 1,
    ]  # fmt: skip
    assert store.cancel(run, 2) == ("one", "three", "two")
    store.cancel(run, 1)
    assert store.cancel_level("three") == 2


def test_a_run_between_two_attempts_can_be_cancelled(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    run = "20260302-120000-000-abc234"
    store.put_run(RunRecord(run_id=run, short_id="abc234", started_at=START))
    assert store.cancel("abc") == (run,)
    assert store.cancel_level(run) == 1


def test_one_agent_can_be_cancelled_alone(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    run = "20260302-120000-000-abc234"
    for step in ("build", "check"):
        store.add(agent(id=f"{run}.{step}", run_id=run))
    assert store.cancel(f"{run}.check") == (f"{run}.check",)
    assert store.cancel_level(f"{run}.build") == 0
    assert store.cancel(f"{run}.b") == (f"{run}.build",)


def test_a_prefix_that_fits_several_is_refused(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    store.add(agent(id="x1", run_id="20260302-120000-000-abc234"))
    store.add(agent(id="x2", run_id="20260302-120000-000-abd234"))
    with pytest.raises(UsageError, match=r"fits several runs: .*abc234, .*abd234"):
        store.cancel("ab")
    with pytest.raises(UsageError, match="fits several agents: x1, x2"):
        store.cancel("x")
    assert store.cancel("nothing") == ()
    with pytest.raises(UsageError, match="several"):
        store.cancel("")
    assert store.cancel_level("x1") == 0


def test_a_dead_run_is_ended_and_a_workflow_is_left_to_its_kernel(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    pid, since = me()

    def run(id: str, owner: int | None, kind: str = "run") -> None:
        store.put_run(
            RunRecord(
                run_id=id,
                short_id=id,
                started_at=START,
                kind=kind,
                owner_pid=owner,
                owner_started=since,
            )
        )

    run("alive", pid)
    run("dead", NOBODY)
    run("flow", NOBODY, "workflow")
    run("worker", NOBODY)
    run("unknown", None)
    store.add(agent(run_id="worker", owner_pid=NOBODY, pid=pid, pid_started=since))
    assert store.reconcile() == ("dead",)
    dead = store.run("dead")
    assert dead is not None
    assert (dead.state, dead.ended_at) == ("lost", START)
    assert {r.run_id for r in store.running()} == {"alive", "flow", "worker", "unknown"}


def test_the_version_tells_waiting_work_to_look_again_and_never_to_wake_itself(
    tmp_path: Path,
) -> None:
    store, other = store_at(tmp_path), store_at(tmp_path)
    store.add(waiting(id="waits"))
    store.add(waiting(id="leaves"))
    store.add(agent(id="runs"))
    store.bench(Quarantine(pool="codex", kind="quota", until=START + DAY, reason="x"))
    seen = other.version()
    store.change("waits", state="held", why="full", until=START + DAY)
    store.add(agent(id="more"))
    store.bench(Quarantine(pool="qwen", kind="quota", until=START + DAY, reason="x"))
    assert other.version() == seen
    for what in (
        lambda: store.end("runs", START, True),
        lambda: store.drop("leaves"),
        lambda: store.release("codex"),
        lambda: store.release_early("qwen", "room"),
        lambda: store.put_reading(Reading(pool="codex")),
        lambda: store.cancel("waits"),
    ):
        what()
        assert other.version() > seen
        seen = other.version()


def test_outcomes_and_how_long_a_limit_let_a_piece_run(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    ends = ((1, "quota", 120.0), (2, "quota", 600.0), (3, "provider", 900.0), (4, None, 30.0))
    for n, kind, wall in ends:
        store.add(agent(id=f"run.step.{n}", run_id="run", ran_minutes=2.0))
        assert next(w.ran_minutes for w in store.work(START)) == 2.0
        store.end(f"run.step.{n}", START + timedelta(seconds=wall), kind is None, kind)
    store.add(agent(id="run.step2.1", run_id="run"))
    store.end("run.step2.1", START + timedelta(hours=1), False, "quota")
    found = store.outcomes()
    assert [(o.work.id, o.ok, o.failure_kind, o.wall_s) for o in found[:4]] == [
        (f"run.step.{n}", kind is None, kind, wall) for n, kind, wall in ends
    ]
    assert {o.run_id for o in found} == {"run"} and found[0].work.lane == "build"
    assert [o.work.id for o in store.outcomes(START + timedelta(minutes=30))] == ["run.step2.1"]
    assert store.cut_off_minutes("run.step") == 10.0
    assert store.cut_off_minutes("run.step2") == 60.0
    assert store.cut_off_minutes("run.ste") == store.cut_off_minutes("other") == 0.0
