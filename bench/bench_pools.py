"""``pools`` from a cold start, as a multiple of a bare ``python -c pass``.

Goal: at most 6 times. A home with the demo's fleet of four metered pools, its meters in the cache's
time to live; the median of runs, each in a process of its own, the two kinds alternating.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GOAL = 6.0
RUNS = 25


def timed(argv: list[str], env: dict[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(argv, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit 1 beyond the goal")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    from bullswarm.providers.demo import set_up

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        set_up(home)
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env["BULLSWARM_HOME"] = str(home)
        bare = [sys.executable, "-c", "pass"]
        script = Path(sys.executable).with_name("bullswarm")
        pools = (
            [str(script), "pools"]
            if script.exists()
            else [sys.executable, "-m", "bullswarm", "pools"]
        )
        for _ in range(3):
            timed(pools, env)
        pairs = [(timed(bare, env), timed(pools, env)) for _ in range(options.runs)]
    base = statistics.median(pair[0] for pair in pairs)
    cold = statistics.median(pair[1] for pair in pairs)
    times = cold / base
    print(f"bare python {base:.1f} ms, pools {cold:.1f} ms: {times:.1f} times (goal {GOAL:g})")
    return 1 if options.check and times > GOAL else 0


if __name__ == "__main__":
    raise SystemExit(main())
