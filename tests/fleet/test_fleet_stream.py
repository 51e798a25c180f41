"""``Fleet.stream``: the events as they come, the result last, and no worker left behind."""

from __future__ import annotations

import asyncio
import gc
import time

import pytest
from fleetkit import SAY, Machine, Own, ask, until_async

from bullswarm import Fleet, FleetEvent, Policy, UsageError


async def collect(fleet: Fleet, prompt: str) -> list[FleetEvent]:
    return [event async for event in fleet.stream(ask(prompt))]


def test_the_events_come_in_order_and_the_result_is_last(machine: Machine) -> None:
    a = machine.account("a")
    prompt = f"echo: say I look at the parser.\necho: tool read src/parser.py\n{SAY}"
    events = asyncio.run(collect(Fleet(), prompt))
    kinds = [e.kind for e in events if e.kind != "event"]
    assert kinds == ["routed", "started", "ended", "result"]
    agent = [e.event for e in events if e.event is not None]
    assert [e.kind for e in agent] == ["start", "text", "tool", "tool-result", "final"]
    assert agent[1].text == "I look at the parser." and agent[2].tool == "read"
    assert {e.account for e in events} == {a}
    assert [e.result is not None for e in events].index(True) == len(events) - 1
    result = events[-1].result
    assert result is not None and result.ok and events[-1].text == "verified"


def test_events_come_while_the_agent_works(machine: Machine) -> None:
    machine.account("a")

    async def main() -> tuple[float, float]:
        began = time.monotonic()
        first = last = 0.0
        async for event in Fleet().stream(ask(f"echo: say Now.\necho: sleep 2\n{SAY}")):
            if event.event is not None and event.event.text == "Now.":
                first = time.monotonic() - began
            last = time.monotonic() - began
        return first, last

    first, last = asyncio.run(main())
    assert 0 < first < last - 1


def test_a_failed_attempt_is_seen_and_the_next_one_too(machine: Machine) -> None:
    a, b = machine.account("a", 10, 10), machine.account("b", 10, 10)
    machine.script("a", "limit session 8:20pm (UTC)")

    async def main() -> list[FleetEvent]:
        stream = Fleet().stream(ask(), Policy(prefer=[a, b]))
        return [event async for event in stream]

    events = asyncio.run(main())
    kinds = [e.kind for e in events]
    assert kinds.count("routed") == 2 and "benched" in kinds and "retrying" in kinds
    assert kinds[-1] == "result" and events[-1].account == b


def test_closing_early_ends_the_worker(machine: Machine) -> None:
    machine.account("a")

    async def main() -> float:
        stream = Fleet().stream(ask("echo: say Here I am.\necho: sleep 300"))
        async for event in stream:
            if event.event is not None and event.event.kind == "text":
                break
        assert machine.world.alive()
        began = time.monotonic()
        await stream.aclose()
        assert not machine.world.alive()
        return time.monotonic() - began

    assert asyncio.run(main()) < 5
    [run] = machine.world.bullswarm("runs", "--json").json["runs"]
    assert run["state"] == "cancelled"


def test_leaving_the_loop_ends_the_worker_as_well(machine: Machine) -> None:
    machine.account("a")

    async def first() -> str:
        async for event in Fleet().stream(ask("echo: say Here.\necho: sleep 300")):
            if event.kind == "started":
                return event.text
        return ""

    async def main() -> None:
        assert "pid" in await first()
        gc.collect()
        await until_async(lambda: not machine.world.alive())

    asyncio.run(main())


def test_cancelling_the_reader_ends_the_worker(machine: Machine) -> None:
    machine.account("a")

    async def main() -> None:
        reader = asyncio.create_task(collect(Fleet(), "echo: sleep 300"))
        await until_async(machine.world.alive)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader

    asyncio.run(main())
    assert not machine.world.alive()


def test_a_slow_reader_loses_chatter_but_never_what_decides(machine: Machine) -> None:
    machine.account("a")

    async def main() -> list[FleetEvent]:
        seen = []
        async for event in Fleet().stream(ask(f"echo: flood 5000\n{SAY}")):
            if event.kind == "started":
                await until_async(lambda: over(machine))
            seen.append(event)
        return seen

    events = asyncio.run(main())
    assert 100 < len(events) < 2000
    assert [e.kind for e in events if e.kind != "event"][-2:] == ["ended", "result"]
    assert events[-1].result is not None and events[-1].result.ok


def test_bad_input_is_raised_to_who_reads(machine: Machine) -> None:
    machine.account("a")
    with pytest.raises(UsageError, match="prompt"):
        asyncio.run(collect(Fleet(), " "))


def test_an_adapter_of_ones_own_streams_its_steps_and_result(machine: Machine) -> None:
    events = asyncio.run(collect(Fleet([Own()]), "Say hi."))
    assert [e.kind for e in events] == ["routed", "started", "ended", "result"]
    assert events[-1].result is not None and events[-1].result.text == "own did it"


def over(machine: Machine) -> bool:
    return [r["state"] for r in machine.world.bullswarm("runs", "--json").json["runs"]] == ["ok"]
