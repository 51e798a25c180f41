"""The echo worker: what each directive does, seen through its own connector."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from providerkit import load, person, pools, write

from bullswarm.dispatch.types import Event
from bullswarm.meters import MeterError
from bullswarm.providers.types import Ask


def settings(tmp_path: Path, *names: str) -> dict[str, dict[str, Any]]:
    homes = {name: str(tmp_path / "echo" / name) for name in names}
    return {"echo": {"enabled": True, **({"homes": homes} if names else {})}}


def start(
    tmp_path: Path, prompt: str, pool: str = "echo", names: tuple[str, ...] = (), **ask: Any
) -> subprocess.Popen[bytes]:
    registry = load(person(tmp_path), settings(tmp_path, *names))
    provider, account = registry.of_pool(pool)
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    made = provider.command(account, Ask(prompt=prompt, cwd=str(work), **ask), {})
    process = subprocess.Popen(
        made.argv, cwd=work, stdin=-1, stdout=-1, stderr=-1, env={**os.environ, **made.env_set}
    )
    assert process.stdin is not None
    process.stdin.write((made.stdin or "").encode())
    process.stdin.close()
    process.stdin = None
    return process


def run(tmp_path: Path, prompt: str, **more: Any) -> tuple[int, list[Event], str]:
    process = start(tmp_path, prompt, **more)
    out, err = process.communicate(timeout=20)
    provider = load({}, settings(tmp_path)).get("echo")
    events = [
        event
        for line in out.decode().splitlines()
        if line.startswith("{")
        for event in provider.read_event(json.loads(line))
    ]
    return process.returncode, events, err.decode()


@pytest.mark.parametrize(
    ("prompt", "status", "kinds", "answer"),
    [
        ("Hello\nthere", 0, "start final", "echo was given 11 characters, which began with: Hello"),
        ("echo: say hi", 0, "start text final", "hi"),
        ("echo: say hi\necho: answer bye", 0, "start text final", "bye"),
        ("text\n  echo: say hi  \nmore", 0, "start text final", "hi"),
        ("echo: tool ls -l", 0, "start tool tool-result final", None),
        ("echo: empty", 0, "start final", ""),
        ("echo: exit 3", 3, "start", None),
        ("echo: error no such model", 1, "start error final", "no such model"),
        ("echo: dance", 2, "start error final", "echo: no directive 'dance'"),
        ("echo: flood 3", 0, "start text text text final", None),
        ("echo: loop 2", 0, "start text error text error final", None),
        ('echo: raw {"type":"text","text":"é"}', 0, "start text final", None),
        ("echo: raw no json", 0, "start final", None),
        ("echo: sleep 0.01\necho: say hi", 0, "start text final", "hi"),
    ],
)
def test_directives(
    prompt: str, status: int, kinds: str, answer: str | None, tmp_path: Path
) -> None:
    code, events, _ = run(tmp_path, prompt)
    assert (code, " ".join(e.kind for e in events)) == (status, kinds)
    if answer is not None:
        assert events[-1].text == answer


def test_files_are_really_written(tmp_path: Path) -> None:
    prompt = "echo: write a/b.txt one two\necho: append a/b.txt three\necho: run echo x > c"
    _, events, _ = run(tmp_path, prompt)
    assert (tmp_path / "work" / "a" / "b.txt").read_text() == "one two\nthree\n"
    assert (tmp_path / "work" / "c").read_text() == "x\n"
    assert [e.tool for e in events if e.kind == "tool"] == ["write", "append", "run"]


@pytest.mark.parametrize(
    ("word", "status"), [("throttle", 429), ("auth", 401), ("overloaded", 529)]
)
def test_retries_then_failure(word: str, status: int, tmp_path: Path) -> None:
    code, events, _ = run(tmp_path, f"echo: {word}")
    retries = [e for e in events if e.kind == "retry"]
    assert [(e.status, e.attempt, e.max_attempts) for e in retries] == [
        (status, n, 10) for n in range(1, 11)
    ]
    assert (code, events[-1].is_error, events[-1].status) == (1, True, status)


def test_a_limit_in_words_and_as_an_event(tmp_path: Path) -> None:
    code, events, _ = run(tmp_path, "echo: limit session 8:20pm (UTC)")
    assert (code, events[-1].text) == (1, "You've hit your session limit · resets 8:20pm (UTC)")
    _, events, _ = run(tmp_path, "echo: limit-event five_hour 1796107596")
    limit = next(e for e in events if e.kind == "limit")
    assert (limit.limit_status, limit.window) == ("rejected", "five_hour")
    assert limit.resets_at == datetime.fromtimestamp(1796107596, UTC)


def test_directives_may_be_for_one_pool_only(tmp_path: Path) -> None:
    prompt = "echo@a: limit session\necho: say hi"
    names = ("a", "b")
    assert run(tmp_path, prompt, pool="echo:a", names=names)[0] == 1
    code, events, _ = run(tmp_path, prompt, pool="echo:b", names=names)
    assert (code, events[-1].text) == (0, "hi")


def test_a_home_may_hold_a_script(tmp_path: Path) -> None:
    write(tmp_path / "echo" / "a" / "script", "echo: say from the home\n")
    _, events, _ = run(tmp_path, "hello", pool="echo:a", names=("a",))
    assert events[-1].text == "from the home"


def test_model_and_session_are_taken_up(tmp_path: Path) -> None:
    _, events, _ = run(tmp_path, "hi", model="echo-small", resume_session="s-1")
    assert (events[0].model, events[0].session) == ("echo-small", "s-1")


def test_stderr_and_environment(tmp_path: Path) -> None:
    _, events, err = run(
        tmp_path, "echo: stderr oh no\necho: env BULLSWARM_ECHO_HOME", pool="echo:a", names=("a",)
    )
    assert err == "oh no\n"
    assert events[-1].text == f"BULLSWARM_ECHO_HOME is {tmp_path / 'echo' / 'a'}"


@pytest.mark.parametrize(("word", "first"), [("hang", b'"start"'), ("linger", b'"start"')])
def test_a_worker_that_stays_ends_on_term(word: str, first: bytes, tmp_path: Path) -> None:
    process = start(tmp_path, f"echo: {word}")
    assert process.stdout is not None
    assert first in process.stdout.readline()
    if word == "linger":
        assert b'"final"' in process.stdout.readline()
    assert process.poll() is None
    process.terminate()
    assert process.wait(timeout=10) == -signal.SIGTERM
    process.communicate()


def test_a_deaf_worker_needs_to_be_killed(tmp_path: Path) -> None:
    process = start(tmp_path, "echo: say ready\necho: deaf")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.readline()
    time.sleep(0.1)
    process.terminate()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.3)
    process.kill()
    assert process.wait(timeout=10) == -signal.SIGKILL
    process.communicate()


def test_homes_replace_the_one_pool_and_have_a_meter_each(tmp_path: Path) -> None:
    registry = load(person(tmp_path), settings(tmp_path, "a", "b"))
    found = pools(registry)
    assert [name for name in found if name.startswith("echo")] == ["echo:a", "echo:b"]
    meter = {"windows": [{"minutes": 300, "usedPct": 41, "resetsInMinutes": 60}]}
    write(tmp_path / "echo" / "a" / "meter.json", meter)
    now = datetime.now(UTC)
    provider = registry.get("echo")
    reading = provider.read_meter(found["echo:a"], {}, now)
    assert reading is not None
    assert [(w.kind, w.used_pct) for w in reading.windows] == [("five_hour", 41.0)]
    with pytest.raises(MeterError, match="no meter file"):
        provider.read_meter(found["echo:b"], {}, now)
    bare = pools(load(person(tmp_path), settings(tmp_path)))["echo"]
    assert provider.read_meter(bare, {}, now) is None


def test_a_child_may_be_left_behind(tmp_path: Path) -> None:
    process = start(tmp_path, "echo: fork 1.5\necho: say bye")
    assert process.wait(timeout=10) == 0
    assert process.stdout is not None
    began = time.monotonic()
    process.stdout.read()
    # The child holds the pipe open until it ends.
    assert time.monotonic() - began > 0.5
    process.communicate()
