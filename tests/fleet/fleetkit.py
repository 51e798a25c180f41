"""What the fleet's tests share: a machine with echo accounts, and an adapter of a user's own."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bullswarm import Model, Quota, RunResult, RunTask
from rig import World

SAY = "echo: answer The parser reads tokens from src/parser.py and builds a tree of nodes."


def ask(prompt: str = SAY, **fields: Any) -> RunTask:
    """A task that only reads; every echo account answers it in a sentence."""
    fields.setdefault("lane", "analyze")
    return RunTask(prompt, **fields)


class Machine:
    """Echo accounts ``echo:<name>`` in this process's own environment."""

    def __init__(self, world: World) -> None:
        self.world = world

    def account(self, name: str, five: float | None = None, week: float = 0.0) -> str:
        """An account, with what its meter reads; without percentages it has no meter."""
        [pool] = self.world.echo(name)
        if five is not None:
            now = datetime.now(UTC)
            self.world.meter(
                name,
                {"minutes": 300, "usedPct": five, "resetsAt": _iso(now + timedelta(hours=2))},
                {"minutes": 10080, "usedPct": week, "resetsAt": _iso(now + timedelta(days=4))},
            )
        return pool

    def script(self, name: str, *lines: str) -> None:
        """What the account's worker does before it reads its prompt."""
        text = "".join(f"echo: {line}\n" for line in lines)
        (self.world.root / "echo" / name / "script").write_text(text)


class Own:
    """An adapter as a user writes one: nothing of ours is inherited."""

    def __init__(
        self,
        name: str = "own",
        *accounts: str,
        used: float | None = 10.0,
        latency: Any = "fast",
        takes: float = 0.0,
        result: Callable[[RunTask], RunResult] | None = None,
    ) -> None:
        self.name = name
        self.used = used
        self.takes = takes
        self.latency = latency
        self.ran: list[RunTask] = []
        self.cancelled = 0
        self.live = self.most = 0
        self._accounts = accounts or (name,)
        self._result = result

    def accounts(self) -> Sequence[str]:
        return self._accounts

    def quota(self, account: str) -> Quota | None:
        if self.used is None:
            return None
        reset = datetime.now(UTC) + timedelta(days=3)
        window = Quota.window(minutes=10080, used_pct=self.used, resets_at=reset)
        return Quota(windows=(window,))

    def available_models(self, account: str) -> Sequence[Model]:
        return [Model(name=f"{self.name}-model", latency=self.latency)]

    async def run(self, task: RunTask) -> RunResult:
        self.ran.append(task)
        self.live += 1
        self.most = max(self.most, self.live)
        try:
            await asyncio.sleep(self.takes)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.live -= 1
        if self._result is not None:
            return self._result(task)
        return RunResult(ok=True, text=f"{task.account} did it")


def until(what: Callable[[], Any], seconds: float = 15.0) -> Any:
    """Wait for something to be true; what it came to."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := what():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


async def until_async(what: Callable[[], Any], seconds: float = 15.0) -> Any:
    """``until`` that lets the loop go on."""
    return await asyncio.to_thread(until, what, seconds)


def alive(pid: int) -> bool:
    """Whether the process runs (a zombie does not)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def pids(file: Path, count: int) -> list[int]:
    """The process ids that a worker wrote into a file, one a line."""

    def read() -> list[int]:
        if not file.exists():
            return []
        found = [int(line) for line in file.read_text().split() if line.isdigit()]
        return found if len(found) >= count else []

    found: list[int] = until(read)
    return found


def no_leftovers(world: World) -> bool:
    return not world.alive() and os.environ["BULLSWARM_HOME"] == str(world.bull)


def _iso(moment: datetime) -> str:
    return moment.isoformat()
