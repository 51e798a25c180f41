"""Cancelling ends the worker's whole process group, and leaves a record that says so."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fleetkit import SAY, Machine, Own, alive, ask, pids, until, until_async

from bullswarm import Fleet, RunTask

# The worker, a shell, that shell's children, and one that left for a session of its own.
FAMILY = "; ".join(
    [
        "run echo $PPID >> {file}; sleep 300 & echo $! >> {file}",
        "(sleep 301 & echo $! >> {file}; wait) & echo $! >> {file}",
        "setsid sleep 302 & echo $! >> {file}; wait",
    ]
)


def family(file: Path) -> RunTask:
    return ask("echo: " + FAMILY.format(file=file))


def gone(processes: list[int]) -> bool:
    return not any(alive(pid) for pid in processes)


def test_cancelling_ends_worker_children_and_grandchildren(
    machine: Machine, tmp_path: Path
) -> None:
    machine.account("a")
    file = tmp_path / "pids"

    async def main() -> tuple[list[int], float]:
        running = asyncio.create_task(Fleet().run(family(file)))
        found = await asyncio.to_thread(pids, file, 5)
        assert all(alive(pid) for pid in found)
        began = time.monotonic()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return found, time.monotonic() - began

    found, took = asyncio.run(main())
    # By the time the cancellation arrives nothing runs any more: no waiting is needed here.
    assert gone(found)
    assert not machine.world.alive()
    assert took < 5
    [run] = machine.world.bullswarm("runs", "--json").json["runs"]
    assert run["state"] == "cancelled"
    assert machine.world.bullswarm("assignments", "--json").json["assignments"] == []


def test_a_timeout_of_asyncio_cancels_too(machine: Machine) -> None:
    machine.account("a")

    async def main() -> None:
        async with asyncio.timeout(1):
            await Fleet().run(ask("echo: sleep 300"))

    with pytest.raises(TimeoutError):
        asyncio.run(main())
    assert not machine.world.alive()


def test_a_worker_that_ignores_the_first_word_is_killed(machine: Machine) -> None:
    machine.account("a")

    async def main() -> float:
        running = asyncio.create_task(Fleet().run(ask("echo: deaf")))
        await until_async(machine.world.alive)
        await asyncio.sleep(0.3)
        began = time.monotonic()
        running.cancel()
        await asyncio.sleep(0.2)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return time.monotonic() - began

    took = asyncio.run(main())
    assert not machine.world.alive()
    assert took < 4, "asked twice, it does not wait for the grace to pass"


def test_cancelling_one_leaves_the_others_alone(machine: Machine) -> None:
    machine.account("a")
    fleet = Fleet()

    async def main() -> bool:
        doomed = asyncio.create_task(fleet.run(ask("echo: sleep 300")))
        other = asyncio.create_task(fleet.run(ask(f"echo: sleep 1.5\n{SAY}")))
        await until_async(lambda: len(machine.world.alive()) >= 2)
        doomed.cancel()
        return (await other).ok

    assert asyncio.run(main())
    assert not machine.world.alive()


def test_cancelling_work_that_waits_for_a_place(machine: Machine) -> None:
    machine.account("a", 95, 10)
    fleet = Fleet()

    async def main() -> None:
        running = asyncio.create_task(fleet.run_many([ask()], hold=True))
        await asyncio.to_thread(until, lambda: _live(machine))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert not _live(machine)


def test_the_command_line_can_cancel_it(machine: Machine) -> None:
    machine.account("a")

    async def main() -> tuple[bool, str | None]:
        running = asyncio.create_task(Fleet().run(ask("echo: sleep 300")))
        [row] = await until_async(lambda: [a for a in _live(machine) if a["state"] == "running"])
        done = await asyncio.to_thread(machine.world.bullswarm, "cancel", row["id"])
        assert done.code == 0
        result = await running
        return result.ok, result.failure_kind

    assert asyncio.run(main()) == (False, "cancelled")
    assert not machine.world.alive()


def test_cancelling_reaches_an_adapter_of_ones_own(machine: Machine) -> None:
    own = Own(takes=300)

    async def main() -> None:
        running = asyncio.create_task(Fleet([own]).run(ask()))
        await until_async(lambda: own.live)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert (own.cancelled, own.live) == (1, 0)
    assert not _live(machine)


PLAIN = """
from bullswarm import Fleet, RunTask
Fleet().run_sync(RunTask({prompt!r}, lane="analyze"))
"""

INSIDE = """
import asyncio
from bullswarm import Fleet, RunTask
async def main():
    Fleet().run_sync(RunTask({prompt!r}, lane="analyze"))
asyncio.run(main())
"""

AWAITED = """
import asyncio
from bullswarm import Fleet, RunTask
asyncio.run(Fleet().run(RunTask({prompt!r}, lane="analyze")))
"""


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("source", [PLAIN, INSIDE, AWAITED], ids=["plain", "inside", "awaited"])
def test_ctrl_c_in_a_script_ends_the_worker(
    machine: Machine, tmp_path: Path, source: str, times: int
) -> None:
    machine.account("a")
    file = tmp_path / "pids"
    prompt = family(file).prompt if times == 1 else "echo: deaf"
    script = subprocess.Popen(
        [sys.executable, "-c", source.format(prompt=prompt)],
        env=machine.world.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    found = pids(file, 5) if times == 1 else until(machine.world.alive) and []
    time.sleep(0.5)
    for _ in range(times):
        os.kill(script.pid, signal.SIGINT)
        time.sleep(0.3)
    _, err = script.communicate(timeout=30)
    assert "KeyboardInterrupt" in err and script.returncode != 0
    assert gone(found) and not machine.world.alive()


def _live(machine: Machine) -> list[dict[str, object]]:
    found: list[dict[str, object]] = machine.world.bullswarm("assignments", "--json").json[
        "assignments"
    ]
    return found
