"""A graph of 200 steps at concurrency 32 with echo workers: the kernel's own cost a step.

Overhead is the wall time beyond what the same workers cost when they are simply started 32 at a
time without any kernel, divided by the steps.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

STEPS = 200
WIDTH = 32
GOAL_MS = 150.0
PROMPT = "echo: answer The work of this step was done, all of it.\n"


def program(steps: int) -> dict[str, object]:
    listed = []
    for i in range(steps):
        step: dict[str, object] = {"id": f"s{i}", "prompt": PROMPT, "role": "investigate"}
        if i >= WIDTH:
            step["dependsOn"] = [f"s{i - WIDTH}"]
        listed.append(step)
    return {"schemaVersion": 3, "steps": listed, "options": {"concurrency": WIDTH}}


def bare(agent: Path, home: Path, work: Path, steps: int) -> float:
    """Seconds for the workers alone."""

    def one(_: int) -> None:
        argv = [sys.executable, "-I", "-S", str(agent), "--pool", "echo", "--home", str(home)]
        subprocess.run(argv, input=PROMPT.encode(), cwd=work, capture_output=True, check=True)

    began = time.perf_counter()
    with ThreadPoolExecutor(WIDTH) as pool:
        list(pool.map(one, range(steps)))
    return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 beyond the goal")
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    import bullswarm.providers.echo as echo

    agent = Path(echo.__file__).with_name("agent.py")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        home, work, pool = root / "home", root / "work", root / "pool"
        for path in (home, work, pool):
            path.mkdir()
        settings = {
            "config": {"workerCap": 64},
            "admission": {"capPerPool": 1000},
            "providers": {"echo": {"enabled": True, "homes": [str(pool)]}},
        }
        (home / "state.json").write_text(json.dumps(settings))
        (root / "program.json").write_text(json.dumps(program(options.steps)))
        alone = bare(agent, pool, work, options.steps)
        env = {**os.environ, "BULLSWARM_HOME": str(home)}
        command = [sys.executable, "-m", "bullswarm", "workflow", "run", str(root / "program.json")]
        began = time.perf_counter()
        ran = subprocess.run(
            [*command, "--watch", "--json"], cwd=work, env=env, capture_output=True
        )
        wall = time.perf_counter() - began
        end = json.loads(ran.stdout.splitlines()[-1])["end"]
    assert end["state"] == "completed", end["why"]
    assert end["counts"]["done"] == options.steps
    each = (wall - alone) / options.steps * 1000
    print(
        f"{options.steps} steps at concurrency {WIDTH}: {wall:.1f} s, the workers alone "
        f"{alone:.1f} s, kernel {each:.0f} ms a step (goal {GOAL_MS:g})"
    )
    return 1 if options.check and each > GOAL_MS else 0


if __name__ == "__main__":
    raise SystemExit(main())
