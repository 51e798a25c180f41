"""Commands that prove: their end, their tail, what they leave running, what they must not touch."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from bullswarm.judge import run_command


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead but not reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_exit_zero_passes_and_keeps_the_output(tmp_path: Path) -> None:
    done = run_command("echo out; echo err >&2", tmp_path, 10)
    assert (done.ok, done.exit_code, done.why, done.timed_out) == (True, 0, "passed", False)
    assert done.tail == "out\nerr\n"
    assert 0 <= done.wall_s < 5


def test_a_list_is_started_without_a_shell(tmp_path: Path) -> None:
    assert run_command(["echo", "$HOME;", "a b"], tmp_path, 10).tail == "$HOME; a b\n"


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("exit 3", 3, "exited 3"),
        ("kill -9 $$", -9, "signal 9"),
        ("no-such-command-here", 127, "exited 127"),
    ],
)
def test_any_other_exit_fails(tmp_path: Path, command: str, code: int, words: str) -> None:
    done = run_command(command, tmp_path, 10)
    assert (done.ok, done.exit_code) == (False, code)
    assert words in done.why


@pytest.mark.parametrize("command", [["no-such-command-here"], [], ["/"], ["a\0b"]])
def test_a_command_that_cannot_start_fails_and_says_so(tmp_path: Path, command: list[str]) -> None:
    done = run_command(command, tmp_path, 10)
    assert (done.ok, done.exit_code) == (False, None)
    assert "could not be started" in done.why


def test_a_folder_that_is_gone_fails(tmp_path: Path) -> None:
    assert not run_command("true", tmp_path / "none", 10).ok


def test_the_whole_group_is_ended_at_the_timeout(tmp_path: Path) -> None:
    script = "trap '' TERM; sleep 60 & echo $! > child; echo begun; wait; sleep 60"
    begun = time.monotonic()
    done = run_command(script, tmp_path, 0.5)
    assert (done.ok, done.timed_out, done.tail) == (False, True, "begun\n")
    assert "timed out after 0.5s" in done.why
    assert time.monotonic() - begun < 8
    assert not alive(int((tmp_path / "child").read_text()))


def test_what_it_leaves_running_is_ended(tmp_path: Path) -> None:
    begun = time.monotonic()
    done = run_command("sleep 60 & echo $! > child; echo ok", tmp_path, 30)
    assert done.ok and done.tail == "ok\n"
    assert time.monotonic() - begun < 5
    assert not alive(int((tmp_path / "child").read_text()))


def test_a_detached_child_that_holds_the_output_does_not_hold_us(tmp_path: Path) -> None:
    begun = time.monotonic()
    done = run_command("setsid sleep 20 & echo $! > child; echo ok", tmp_path, 30)
    assert done.ok and done.tail == "ok\n"
    assert time.monotonic() - begun < 5


def test_only_the_tail_of_a_long_output_is_kept(tmp_path: Path) -> None:
    done = run_command("head -c 5000000 /dev/zero | tr '\\0' x; echo end", tmp_path, 30)
    assert done.ok and len(done.tail) == 4000 and done.tail.endswith("xend\n")
    assert run_command("echo abcdef", tmp_path, 10, 3).tail == "ef\n"
    assert run_command("echo abcdef", tmp_path, 10, 0).tail == ""


@pytest.mark.parametrize("keep", range(1, 9))
def test_a_cut_never_garbles_a_character(tmp_path: Path, keep: int) -> None:
    tail = run_command(["printf", "%s", "€€€"], tmp_path, 10, keep).tail
    assert tail == "€" * (keep // 3)


def test_it_reads_nothing_from_the_terminal(tmp_path: Path) -> None:
    assert run_command("cat", tmp_path, 5).ok


def test_a_check_that_changes_the_deliverable_has_failed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x").write_text("x")
    touched = run_command("touch a.txt other; cat a.txt", tmp_path, 10, protect=["a.txt", "d"])
    assert touched.ok and touched.changed == ()
    for command, path in (
        ("echo two > a.txt", "a.txt"),
        ("echo y > d/x", "d"),
        ("rm a.txt", "a.txt"),
    ):
        done = run_command(command, tmp_path, 10, protect=["a.txt", "d"])
        assert (done.ok, done.exit_code, done.changed) == (False, 0, (path,))
        assert "changed the deliverable" in done.why


def test_it_can_be_cancelled(tmp_path: Path) -> None:
    stop = time.monotonic() + 0.3
    done = run_command("sleep 30", tmp_path, 60, cancelled=lambda: time.monotonic() > stop)
    assert (done.ok, done.why) == (False, "cancelled")


def test_the_environment_can_be_given(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "ANSWER": "42"}
    assert run_command("echo $ANSWER", tmp_path, 10, env=env).tail == "42\n"
