"""What it costs to watch 200 workers that stream JSON lines, in one process.

``python bench/bench_supervisor.py`` prints the supervisor's CPU (in cores) and how much its memory
grew per worker; ``--check`` exits 1 where a goal is missed. The workers' own CPU is not counted.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bullswarm.dispatch import Watch, start, supervise_many
from bullswarm.dispatch.notices import Classifier
from bullswarm.dispatch.types import Ended, Event, Launch, Limits

WORKERS = 200
SECONDS = 8
GOAL_CORES = 0.5
GOAL_MB = 2.0

SCRIPT = """
n=0
while [ $n -lt {lines} ]; do
  n=$((n + 1))
  echo '{{"kind":"text","text":"step '$n' of the work: read, think, write"}}'
  sleep 0.5
done
echo '{{"kind":"final","text":"done"}}'
"""


def read_event(raw: dict[str, Any]) -> tuple[Event, ...]:
    return (Event(**raw),)


def launch(folder: Path, number: int) -> Launch:
    """Worker ``number``, with its files in ``folder``."""
    name = f"{folder}/{number}"
    return Launch(
        attempt_id=f"bench-{os.getpid()}-{number}",
        argv=("sh", "-c", SCRIPT.format(lines=SECONDS * 2)),
        env=dict(os.environ),
        cwd=str(folder),
        stdout=f"{name}.jsonl",
        stderr=f"{name}.err",
        exit_file=f"{name}.exit",
        pid_file=f"{name}.pid",
    )


def resident_mb() -> float:
    """This process's memory now, in MB; at its highest where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def cpu_s() -> float:
    """CPU seconds of this process, without its children."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(folder: Path) -> tuple[float, float, float, list[Ended]]:
    """Cores while starting and watching, cores while watching, MB per worker, how they ended."""
    before_mb, before_cpu, before = resident_mb(), cpu_s(), time.monotonic()
    watches = [
        Watch(
            start(launch(folder, n)),
            read_event=read_event,
            classifier=Classifier(),
            limits=Limits(),
        )
        for n in range(WORKERS)
    ]
    watching_cpu, watching = cpu_s(), time.monotonic()
    highest = resident_mb()

    def sleep(seconds: float) -> None:
        nonlocal highest
        highest = max(highest, resident_mb())
        time.sleep(seconds)

    ended = [end for _, end in supervise_many(watches, sleep=sleep)]
    after_cpu, after = cpu_s(), time.monotonic()
    return (
        (after_cpu - before_cpu) / (after - before),
        (after_cpu - watching_cpu) / (after - watching),
        (highest - before_mb) / WORKERS,
        ended,
    )


def main() -> int:
    """Print the figures; with ``--check`` compare them with the goals."""
    with tempfile.TemporaryDirectory() as folder:
        overall, cores, megabytes, ended = measure(Path(folder))
    lines = sum(end.lines for end in ended)
    print(
        f"{WORKERS} workers, {lines} lines: {cores:.3f} cores to watch ({overall:.3f} with starts)"
    )
    print(f"{megabytes:.3f} MB per worker")
    lost = [end for end in ended if end.ended_by != "exit" or end.exit_code != 0 or end.notes]
    if lost or len(ended) != WORKERS:
        print(f"{len(lost)} did not end as they should: {lost[:1]}", file=sys.stderr)
        return 1
    if "--check" in sys.argv[1:] and (cores >= GOAL_CORES or megabytes >= GOAL_MB):
        print(f"the goals are {GOAL_CORES} cores and {GOAL_MB} MB per worker", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
