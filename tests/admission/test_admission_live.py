"""Held work in the product: visible, cancellable, woken at once, served in order."""

from __future__ import annotations

import json
import subprocess
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rig import World

SAY = "echo: answer The parser reads tokens and builds a tree of nodes."


def windows(five: float, week: float = 20.0) -> list[dict[str, Any]]:
    now = datetime.now(UTC)
    return [
        {"minutes": 300, "usedPct": five, "resetsAt": (now + timedelta(hours=2)).isoformat()},
        {"minutes": 10080, "usedPct": week, "resetsAt": (now + timedelta(days=4)).isoformat()},
    ]


def assignments(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.bullswarm("assignments", "--json").json["assignments"]
    return found


def wait_for(what: Any, seconds: float = 20.0) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = what()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("it did not happen in time")


def held(world: World) -> list[dict[str, Any]]:
    return [a for a in assignments(world) if a["state"] == "held"]


def room(world: World) -> None:
    """The window was reset early: believed once two readings agree on it."""
    for _ in range(2):
        world.meter("a", *windows(5))
        world.bullswarm("pools", "--fresh")
        time.sleep(0.2)


def start(world: World, *more: str) -> subprocess.Popen[str]:
    return world.start("run", "--lane", "analyze", "--json", "--hold", *more, SAY)


def finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=60)
    assert out, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_work_is_held_while_no_pool_has_room_and_a_new_reading_wakes_it(world: World) -> None:
    world.echo("a")
    world.meter("a", *windows(95))
    run = start(world)
    [row] = wait_for(lambda: held(world))
    assert row["why"] and row["until"], row
    assert datetime.fromisoformat(row["until"]) > datetime.now(UTC)
    # Somebody reads the meter; the held work looks again at once.
    room(world)
    began = time.monotonic()
    verdict = finish(run)
    assert verdict["ok"], verdict
    assert time.monotonic() - began < 8
    assert not assignments(world)


def test_held_work_is_cancelled_by_its_id(world: World) -> None:
    world.echo("a")
    world.meter("a", *windows(95))
    run = start(world)
    [row] = wait_for(lambda: held(world))
    assert world.bullswarm("cancel", row["id"]).code == 0
    verdict = finish(run)
    assert verdict["failureKind"] == "cancelled" and not verdict["attempts"]
    assert not assignments(world)


def test_a_single_run_is_never_held_unless_asked(world: World) -> None:
    world.echo("a")
    world.meter("a", *windows(95))
    ran = world.bullswarm("run", "--lane", "analyze", "--json", SAY)
    assert ran.json["ok"]


def test_the_patience_ends_a_hold_and_the_least_loaded_runs(world: World) -> None:
    world.echo("a")
    world.meter("a", *windows(95))
    began = time.monotonic()
    ran = world.bullswarm("run", "--lane", "analyze", "--json", "--hold", "--patience", "0.05", SAY)
    assert ran.json["ok"]
    assert 2.5 < time.monotonic() - began < 20


def test_a_lifted_bench_wakes_what_waits_for_it(world: World) -> None:
    world.echo("a")
    world.meter("a", *windows(5))
    script = world.root / "echo" / "a" / "script"
    until = int(time.time()) + 3600
    script.write_text(f"echo: limit-event five_hour {until}\n")
    first = world.bullswarm("run", "--lane", "analyze", "--json", SAY).json
    assert first["failureKind"] == "quota"
    script.unlink()
    run = start(world)
    wait_for(lambda: held(world))
    assert world.bullswarm("pools", "release", "echo:a").code == 0
    began = time.monotonic()
    assert finish(run)["ok"]
    assert time.monotonic() - began < 8


def test_held_work_is_served_oldest_first_across_processes(world: World) -> None:
    world.echo("a")
    state = world.bull / "state.json"
    settings = json.loads(state.read_text())
    settings["admission"] = {"capPerPool": 1}
    state.write_text(json.dumps(settings))
    world.meter("a", *windows(5))
    log = world.work / "order.log"
    blocker = world.start(
        "run", "--lane", "analyze", "--json", "echo: sleep 4\necho: answer I slept well enough."
    )
    wait_for(lambda: [a for a in assignments(world) if a["state"] == "running"])
    runs = []
    for n in range(4):
        prompt = f"echo: append order.log {n}\n{SAY}"
        runs.append(world.start("run", "--lane", "analyze", "--json", "--hold", prompt))
        wait_for(lambda n=n: len(held(world)) == n + 1)
    assert finish(blocker)["ok"]
    assert all(finish(run)["ok"] for run in runs)
    assert log.read_text().split() == ["0", "1", "2", "3"]


@pytest.mark.parametrize("urgent", [True, False])
def test_a_held_process_that_dies_leaves_the_line(world: World, urgent: bool) -> None:
    world.echo("a")
    world.meter("a", *windows(95))
    run = start(world)
    wait_for(lambda: held(world))
    run.kill() if urgent else run.terminate()
    run.communicate(timeout=20)
    wait_for(lambda: not assignments(world))


def test_a_workflow_holds_shows_it_and_survives_a_crash(world: World) -> None:
    world.echo("a")
    world.meter("a", *windows(95))
    path = world.root / "program.json"
    step = {"id": "one", "role": "investigate", "prompt": SAY}
    path.write_text(json.dumps({"schemaVersion": 3, "steps": [step]}))
    run_id = world.bullswarm("workflow", "run", str(path), "--json").json["runId"]
    wait_for(lambda: held(world))
    shown = world.bullswarm("workflow", "watch", run_id, "--timeout", "1")
    assert "held" in shown.stdout
    lock = world.bull / "workflows" / run_id / "kernel.lock"
    subprocess.run(["kill", "-9", lock.read_text().strip()], check=True)
    wait_for(lambda: not assignments(world))
    assert world.bullswarm("workflow", "resume", run_id).code == 0
    wait_for(lambda: held(world))
    room(world)
    done = world.bullswarm("workflow", "watch", run_id, "--timeout", "30")
    assert done.code == 0, done.stdout
