"""The library on the real claude and codex: a script of thirty lines that routes ten tasks."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time

import pytest

from bullswarm import Fleet, FleetEvent, RunTask, UsageError
from rig import Rig, Scene, World

SCRIPT = """
import asyncio
import json
from pathlib import Path

from bullswarm import Fleet, Policy, RunTask


async def main() -> None:
    tasks = []
    for n in range(10):
        folder = Path(f"part-{n}")
        folder.mkdir()
        tasks.append(
            RunTask(
                f"Part {n}: write the name of your working folder into where.txt.",
                cwd=folder,
                deliverables=("where.txt",),
                timeout_s=120,
            )
        )
    fleet = Fleet(["claude", "codex"], policy=Policy(strategy="most-quota"))
    results = await fleet.run_many(tasks, concurrency=4)
    for n, result in enumerate(results):
        row = {"n": n, "ok": result.ok, "account": result.account, "why": result.why}
        row |= {"text": result.text, "tokens": result.usage.output_tokens}
        row |= {"session": result.session, "files": result.verdict.changes.created}
        print(json.dumps(row))


asyncio.run(main())
"""


def test_ten_tasks_over_both(world: World, rig: Rig) -> None:
    accounts = {world.claude(key="k-claude"), world.codex(key="k-codex")}
    # Each agent is told to run a command: what it leaves shows where it really worked.
    for key in ("k-claude", "k-codex"):
        rig.scenes[key] = Scene(
            "shell", command="pwd > where.txt", text="I wrote where.txt: it names the folder."
        )
    assert len(SCRIPT.strip().splitlines()) <= 35
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        cwd=world.work,
        env=world.env,
        capture_output=True,
        text=True,
        timeout=150,
    )
    took = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["n"] for row in rows] == list(range(10))
    assert all(row["ok"] for row in rows), rows
    assert {row["account"] for row in rows} == accounts, "both got work"
    for row in rows:
        folder = world.work / f"part-{row['n']}"
        assert (folder / "where.txt").read_text() == f"{folder}\n"
        assert row["text"] == "I wrote where.txt: it names the folder."
        assert row["tokens"] and row["session"]
        assert "where.txt" in row["files"]
    assert len({row["session"] for row in rows}) == 10
    # Two requests each: one that asked for the command, one that ended it.
    for key, account in (("k-claude", "claude-code"), ("k-codex", "codex")):
        mine = sum(row["account"] == account for row in rows)
        assert len(rig.asked(key)) >= 2 * mine > 0
    assert not world.alive()
    assert world.bullswarm("assignments", "--json").json["assignments"] == []
    assert took < 100, f"{took:.0f} s"


@pytest.fixture
def here(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Both logins, in this process's own environment."""
    world.claude(key="k-claude")
    world.codex(key="k-codex")
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in world.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(world.work)
    return world


@pytest.mark.parametrize(
    ("account", "mode", "argument"),
    [("claude", "acceptEdits", "--permission-mode"), ("codex", "workspace-write", "--sandbox")],
)
def test_a_permission_mode_is_that_vendors_own_word(
    here: World, rig: Rig, account: str, mode: str, argument: str
) -> None:
    fleet = Fleet()
    task = RunTask("Explain the parser.", account=account, lane="analyze", permission_mode=mode)
    result = fleet.run_sync(task)
    assert result.ok and result.verdict is not None and result.verdict.pick is not None
    command = result.verdict.pick.command
    assert command[command.index(argument) + 1] == mode and command.count(argument) == 1
    with pytest.raises(UsageError, match="could go to claude-code or codex; set account"):
        fleet.run_sync(RunTask("Explain it.", permission_mode=mode))


@pytest.mark.parametrize(("account", "mode"), [("claude", "workspace-write"), ("codex", "plan")])
def test_the_other_vendors_word_is_a_clear_error(here: World, account: str, mode: str) -> None:
    task = RunTask("Explain the parser.", account=account, lane="analyze", permission_mode=mode)
    began = time.monotonic()
    result = Fleet().run_sync(task)
    assert not result.ok and result.failure_kind == "process"
    print(result.why)
    assert mode in result.why and ("permission-mode" in result.why or "sandbox" in result.why)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("account", ["claude-code", "codex"])
def test_closing_a_stream_ends_the_real_cli(here: World, rig: Rig, account: str) -> None:
    rig.default = Scene("hang")
    key = "k-claude" if account == "claude-code" else "k-codex"

    async def main() -> list[FleetEvent]:
        stream = Fleet().stream(RunTask("Explain the parser.", account=account, lane="analyze"))
        seen = []
        async for event in stream:
            seen.append(event)
            if event.event is not None and event.event.kind == "start":
                break
        while not rig.asked(key):
            await asyncio.sleep(0.05)
        assert here.alive()
        await stream.aclose()
        assert not here.alive()
        return seen

    events = asyncio.run(asyncio.wait_for(main(), 60))
    assert [event.kind for event in events][:2] == ["routed", "started"]
