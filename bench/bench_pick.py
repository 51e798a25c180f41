"""How long a pick takes over 10, 100 and 1,000 pools, without and with admission.

``python bench/bench_pick.py`` prints a table of medians in milliseconds; ``--check`` exits 1 where
1,000 pools take longer than the goal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from statistics import median

from bullswarm.routing import admit, route
from bullswarm.routing.types import (
    Admission,
    Config,
    Durations,
    Health,
    Model,
    Pool,
    Quarantine,
    Rate,
    Reading,
    Request,
    Snapshot,
    Window,
    Work,
)

GOAL_MS = 10.0
ROUNDS = 20
IN_FLIGHT = 300
NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
REQUEST = Request(lane="build", capabilities=("edit",), caller="p3", incumbent="p5", effort="high")
HOLD = Admission(mode="hold")


def fleet(size: int) -> Snapshot:
    """A fleet with every kind of number: readings, rates, families, benches, work, and records of
    every fifth pool."""
    return Snapshot(
        now=NOW,
        pools=tuple(_pool(n) for n in range(size)),
        work=tuple(_work(n, size) for n in range(IN_FLIGHT)),
        quarantines=tuple(
            Quarantine(
                pool=f"p{n}", kind="quota", until=NOW + timedelta(hours=1), reason="session limit"
            )
            for n in range(0, size, 17)
        ),
        durations=tuple(
            Durations(pool=f"p{n}", lane="build", minutes=tuple(float(1 + m) for m in range(20)))
            for n in range(0, size, 5)
        ),
        config=Config(assignments={"build/high": "p7"}),
    )


def _pool(n: int) -> Pool:
    return Pool(
        name=f"p{n}",
        provider=f"v{n % 5}",
        capabilities=("edit", "web"),
        models=(
            Model(name="big", family="big"),
            Model(name="small", family="small", latency="fast"),
        ),
        default_model="big",
        cost_rank=float(n % 3),
        pacing="monthly" if n % 4 == 0 else "weekly",
        reading=Reading(
            pool=f"p{n}",
            source="live",
            observed_at=NOW - timedelta(minutes=n % 9),
            windows=(
                Window(
                    kind="five_hour",
                    minutes=300,
                    used_pct=float(n * 7 % 101),
                    resets_at=NOW + timedelta(minutes=1 + n * 13 % 299),
                ),
                Window(
                    kind="monthly" if n % 4 == 0 else "weekly",
                    minutes=43200 if n % 4 == 0 else 10080,
                    used_pct=float(n * 11 % 101),
                    resets_at=NOW + timedelta(minutes=1 + n * 131 % 10000),
                ),
                Window(
                    kind="weekly",
                    minutes=10080,
                    used_pct=float(n * 3 % 101),
                    resets_at=NOW + timedelta(minutes=1 + n * 131 % 10000),
                    family="big",
                ),
            ),
        ),
        rates=(
            Rate(kind="five_hour", per_minute=0.3, worker_minutes=50),
            Rate(kind="monthly" if n % 4 == 0 else "weekly", per_minute=0.03, worker_minutes=50),
        ),
        health=Health(attempts=9, errors=n % 3, median_seconds=60.0 + n),
    )


def _work(n: int, size: int) -> Work:
    return Work(
        id=f"w{n}",
        pool=f"p{n % size}",
        lane="build",
        started_at=NOW - timedelta(minutes=n % 40),
        ended_at=NOW - timedelta(minutes=1) if n % 10 == 0 else None,
    )


def milliseconds(call: Callable[[], object]) -> float:
    """The median of ``ROUNDS`` calls, in milliseconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1000.0)
    return median(times)


def main() -> int:
    """Print the table; with ``--check`` compare 1,000 pools with the goal."""
    print(f"{'pools':>6} {'route ms':>9} {'admit ms':>9}   ({IN_FLIGHT} agents in flight)")
    worst = 0.0
    for size in (10, 100, 1000):
        snapshot = fleet(size)
        routed = milliseconds(lambda s=snapshot: route(s, REQUEST))  # type: ignore[misc]
        admitted = milliseconds(
            lambda s=snapshot: admit(s, REQUEST, admission=HOLD)  # type: ignore[misc]
        )
        print(f"{size:>6} {routed:>9.2f} {admitted:>9.2f}")
        worst = max(routed, admitted)
    if "--check" in sys.argv[1:] and worst > GOAL_MS:
        print(f"1,000 pools took {worst:.2f} ms; the goal is {GOAL_MS:.0f} ms", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
