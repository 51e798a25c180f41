"""The starter dies: whoever comes next reads the same end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
from dispatchkit import finish, sh, until, watch_of

from bullswarm.dispatch import alive, end_group, find
from bullswarm.dispatch.types import Launch

STARTER = """
import sys, time, msgspec
from bullswarm.dispatch import start
from bullswarm.dispatch.types import Launch
start(msgspec.json.decode(sys.stdin.buffer.read(), type=Launch))
print("up", flush=True)
time.sleep(60)
"""


def start_and_kill(launch: Launch) -> None:
    """Let another process start it, and kill that one."""
    with subprocess.Popen(
        [sys.executable, "-c", STARTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as starter:
        assert starter.stdin is not None
        assert starter.stdout is not None
        starter.stdin.write(msgspec.json.encode(launch))
        starter.stdin.close()
        assert starter.stdout.readline() == b"up\n"
        starter.kill()


def test_a_worker_outlives_its_starter_and_is_watched_to_its_end(tmp_path: Path) -> None:
    script = """
        echo '{"kind":"text","text":"before"}'
        while [ ! -e go ]; do sleep 0.02; done
        echo '{"kind":"final","text":"after"}'
        exit 9
    """
    launch = sh(tmp_path, script)
    start_and_kill(launch)
    worker = find(launch)
    assert worker is not None
    assert alive(worker)
    heard = []
    watch = watch_of(worker, on_event=lambda event: heard.append(event.text))
    assert watch.poll() is None
    (tmp_path / "go").touch()
    ended = finish(watch)
    assert (ended.ended_by, ended.exit_code, ended.answer) == ("exit", 9, "after")
    assert heard == ["before", "after"]


def test_an_end_that_nobody_watched_is_read_afterwards(tmp_path: Path) -> None:
    launch = sh(tmp_path, 'sleep 0.2; echo \'{"kind":"final","text":"done"}\'; exit 2')
    start_and_kill(launch)
    until(lambda: Path(launch.exit_file).exists())
    worker = find(launch)
    assert worker is not None
    ended = finish(watch_of(worker))
    assert (ended.ended_by, ended.exit_code, ended.answer) == ("exit", 2, "done")
    # How long it ran, not how long it took to read.
    assert 0.15 <= ended.wall_s < 2.0


def test_a_worker_that_was_killed_with_all_it_had_is_lost(tmp_path: Path) -> None:
    launch = sh(tmp_path, "exec sleep 20")
    start_and_kill(launch)
    worker = find(launch)
    assert worker is not None
    watch = watch_of(worker)
    assert watch.poll() is None
    assert end_group(worker, 0.0) == ()
    ended = finish(watch)
    assert (ended.ended_by, ended.exit_code) == ("lost", None)
