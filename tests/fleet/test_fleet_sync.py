"""The twins for code that is not async: in a script, inside a running loop, and in threads."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from fleetkit import SAY, Machine, Own, ask

from bullswarm import Fleet, Policy, RunTask, UsageError

SCRIPT = f"""
from bullswarm import Fleet, RunTask
fleet = Fleet()
task = RunTask({SAY!r}, lane="analyze")
print(fleet.route_sync(task).account)
print(fleet.run_sync(task).ok)
print([r.ok for r in fleet.run_many_sync([task, task, task])])
"""


def test_in_a_script(machine: Machine) -> None:
    machine.account("a")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        env=machine.world.env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split("\n")[:3] == ["echo:a", "True", "[True, True, True]"], done.stderr
    assert done.stderr == ""


def test_inside_a_running_loop(machine: Machine) -> None:
    machine.account("a")
    fleet = Fleet(["echo", Own(takes=0.1)], policy=Policy(prefer=["echo"]))

    async def main() -> None:
        assert fleet.route_sync(ask()).account == "echo:a"
        assert fleet.run_sync(ask()).ok
        assert fleet.run_sync(ask(account="own")).text == "own did it"
        assert [r.ok for r in fleet.run_many_sync([ask(), ask(account="own")])] == [True, True]
        with pytest.raises(UsageError, match="prompt"):
            fleet.run_sync(RunTask(""))
        # And the loop goes on afterwards.
        assert (await fleet.run(ask())).ok

    asyncio.run(main())


def test_in_threads(machine: Machine) -> None:
    machine.account("a")
    fleet = Fleet()
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda _: fleet.run_sync(ask()), range(6)))
    assert all(r.ok for r in results)
