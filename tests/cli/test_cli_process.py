"""Where the process itself matters: signals, pipes, closed streams, homes that fight back."""

from __future__ import annotations

import ctypes
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clikit import SAY

from rig import World

DENIED = (
    "httpx",
    "sqlalchemy",
    "dbos",
    "textual",
    "rich",
    "starlette",
    "uvicorn",
    "mcp",
    "acp",
    "jsonschema",
    "yaml",
    "highspy",
    "asyncio",
)
RUN = ("run", "--lane", "analyze")


def bullswarm(world: World, *argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    command = [sys.executable, "-m", "bullswarm", *argv]
    return subprocess.run(
        command, cwd=world.work, env=world.env, text=True, timeout=60, check=False, **options
    )


def running(world: World) -> dict[str, Any]:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        rows = world.bullswarm("assignments", "--json").json["assignments"]
        if rows and rows[0]["state"] == "running":
            found: dict[str, Any] = rows[0]
            return found
        time.sleep(0.1)
    raise AssertionError("nothing runs")


# signals


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_an_interrupted_run_ends_its_agent_keeps_its_record_and_says_so(
    echo: World, number: int, code: int
) -> None:
    process = echo.start(*RUN, "--json", "echo: say Half of it is done.\necho: hang")
    running(echo)
    process.send_signal(number)
    began = time.monotonic()
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - began < 10
    assert process.returncode == code
    assert "Traceback" not in err and "ending the agent" in err
    verdict = json.loads(out)
    assert verdict["failureKind"] == "cancelled" and not verdict["ok"]
    [record] = echo.bullswarm("runs", "--json").json["runs"]
    assert record["state"] == "cancelled" and record["verdict"] == verdict
    assert echo.bullswarm("assignments", "--json").json["assignments"] == []
    assert not echo.alive()


def test_a_second_ctrl_c_kills_what_does_not_listen(echo: World) -> None:
    process = echo.start(*RUN, "--json", "echo: write ready now\necho: deaf")
    running(echo)
    deadline = time.monotonic() + 20
    while not (echo.work / "ready").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    # The next thing it does is to stop listening.
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - began < 3
    assert process.returncode == 130 and "Traceback" not in err
    assert not echo.alive()


def test_ctrl_c_while_waiting_in_line(echo: World) -> None:
    assert echo.bullswarm("pools", "pause", "echo:b").code == 0
    assert echo.bullswarm("strategy", "set-subscription", "echo:a", "--cap", "1").code == 0
    first = echo.start(*RUN, "--json", "echo: sleep 30")
    running(echo)
    second = echo.start(*RUN, "--json", SAY)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        rows = echo.bullswarm("assignments", "--json").json["assignments"]
        if [r for r in rows if r["state"] == "waiting"]:
            break
        time.sleep(0.1)
    second.send_signal(signal.SIGINT)
    out, err = second.communicate(timeout=30)
    assert second.returncode == 130 and "Traceback" not in err
    assert json.loads(out)["failureKind"] == "cancelled" and not json.loads(out)["attempts"]
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=30)
    assert echo.bullswarm("assignments", "--json").json["assignments"] == []


def test_ctrl_c_ends_the_demo_with_all_it_made(echo: World) -> None:
    own = echo.root / "tmp"
    own.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "bullswarm", "demo"],
        cwd=echo.work,
        env=echo.env | {"TMPDIR": str(own)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("started:"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130 and "Traceback" not in err
    assert "cancelled" in out
    assert list(own.iterdir()) == []


# pipes and streams


def reader_that_leaves(world: World, *argv: str) -> tuple[int, str]:
    """bullswarm, whose reader closes its end before a word was read."""
    reader, writer = os.pipe()
    command = [sys.executable, "-m", "bullswarm", *argv]
    process = subprocess.Popen(
        command,
        cwd=world.work,
        env=world.env,
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writer)
    os.close(reader)
    _, err = process.communicate(timeout=60)
    return process.returncode, err


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("pools",), 0),
        (("pools", "--json"), 0),
        (("--help",), 0),
        (("run", "--help"), 0),
        (("strategy", "show"), 0),
        ((*RUN, "-q", SAY), 0),
        ((*RUN, "-q", "--json", "--retries", "0", "echo: empty"), 1),
    ],
    ids=lambda v: " ".join(v)[:30] if isinstance(v, tuple) else str(v),
)
def test_a_reader_that_leaves_is_no_error_and_changes_no_verdict(
    echo: World, argv: tuple[str, ...], code: int
) -> None:
    assert reader_that_leaves(echo, *argv) == (code, "")


