"""Programs for echo workers, run by the real kernel process, and what became of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from rig import World

T = TypeVar("T")


def program(world: World, *steps: dict[str, Any], **more: Any) -> str:
    path = world.root / "program.json"
    path.write_text(json.dumps({"schemaVersion": 3, "goal": "test", "steps": list(steps), **more}))
    return str(path)


def run(world: World, *steps: dict[str, Any], args: tuple[str, ...] = (), **more: Any) -> Any:
    path = program(world, *steps, **more)
    ran = world.bullswarm("workflow", "run", path, "--watch", "--json", *args)
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    ends = [line["end"] for line in lines if "end" in line]
    assert ends, (ran.stdout[-2000:], ran.stderr[-2000:], kernel_log(world))
    return ends[-1]


def kernel_log(world: World) -> str:
    return "\n".join(p.read_text() for p in world.bull.glob("workflows/*/kernel.log"))


def start(world: World, *steps: dict[str, Any], **more: Any) -> str:
    ran = world.bullswarm("workflow", "run", program(world, *steps, **more), "--json")
    assert ran.code == 0, ran.stderr
    found: str = ran.json["runId"]
    return found


def result(world: World, run_id: str) -> Any:
    ran = world.bullswarm("workflow", "result", run_id)
    if not ran.stdout:
        assert "not begun yet" in ran.stderr, ran.stderr
        return {"ended": False, "state": "starting"}
    return ran.json


def wait_for(what: Callable[[], T], seconds: float = 30.0) -> T:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = what()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("it did not happen in time")


def step_of(document: Any, name: str) -> Any:
    return next(s for s in document["steps"] if s["id"] == name)


def writes(name: str, *after: str, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "prompt": f"echo: write {name}.txt made by {name}\necho: answer I wrote {name}.txt",
        "deliverable": {"type": "files", "paths": [f"{name}.txt"]},
        "dependsOn": list(after),
        **more,
    }


def slow(name: str, seconds: float, *after: str, **more: Any) -> dict[str, Any]:
    """A step that only takes its time."""
    prompt = f"echo: sleep {seconds}\necho: answer I slept as long as I was asked."
    return {
        "id": name,
        "role": "investigate",
        "prompt": prompt,
        "dependsOn": list(after),
        **more,
    }


def folder_of(world: World, run_id: str) -> Path:
    return world.bull / "workflows" / run_id


def events(world: World, run_id: str) -> list[dict[str, Any]]:
    lines = (folder_of(world, run_id) / "events.jsonl").read_text().splitlines()
    return [json.loads(line)["event"] for line in lines]


def ended(world: World, run_id: str, seconds: float = 30.0) -> Any:
    """The result of a run once it has ended."""

    def found() -> Any:
        document = result(world, run_id)
        return document if document["ended"] else None

    return wait_for(found, seconds)


def kernel_pid(world: World, run_id: str) -> int:
    return int((folder_of(world, run_id) / "kernel.lock").read_text())
