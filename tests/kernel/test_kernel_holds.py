"""Held steps of a workflow leave no trail, and find back into a line that they fell out of."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from kernelkit import ended, events, run, slow, start, wait_for, writes

from bullswarm.runs.app import App
from rig import World


def windows(five: float) -> list[dict[str, Any]]:
    now = datetime.now(UTC)
    return [
        {"minutes": 300, "usedPct": five, "resetsAt": (now + timedelta(hours=2)).isoformat()},
        {"minutes": 10080, "usedPct": 20.0, "resetsAt": (now + timedelta(days=4)).isoformat()},
    ]


def held(world: World) -> list[Any]:
    app = App.open(str(world.bull))
    try:
        return [a for a in app.store.line() if a.state == "held"]
    finally:
        app.store.close()


def test_work_that_is_held_for_long_leaves_no_trail_of_vain_asks(world: World) -> None:
    world.echo("a")
    world.meter("a", *windows(95))
    run_id = start(world, slow("one", 0), slow("two", 0))
    wait_for(lambda: len(held(world)) == 2)
    for _ in range(4):
        world.bullswarm("pools", "--fresh")
        time.sleep(0.3)
    assert [e["event"] for e in events(world, run_id)] == ["Held", "Held"]
    assert world.bullswarm("workflow", "cancel", run_id).code == 0
    wait_for(lambda: not held(world))


def test_a_held_step_that_lost_its_place_in_line_asks_again(world: World) -> None:
    world.echo("a")
    world.meter("a", *windows(95))
    run_id = start(world, slow("one", 0))
    [agent] = wait_for(lambda: held(world))
    # As a kernel's death between its place in line and its report leaves it.
    app = App.open(str(world.bull))
    app.store.drop(agent.id)
    app.store.close()
    wait_for(lambda: held(world), 12)
    for _ in range(2):
        world.meter("a", *windows(5))
        world.bullswarm("pools", "--fresh")
        time.sleep(0.2)
    assert ended(world, run_id)["state"] == "completed"


def test_caps_hold_steps_and_let_them_go_one_by_one(world: World) -> None:
    world.echo("a")
    state = world.bull / "state.json"
    state.write_text(state.read_text().replace('"capPerPool": 100', '"capPerPool": 2'))
    end = run(world, *[writes(f"s{n}") for n in range(6)], options={"concurrency": 6})
    assert end["state"] == "completed"
    assert all(len(s["attempts"]) == 1 for s in end["steps"])
    spans = [(a["startedAt"], a["endedAt"]) for s in end["steps"] for a in s["attempts"]]
    most = max(sum(s <= moment < e for s, e in spans) for moment, _ in spans)
    assert most <= 2
    asks = sum(e["event"] == "Held" for e in events(world, end["runId"]))
    assert asks <= 10, "each held step is asked again when there is room, not whenever one ends"