def test_work_goes_on_when_nobody_reads_its_progress(echo: World) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    prompt = f"echo: sleep 0.5\necho: write done.md yes\n{SAY}"
    done = bullswarm(echo, "run", "--lane", "build", prompt, stdout=writer, stderr=writer)
    os.close(writer)
    assert done.returncode == 0
    assert (echo.work / "done.md").exists()
    [record] = echo.bullswarm("runs", "--json").json["runs"]
    assert record["state"] == "ok"


def closing(*numbers: int) -> Callable[[], None]:
    def close() -> None:
        for number in numbers:
            os.close(number)

    return close


def test_closed_streams(echo: World) -> None:
    for numbers in ((0,), (1,), (2,), (0, 1, 2)):
        done = bullswarm(echo, *RUN, SAY, preexec_fn=closing(*numbers))
        assert done.returncode == 0, (numbers, done.stderr)
        assert "Traceback" not in done.stderr
        shown = bullswarm(echo, "pools", preexec_fn=closing(*numbers))
        assert shown.returncode == 0 and "Traceback" not in shown.stderr
    records = echo.bullswarm("runs", "--json").json["runs"]
    assert [r["state"] for r in records] == ["ok"] * 4
    # Nothing that was said went into a file of ours.
    assert echo.bullswarm("health").code == 0


def test_a_closed_stdin_has_no_prompt(echo: World) -> None:
    done = bullswarm(echo, *RUN, preexec_fn=closing(0))
    assert done.returncode == 2 and "the prompt is empty" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_stdout_is_said(echo: World) -> None:
    with open("/dev/full", "w") as full:
        done = bullswarm(echo, "pools", stdout=full)
        assert done.returncode == 1
        assert "No space left" in done.stderr and "Traceback" not in done.stderr
        # Progress that can't be shown ends no work.
        assert bullswarm(echo, *RUN, SAY, stderr=full).returncode == 0


def on_a_terminal(world: World, *argv: str, env: dict[str, str]) -> tuple[int, str]:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "bullswarm", *argv],
        cwd=world.work,
        env=world.env | env,
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    said = b""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.1)[0]:
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            if not data:
                break
            said += data
    code = process.wait(timeout=10)
    os.close(master)
    return code, said.decode()


def test_colour_and_live_progress_on_a_terminal(echo: World) -> None:
    prompt = f"echo: tool Read src/parser.py\n{SAY}"
    code, said = on_a_terminal(echo, *RUN, prompt, env={"NO_COLOR": "", "TERM": "xterm"})
    assert code == 0 and "\x1b[" in said and "Read" in said
    assert "\x1b[" in on_a_terminal(echo, "pools", env={"NO_COLOR": "", "TERM": "xterm"})[1]
    assert "\x1b[" not in on_a_terminal(echo, "pools", env={"NO_COLOR": "1", "TERM": "xterm"})[1]
    # A prompt is missing, and there is a person: it is asked for, not waited for.
    code, said = on_a_terminal(echo, *RUN, env={})
    assert code == 2 and "the prompt is missing" in said


# homes


