"""Kill the kernel at random moments, again and again: each attempt has one worker."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rig import World

KILLS = 25
"""Kills of one parameter; four of them make a hundred."""


def wide(n: int) -> list[dict[str, Any]]:
    """A graph of six columns whose workers write down that they were started."""
    steps = []
    for i in range(n):
        steps.append(
            {
                "id": f"s{i}",
                "prompt": (
                    f"echo: append starts.log s{i}\n"
                    f"echo: sleep 0.{i % 5 + 1}\n"
                    f"echo: write s{i}.txt done\n"
                    f"echo: answer I wrote s{i}.txt as I was asked."
                ),
                "deliverable": {"type": "files", "paths": [f"s{i}.txt"]},
                "evidence": [{"type": "command", "command": f"grep -q done s{i}.txt"}],
                "dependsOn": [f"s{i - 6}"] if i >= 6 else [],
            }
        )
    return steps


def kernel_of(folder: Path) -> int | None:
    try:
        pid = int((folder / "kernel.lock").read_text())
        os.kill(pid, 0)
    except (OSError, ValueError):
        return None
    return pid


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_killed_at_random_points_each_worker_starts_once(world: World, seed: int) -> None:
    dice = random.Random(seed)
    world.echo("a", "b")
    path = world.root / "program.json"
    path.write_text(
        json.dumps(
            {"schemaVersion": 3, "goal": "", "steps": wide(40), "options": {"concurrency": 6}}
        )
    )
    started = world.bullswarm("workflow", "run", str(path), "--json")
    assert started.code == 0, started.stderr
    run_id = started.json["runId"]
    folder = world.bull / "workflows" / run_id
    kills = 0
    resumes = []
    deadline = time.monotonic() + 500
    while time.monotonic() < deadline:
        state = world.bullswarm("workflow", "result", run_id)
        if state.stdout and state.json["ended"]:
            break
        if kills < KILLS:
            until = time.monotonic() + 5
            while kernel_of(folder) is None and time.monotonic() < until:
                time.sleep(0.02)
            time.sleep(dice.uniform(0.0, 1.2))
            pid = kernel_of(folder)
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
                kills += 1
            # The lock dies with the process; the run stands as it was. The next kill may well come
            # while the new kernel is still on its way up.
            resumes.append(world.start("workflow", "resume", run_id))
        else:
            if kernel_of(folder) is None:
                world.bullswarm("workflow", "resume", run_id)
            time.sleep(0.3)
    for resume in resumes:
        _, said = resume.communicate(timeout=60)
        assert resume.returncode in (0, 1) and "Traceback" not in said, said
    document = world.bullswarm("workflow", "result", run_id).json
    log = (folder / "kernel.log").read_text()
    assert document["state"] == "completed", (document["why"], log[-3000:])
    attempts = [a for s in document["steps"] for a in s["attempts"]]
    starts = Counter((world.work / "starts.log").read_text().split())
    assert all(count == 1 for count in starts.values()), starts
    assert len(starts) == len(attempts) == 40
    assert all(s["label"] == "proven by command" for s in document["steps"])
    assert not world.alive()
    print(f"seed {seed}: {kills} kills")
