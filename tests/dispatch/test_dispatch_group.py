"""Ending a worker with everything it started, and nothing else."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import msgspec
import pytest
from dispatchkit import QUICK, finish, python, run, runs, sh, until, watch_of

from bullswarm.dispatch import end_group, members, spawn, start, supervise_many, table
from bullswarm.dispatch.proc import Ending
from bullswarm.dispatch.table import Looks, Row, Table
from bullswarm.dispatch.types import Worker

DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        time.sleep(20)
    os._exit(0)
os.wait()
if sys.argv[1] == "stay":
    time.sleep(20)
"""


def pids(launch_stdout: str, count: int) -> list[int]:
    def said() -> list[int]:
        words = Path(launch_stdout).read_text().split()
        return [int(word) for word in words] if len(words) >= count else []

    found: list[int] = until(said)
    return found


def test_a_worker_that_ignores_term_is_killed(tmp_path: Path) -> None:
    launch = sh(tmp_path, "trap '' TERM; sleep 20 & echo $! $$; wait; sleep 20")
    worker = start(launch)
    started = pids(launch.stdout, 2)
    began = time.monotonic()
    assert end_group(worker, 0.2) == ()
    assert 0.2 <= time.monotonic() - began < 2.0
    assert not any(map(runs, started))


def test_a_shim_that_forwards_nothing_does_not_save_its_child(tmp_path: Path) -> None:
    launch = sh(tmp_path, "trap 'exit 0' TERM; sh -c 'trap \"\" TERM; echo $$; sleep 20' & wait")
    worker = start(launch)
    (child,) = pids(launch.stdout, 1)
    assert end_group(worker, 0.2) == ()
    assert not runs(child)


def test_term_is_said_once_and_its_grace_is_kept(tmp_path: Path) -> None:
    launch = sh(
        tmp_path,
        "trap 'echo term' TERM; echo up; for n in 1 2 3 4 5 6; do sleep 0.1; done; echo clean",
    )
    worker = start(launch)
    until(lambda: Path(launch.stdout).read_text())
    assert end_group(worker, 5.0) == ()
    assert Path(launch.stdout).read_text() == "up\nterm\nclean\n"


def test_what_fled_into_a_session_of_its_own_is_found_by_its_mark(tmp_path: Path) -> None:
    launch = python(tmp_path, DAEMON, "stay")
    worker = start(launch)
    (daemon,) = pids(launch.stdout, 1)
    assert daemon in until(lambda: members(worker))
    assert end_group(worker, 0.3) == ()
    assert not runs(daemon)


def test_what_is_left_after_an_exit_is_ended_and_noted(tmp_path: Path) -> None:
    ended = run(python(tmp_path, DAEMON, "go"), text_mode=True)
    assert (ended.ended_by, ended.exit_code, ended.survivors) == ("exit", 0, ())
    assert ended.notes == ("left 1 process(es) running, which were ended",)
    assert not runs(int(ended.answer))


def test_what_leaves_by_itself_right_after_is_not_noted(tmp_path: Path) -> None:
    ended = run(sh(tmp_path, "sleep 0.1 & sleep 0.15 &"))
    assert (ended.ended_by, ended.notes) == ("exit", ())


def test_a_child_without_the_mark_is_ended_by_its_session(tmp_path: Path) -> None:
    launch = sh(tmp_path, "env -i sleep 20 & echo $!")
    worker = start(launch)
    (child,) = pids(launch.stdout, 1)
    finish(watch_of(worker))
    assert not runs(child)


def test_an_outer_attempt_ends_the_inner_ones(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    inner = sh(tmp_path / "in", "exec sleep 20", env={"BULLSWARM_ATTEMPT": "outer-1"})
    worker = start(inner)
    outer = Worker(attempt_id="outer-1", pid=2**22 + 1, started=0.0, launch=inner)
    assert worker.pid in members(outer)
    assert end_group(outer, 0.2) == ()
    assert not runs(worker.pid)


def test_other_attempts_and_strangers_are_left_alone(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    one = start(sh(tmp_path / "a", "exec sleep 20", attempt_id="run-1"))
    two = start(sh(tmp_path / "b", "exec sleep 20", attempt_id="run-11"))
    stranger = subprocess.Popen(["sleep", "20"], start_new_session=True)
    try:
        assert end_group(one, 0.2) == ()
        assert runs(two.pid)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
        assert end_group(two, 0.0) == ()


def test_whose_session_it_is(tmp_path: Path) -> None:
    launch = sh(tmp_path, ":")

    def of(started: float, *rows: Row) -> tuple[int, ...]:
        worker = Worker(attempt_id="mine", pid=50, started=started, launch=launch)
        return Table(0.0, rows).of(worker)

    nobody: frozenset[str] = frozenset()
    mine = frozenset({"mine"})
    # Leader and session, then a leader that is somebody else, then none.
    assert of(7.0, Row(50, 50, 7.0, nobody), Row(51, 50, 8.0, nobody)) == (50, 51)
    assert of(7.0, Row(50, 50, 9.0, nobody), Row(51, 50, 9.5, nobody)) == ()
    assert of(0.0, Row(50, 50, 9.0, nobody)) == ()
    assert of(0.0, Row(51, 50, 9.0, nobody)) == ()
    assert of(7.0, Row(51, 50, 8.0, nobody)) == (51,)
    # A mark is enough, and vouches for its session.
    assert of(0.0, Row(60, 60, 9.0, mine)) == (60,)
    assert of(0.0, Row(51, 50, 9.0, mine), Row(52, 50, 9.0, nobody)) == (51, 52)
    assert of(0.0, Row(60, 60, 9.0, frozenset({"mine2"}))) == ()


def test_looks_are_shared_and_take_a_small_part_of_the_time() -> None:
    looks = Looks()
    before = time.monotonic()
    first = looks.look(before)
    assert first is not None
    assert first.taken_at >= before
    # Whoever began before it was taken can use it; who began since has to wait for the next.
    assert looks.look(before) is first
    assert looks.look(time.monotonic()) is None
    assert looks.look(time.monotonic(), at_once=True) is not first
    began = time.monotonic()
    assert until(lambda: looks.look(began)).taken_at >= began


def test_many_are_watched_by_one_and_each_has_its_own_end(tmp_path: Path) -> None:
    scripts = ["exit 3", "sleep 0.1; exit 4", "sleep 20", "sleep 20 & exit 5"]
    watches = []
    for number, script in enumerate(scripts):
        folder = tmp_path / str(number)
        folder.mkdir()
        limits = msgspec.structs.replace(QUICK, timeout_s=0.4)
        watches.append(watch_of(start(sh(folder, script)), limits))
    ends = {watches.index(watch): ended for watch, ended in supervise_many(watches)}
    assert {n: (end.ended_by, end.exit_code) for n, end in ends.items()} == {
        0: ("exit", 3),
        1: ("exit", 4),
        2: ("timeout", -15),
        3: ("exit", 5),
    }
    assert not any(members(watch.worker) for watch in watches)


def test_a_worker_that_ends_between_two_looks_is_no_zombie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = start(sh(tmp_path, "sleep 0.2"))
    look = table.look

    def late(since: float) -> Table | None:
        until(lambda: not runs(worker.pid))
        return look(since)

    monkeypatch.setattr(table, "look", late)
    ending = Ending(worker, 5.0, leave_s=5.0)
    until(ending.step)
    assert ending.survivors == () and worker.pid not in spawn._children
    assert not Path(f"/proc/{worker.pid}").exists()