def as_one_who_obeys_modes() -> None:
    """Root passes by the modes of files; without these capabilities it does not."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (1, 2, 3):
            libc.prctl(24, capability, 0, 0, 0)


@pytest.mark.parametrize(
    "argv", [("pools",), ("runs",), ("assignments",), (*RUN, SAY)], ids=lambda v: v[0]
)
def test_a_home_that_can_not_be_written_is_named(echo: World, argv: tuple[str, ...]) -> None:
    echo.bull.chmod(0o500)
    try:
        done = bullswarm(echo, *argv, preexec_fn=as_one_who_obeys_modes)
    finally:
        echo.bull.chmod(0o700)
    assert done.returncode == 1 and done.stdout == ""
    assert str(echo.bull) in done.stderr and "BULLSWARM_HOME" in done.stderr
    assert "Traceback" not in done.stderr


def test_read_only_files_can_still_be_read(echo: World) -> None:
    assert echo.bullswarm(*RUN, SAY).code == 0
    for file in echo.bull.rglob("*"):
        if file.is_file():
            file.chmod(0o400)
    for verb in ("pools", "runs", "assignments", "health"):
        done = bullswarm(echo, verb, preexec_fn=as_one_who_obeys_modes)
        assert done.returncode == 0, (verb, done.stderr)
    done = bullswarm(echo, *RUN, SAY, preexec_fn=as_one_who_obeys_modes)
    assert done.returncode == 1
    assert "bullswarm.db can't be written" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("folder", ["runs", "workflows"])
def test_a_folder_of_the_home_that_can_not_be_written(echo: World, folder: str) -> None:
    """Before the worker: nothing starts, and the run ends. After it: the verdict stands."""
    assert echo.bullswarm(*RUN, SAY).code == 0
    (echo.bull / folder).chmod(0o500)
    try:
        done = bullswarm(echo, *RUN, "--json", SAY, preexec_fn=as_one_who_obeys_modes)
    finally:
        (echo.bull / folder).chmod(0o700)
    assert "Traceback" not in done.stderr
    last = echo.bullswarm("runs", "--json").json["runs"][0]
    if folder == "runs":
        assert done.returncode == 1 and f"{echo.bull}/runs" in done.stderr
        assert last["state"] == "failed" and last["endedAt"]
    else:
        assert done.returncode == 0
        verdict = json.loads(done.stdout)
        assert verdict["ok"] and any("the record is not whole" in n for n in verdict["notes"])
        assert last["state"] == "ok"
    assert echo.bullswarm("assignments", "--json").json["assignments"] == []


def test_a_home_with_spaces_and_letters_of_all_kinds(world: World) -> None:
    home = world.root / "my höme ✓ 'quoted' $x"
    world.env["BULLSWARM_HOME"] = str(home)
    world.env["BULLSWARM_ECHO"] = "1"
    ran = world.bullswarm("run", "--lane", "build", "--json", f"echo: write ü.md ß\n{SAY}")
    assert ran.code == 0 and ran.json["changes"]["created"] == ["ü.md"]
    assert Path(ran.json["outFile"]).parent == home / "runs"
    for verb in ("pools", "runs", "health", "assignments"):
        assert world.bullswarm(verb).code == 0
    assert world.bullswarm("explain", ran.json["shortId"]).code == 0
    assert home.stat().st_mode & 0o777 == 0o700


def test_an_ascii_terminal_is_no_reason_to_fail(echo: World) -> None:
    """Letters that the terminal does not have are shown in another way."""
    echo.env |= {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ran = echo.bullswarm(*RUN, "echo: answer Der Parser liest Wörter – und baut einen Baum ✓.")
    assert ran.code == 0 and "Traceback" not in ran.stderr
    assert echo.bullswarm("runs").code == 0


def test_a_working_folder_that_is_gone_is_said(echo: World) -> None:
    gone = echo.root / "gone"
    for argv, code in (((*RUN, SAY), 1), (("pools",), 0), (("runs",), 0)):
        gone.mkdir()
        leave = ["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh"]
        done = subprocess.run(
            [*leave, sys.executable, "-m", "bullswarm", *argv],
            cwd=gone,
            env=echo.env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code and "Traceback" not in done.stderr
        if code:
            assert "the current folder is no longer there" in done.stderr


def test_names_that_are_no_utf_8(echo: World) -> None:
    """An agent may meet and make any name that the file system takes."""
    (echo.work / os.fsdecode(b"old\xff.md")).write_text("before")
    odd = 'echo: run echo more >> "$(printf "old\\377.md")"; touch "$(printf "new\\377.md")"'
    for _ in range(2):
        ran = echo.bullswarm("run", "--lane", "build", "--json", f"{odd}\n{SAY}")
        assert ran.code == 0, ran.stderr
        assert "old\\xff.md" in ran.json["changes"]["modified"]
    assert "old\\xff.md" in echo.bullswarm("run", "--lane", "build", f"{odd}\n{SAY}").stdout
    odd_home = os.fsdecode(b"/tmp/\xff")
    for argv in (["--home", odd_home, "pools"], [*RUN, "--cwd", odd_home, SAY]):
        ran = echo.bullswarm(*argv)
        assert ran.code in (1, 2) and "UTF-8" in ran.stderr and "Traceback" not in ran.stderr


@pytest.mark.parametrize("damage", [b"garbage", b"SQLite format 3\x00" + b"\xff" * 8192])
def test_a_damaged_store_is_named_and_survives(echo: World, damage: bytes) -> None:
    file = echo.bull / "bullswarm.db"
    file.write_bytes(damage)
    for argv in (("pools",), ("runs",), (*RUN, SAY)):
        ran = echo.bullswarm(*argv)
        assert ran.code == 1 and "Traceback" not in ran.stderr
        assert str(file) in ran.stderr and "move it away" in ran.stderr
    assert file.read_bytes() == damage
    report = echo.bullswarm("health", "--json")
    assert report.code == 1
    assert [f["what"] for f in report.json["findings"] if not f["ok"]] == ["store"]
    file.rename(file.with_suffix(".old"))
    assert echo.bullswarm(*RUN, SAY).code == 0


def test_half_written_files_are_noted_and_stop_nobody(echo: World) -> None:
    first = echo.bullswarm(*RUN, "--json", SAY).json
    record = echo.bull / "workflows" / first["runId"] / "run.json"
    record.write_text(record.read_text()[:40])
    history = echo.bull / "meters" / "history"
    history.mkdir(parents=True, exist_ok=True)
    (history / "echo:a.jsonl").write_text('{"at": "2026-')
    Path(first["streamFile"]).write_bytes(b'{"type": "fin')
    (echo.root / "echo" / "b" / "meter.json").write_text('{"windows": [')
    for argv in (("pools",), ("runs",), ("health",), ("explain", first["runId"]), (*RUN, SAY)):
        ran = echo.bullswarm(*argv)
        assert ran.code == 0 and "Traceback" not in ran.stderr, (argv, ran.stderr)
    [row] = [r for r in echo.bullswarm("pools", "--json").json["pools"] if r["pool"] == "echo:b"]
    assert row["usedPct"] is None and "meter.json" in " ".join(row["notes"])


# imports

LOOK = """
import json, sys
from bullswarm.cli import invoke
code = invoke(sys.argv[2:])
print("LOADED", json.dumps([name for name in sys.argv[1].split(",") if name in sys.modules]))
sys.exit(code)
"""


@pytest.mark.parametrize(
    "argv",
    [
        ("pools",),
        ("pools", "--json"),
        (*RUN, "--dry-run", "hello"),
        ("assignments",),
        ("strategy", "show"),
        ("runs",),
        ("--help",),
    ],
    ids=" ".join,
)
def test_what_is_asked_in_a_loop_loads_nothing_heavy(echo: World, argv: tuple[str, ...]) -> None:
    echo.meter("a", {"minutes": 10080, "usedPct": 20, "resetsAt": "2099-01-01T00:00:00Z"})
    done = subprocess.run(
        [sys.executable, "-c", LOOK, ",".join(DENIED), *argv],
        cwd=echo.work,
        env=echo.env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout.rpartition("LOADED ")[2])
    assert loaded == []
