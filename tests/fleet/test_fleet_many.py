"""``Fleet.run_many``: order, concurrency, spread, holds, and failures that stay their own."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from typing import Any

import psutil
import pytest
from fleetkit import SAY, Machine, Own, ask, until, until_async

from bullswarm import Fleet, Policy, RunResult, RunTask, UsageError


def settings(machine: Machine, **sections: Any) -> None:
    file = machine.world.bull / "state.json"
    known = json.loads(file.read_text())
    for name, fields in sections.items():
        known.setdefault(name, {}).update(fields)
    file.write_text(json.dumps(known))


def numbered(count: int, seconds: float = 0.0) -> list[RunTask]:
    sleep = f"echo: sleep {seconds}\n" if seconds else ""
    return [ask(f"{sleep}echo: answer Part {n} of the parser is all right.") for n in range(count)]


def test_results_come_in_the_order_of_the_tasks(machine: Machine) -> None:
    machine.account("a")
    machine.account("b")
    tasks = [
        ask(f"echo: sleep {0.6 if n % 2 == 0 else 0}\necho: answer This is part {n} of it.")
        for n in range(6)
    ]
    results = Fleet().run_many_sync(iter(tasks), concurrency=6)
    assert [r.text for r in results] == [f"This is part {n} of it." for n in range(6)]


def test_no_more_than_the_concurrency_run_at_once(machine: Machine) -> None:
    machine.account("a")
    machine.account("b")
    most = 0

    async def main() -> list[RunResult]:
        nonlocal most
        running = asyncio.create_task(Fleet().run_many(numbered(6, 0.4), concurrency=2))
        while not running.done():
            live = await asyncio.to_thread(machine.world.alive)
            most = max(most, sum("agent.py" in line for line in live if "sh" not in line[:8]))
            await asyncio.sleep(0.02)
        return await running

    began = time.monotonic()
    results = asyncio.run(main())
    assert all(r.ok for r in results)
    assert most == 2
    assert time.monotonic() - began > 1.2
    # With room for all of them at once.
    own = Own(takes=0.2)
    assert all(r.ok for r in Fleet([own]).run_many_sync(["Hi."] * 8, concurrency=3, hold=False))
    assert own.most == 3


@pytest.mark.parametrize("strategy", ["prefer-order", "most-quota", "pace"])
def test_equals_share_the_work(machine: Machine, strategy: Any) -> None:
    for name in "abc":
        machine.account(name, 10, 10)
    policy = Policy(strategy=strategy)
    results = Fleet().run_many_sync(numbered(9, 0.5), concurrency=9, policy=policy)
    assert all(r.ok for r in results)
    assert Counter(r.account for r in results) == {"echo:a": 3, "echo:b": 3, "echo:c": 3}


def test_a_preference_spills_over_once_it_has_its_share(machine: Machine) -> None:
    a, b = machine.account("a", 10, 10), machine.account("b", 10, 10)
    settings(machine, admission={"capPerPool": 2})
    policy = Policy(prefer=[a, b])
    results = Fleet().run_many_sync(numbered(4, 0.8), concurrency=4, policy=policy)
    assert Counter(r.account for r in results) == {a: 2, b: 2}


def test_work_is_held_while_nobody_has_room(machine: Machine) -> None:
    machine.account("a", 10, 10)
    settings(machine, admission={"capPerPool": 1})

    async def main() -> tuple[list[RunResult], list[Any]]:
        running = asyncio.create_task(Fleet().run_many(numbered(3, 1.0), concurrency=3))
        held = await until_async(
            lambda: [
                row
                for row in machine.world.bullswarm("assignments", "--json").json["assignments"]
                if row["state"] == "held"
            ]
        )
        return await running, held

    began = time.monotonic()
    results, held = asyncio.run(main())
    assert all(r.ok for r in results)
    assert time.monotonic() - began > 3, "one after the other"
    assert "no capable pool has room" in held[0]["why"]


def test_hold_is_off_where_it_is_said(machine: Machine) -> None:
    machine.account("a", 10, 10)
    settings(machine, admission={"capPerPool": 1})
    began = time.monotonic()
    results = Fleet().run_many_sync(numbered(3, 2.0), concurrency=3, hold=False)
    assert all(r.ok for r in results) and time.monotonic() - began < 5.9, "side by side"
    settings(machine, admission={"mode": "off"})
    began = time.monotonic()
    assert all(r.ok for r in Fleet().run_many_sync(numbered(3, 2.0), concurrency=3))
    assert time.monotonic() - began < 5.9


def test_one_failure_is_one_result(machine: Machine) -> None:
    machine.account("a")

    def explode(task: RunTask) -> RunResult:
        raise RuntimeError("my own code is broken")

    tasks = [
        ask(account="echo:a"),
        ask("echo: exit 3", account="echo:a"),
        ask(account="own"),
        ask(account="odd"),
        ask(account="echo:a"),
    ]
    odd = Own("odd", result=lambda task: "no result")  # type: ignore[arg-type, return-value]
    results = Fleet(["echo", Own(result=explode), odd]).run_many_sync(tasks)
    assert [r.ok for r in results] == [True, False, False, False, True]
    assert results[1].failure_kind == "process" and "exit 3" in results[1].why
    assert results[2].why == "own raised RuntimeError: my own code is broken"
    assert results[3].why == "odd raised TypeError: run() must give a RunResult, not str"


def test_a_refusal_that_shows_only_later_is_one_result(machine: Machine) -> None:
    """What a vendor can't be told is known once it was picked."""
    from bullswarm.providers.demo import set_up

    home = machine.world.root / "demo"
    work = str(set_up(home))
    tasks = [
        RunTask("Look around.", lane="analyze", cwd=work),
        RunTask("Look around.", lane="analyze", cwd=work, model="demo-model"),
        RunTask("Look around.", "demo-codex", lane="analyze", cwd=work, permission_mode="plan"),
    ]
    results = Fleet(home=home).run_many_sync(tasks)
    assert [r.ok for r in results] == [True, True, False]
    assert "can't be told one" in results[2].why


def test_cancelling_ends_every_worker(machine: Machine) -> None:
    machine.account("a")

    async def main() -> None:
        running = asyncio.create_task(Fleet().run_many(numbered(3, 300), concurrency=3))
        await until_async(lambda: len(machine.world.alive()) >= 6)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert not machine.world.alive()


def test_a_program_that_goes_on_gathers_nothing(machine: Machine) -> None:
    """No zombie, no thread, no file: a server would end up full of them."""
    machine.account("a")
    machine.account("b")
    fleet = Fleet()
    me = psutil.Process()
    # Children of other tests in this process are none of ours.
    others = set(me.children(recursive=True))
    assert all(r.ok for r in fleet.run_many_sync(numbered(4), hold=False))
    until(lambda: not set(me.children(recursive=True)) - others)
    threads, files = me.num_threads(), me.num_fds()
    assert all(r.ok for r in fleet.run_many_sync(numbered(30), concurrency=10, hold=False))
    assert not set(me.children(recursive=True)) - others
    until(lambda: (me.num_threads(), me.num_fds()) <= (threads, files))


def test_nothing_to_do_and_nonsense(machine: Machine) -> None:
    machine.account("a")
    assert Fleet().run_many_sync([]) == []
    for wrong in (0, -1, 2.5, True):
        with pytest.raises(UsageError, match="concurrency must be a whole number from 1 on"):
            Fleet().run_many_sync([SAY], concurrency=wrong)  # type: ignore[arg-type]
