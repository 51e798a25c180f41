"""Starting a worker: what it gets, what is left behind, and never twice."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from dispatchkit import finish, launch_of, run, runs, sh, until, watch_of

import bullswarm.dispatch as dispatch
from bullswarm.dispatch import (
    AlreadyStarted,
    DepthError,
    SpawnError,
    alive,
    check_depth,
    end_group,
    find,
    next_depth,
    read_exit,
    start,
    worker_env,
)
from bullswarm.dispatch.spawn import lived
from bullswarm.dispatch.types import Worker

READ_EXIT = """
import sys, msgspec
from bullswarm.dispatch import Watch, find, read_exit
from bullswarm.dispatch.types import Launch
launch = msgspec.json.decode(sys.stdin.buffer.read(), type=Launch)
print(read_exit(find(launch)))
"""

RACE = """
import sys, msgspec
from bullswarm.dispatch import AlreadyStarted, find, start
from bullswarm.dispatch.types import Launch
launch = msgspec.json.decode(open(sys.argv[1], "rb").read(), type=Launch)
print("ready", flush=True)
sys.stdin.readline()
try:
    print("started", start(launch).pid)
except AlreadyStarted:
    worker = find(launch)
    print("found", worker and worker.pid)
"""


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exit 127", 127),
        ("exit 255", 255),
        ("kill -TERM $$", -signal.SIGTERM),
        ("kill -KILL $$", -signal.SIGKILL),
        ("kill -SEGV $$", -signal.SIGSEGV),
        ("kill -INT $$", -signal.SIGINT),
    ],
)
def test_the_exit_status_is_the_workers(tmp_path: Path, script: str, code: int) -> None:
    ended = run(sh(tmp_path, script))
    assert (ended.ended_by, ended.exit_code, ended.notes) == ("exit", code, ())
    assert ended.stderr_tail == ""


def test_a_worker_gets_its_three_streams_and_no_more(tmp_path: Path) -> None:
    ended = run(sh(tmp_path, "ls /proc/self/fd; echo said >&2"), text_mode=True)
    assert ended.answer.split() == ["0", "1", "2", "3"]  # the last is the listing's own
    assert ended.stderr_tail == "said\n"


@pytest.mark.parametrize("text", ["", "7", "x\n", "\n", "²\n"])
def test_an_exit_file_that_holds_no_status_is_none(tmp_path: Path, text: str) -> None:
    launch = sh(tmp_path, ":")
    Path(launch.exit_file).write_text(text)
    assert read_exit(Worker(attempt_id="a", pid=1, started=0.0, launch=launch)) is None


@pytest.mark.parametrize(
    ("argv", "cwd", "word"),
    [
        (["no-such-cli"], None, "command not found: no-such-cli"),
        (["./no-such-cli"], None, "command not found"),
        (["sh", "-c", ":"], "/no/such/folder", "/no/such/folder"),
        (["sh", "-c", "x" * 300_000], None, "could not be started"),
    ],
)
def test_what_cannot_be_started_leaves_nothing(
    tmp_path: Path, argv: list[str], cwd: str | None, word: str
) -> None:
    launch = launch_of(tmp_path, argv, **({"cwd": cwd} if cwd else {}))
    with pytest.raises(SpawnError, match=word):
        start(launch)
    assert list(tmp_path.iterdir()) == []
    assert find(launch) is None


def test_a_pid_file_that_cannot_be_claimed_leaves_nothing(tmp_path: Path) -> None:
    launch = sh(tmp_path, "echo never")
    broken = msgspec.structs.replace(launch, pid_file=str(tmp_path / "no" / "pid"))
    with pytest.raises(SpawnError, match="could not claim"):
        start(broken)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "a task\nwith 麺 and no end", "x" * 300_000])
def test_stdin_is_the_text_and_then_ends(tmp_path: Path, text: str) -> None:
    assert run(sh(tmp_path, "cat", stdin=text), text_mode=True).answer == text


def test_stdin_is_empty_where_there_is_no_text(tmp_path: Path) -> None:
    assert run(sh(tmp_path, "cat; echo over"), text_mode=True).answer == "over\n"


def test_the_environment_is_exactly_the_one_given(tmp_path: Path) -> None:
    launch = launch_of(tmp_path, ["env", "-0"], env={"odd.name": "kept", "TWO": "1\n2"})
    words = run(launch, text_mode=True).answer.split("\0")
    assert {"odd.name=kept", "TWO=1\n2", f"BULLSWARM_ATTEMPT={launch.attempt_id}"} <= set(words)


def test_the_workers_files_get_the_umask_of_its_starter_and_ours_are_private(
    tmp_path: Path,
) -> None:
    old = os.umask(0o022)
    try:
        launch = sh(tmp_path, "touch made")
        run(launch)
    finally:
        os.umask(old)

    def mode(name: str) -> int:
        return stat.S_IMODE((tmp_path / name).stat().st_mode)

    assert mode("made") == 0o644
    assert {mode(name) for name in ("pid", "exit", "stream.jsonl", "stderr.log")} == {0o600}


def test_a_relative_command_is_found_from_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "cli").write_text('#!/bin/sh\necho "$1"\n')
    (folder / "cli").chmod(0o755)
    launch = launch_of(tmp_path, ["./cli", "$HOME 'x'"], cwd=folder)
    assert run(launch, text_mode=True).answer == "$HOME 'x'\n"


def test_marks_of_outer_attempts_are_kept(tmp_path: Path) -> None:
    launch = sh(tmp_path, "echo $BULLSWARM_ATTEMPT", env={"BULLSWARM_ATTEMPT": "outer middle"})
    assert run(launch, text_mode=True).answer == f"outer middle {launch.attempt_id}\n"


def test_a_second_start_is_refused(tmp_path: Path) -> None:
    launch = sh(tmp_path, "echo once")
    run(launch)
    with pytest.raises(AlreadyStarted):
        start(launch)
    assert Path(launch.stdout).read_text() == "once\n"


def test_of_twenty_starters_at_once_one_starts_and_all_find_it(tmp_path: Path) -> None:
    launch = sh(tmp_path, "echo once; exec sleep 20")
    (tmp_path / "launch.json").write_bytes(msgspec.json.encode(launch))
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACE, str(tmp_path / "launch.json")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(20)
    ]
    try:
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        said = [racer.communicate()[0].split() for racer in racers]
    finally:
        worker = find(launch)
        if worker is not None:
            end_group(worker, 0.0)
    assert sorted(how for how, _ in said) == ["found"] * 19 + ["started"]
    assert len({pid for _, pid in said}) == 1
    assert Path(launch.stdout).read_text() == "once\n"


def test_any_process_can_read_the_exit_status(tmp_path: Path) -> None:
    launch = sh(tmp_path, "exit 7")
    run(launch)
    out = subprocess.run(
        [sys.executable, "-c", READ_EXIT], input=msgspec.json.encode(launch), capture_output=True
    )
    assert out.stdout == b"7\n"


def test_a_worker_is_found_and_is_alive_until_it_ends(tmp_path: Path) -> None:
    launch = sh(tmp_path, "exec sleep 20")
    assert find(launch) is None
    worker = start(launch)
    assert find(launch) == worker
    assert alive(worker)
    assert 0.0 <= lived(worker) < 5.0
    assert end_group(worker, 0.0) == ()
    assert not alive(worker)
    found = find(launch)
    assert found is not None
    assert not alive(found)


def test_another_process_with_its_pid_is_not_the_worker(tmp_path: Path) -> None:
    launch = sh(tmp_path, ":")
    stranger = subprocess.Popen(["sleep", "20"], start_new_session=True)
    try:
        Path(launch.pid_file).write_text(f"{stranger.pid}\n")
        worker = find(launch)
        assert worker is not None
        assert not alive(worker)
        assert dispatch.members(worker) == ()
        # Another start time is another process, too.
        other = Worker(attempt_id=launch.attempt_id, pid=stranger.pid, started=1.0, launch=launch)
        assert not alive(other)
        ended = finish(watch_of(worker))
        assert (ended.ended_by, ended.exit_code, ended.survivors) == ("lost", None, ())
        assert end_group(other, 0.0) == ()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_an_offspring_with_its_pid_is_not_the_worker(tmp_path: Path) -> None:
    launch = sh(tmp_path, "sleep 20 & echo $!; wait")
    worker = start(launch)
    try:
        child = until(lambda: Path(launch.stdout).read_text().strip())
        Path(launch.pid_file).write_text(f"{child}\n")
        found = find(launch)
        assert found is not None
        assert not alive(found)
    finally:
        assert end_group(worker, 0.0) == ()


def test_a_claim_that_is_being_made_is_waited_for_and_an_old_one_is_not(tmp_path: Path) -> None:
    launch = sh(tmp_path, ":")
    pid_file = Path(launch.pid_file)
    pid_file.touch()
    writer = subprocess.Popen(["sh", "-c", f"sleep 0.1; echo 99999999 > '{pid_file}'"])
    found = find(launch)
    writer.wait()
    assert found is not None
    assert found.pid == 99999999
    pid_file.write_text("")
    os.utime(pid_file, (time.time() - 60,) * 2)
    began = time.monotonic()
    assert find(launch) is None
    assert time.monotonic() - began < 0.5


@pytest.mark.parametrize(
    ("word", "depth"), [("", 0), ("0", 0), ("2", 2), (" 3 ", 3), ("x", 0), ("-1", 0), ("²", 0)]
)
def test_depth_is_read_from_the_environment(word: str, depth: int) -> None:
    env = {"BULLSWARM_DEPTH": word}
    assert next_depth(env) == depth + 1
    assert check_depth(env, depth + 1) == depth


@pytest.mark.parametrize(("word", "limit"), [("2", 2), ("3", 2), ("0", 0)])
def test_too_deep_is_refused_by_name(word: str, limit: int) -> None:
    with pytest.raises(DepthError, match=r"config\.depthLimit"):
        check_depth({"BULLSWARM_DEPTH": word}, limit)


def test_a_workers_environment_drops_and_sets() -> None:
    env: dict[str, Any] = {"A": "1", "B": "2"}
    assert worker_env(env, {"B": "3", "C": "4"}, drop=("A", "Z")) == {"B": "3", "C": "4"}
    assert env == {"A": "1", "B": "2"}


def test_the_front_door_gives_functions_whatever_was_imported_first() -> None:
    code = (
        "import bullswarm.dispatch.supervision, bullswarm.dispatch as d;"
        "from bullswarm.dispatch import *;"
        "assert all(callable(getattr(d, name)) for name in d.__all__)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    with pytest.raises(AttributeError):
        dispatch.nothing  # noqa: B018


def test_nothing_of_an_ended_attempt_runs(tmp_path: Path) -> None:
    launch = sh(tmp_path, "sleep 20 & echo $!")
    ended = run(launch, text_mode=True)
    assert not runs(int(ended.answer))
