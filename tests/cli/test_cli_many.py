"""Twenty runs at once, from processes of their own: none lost, spread by load, caps kept."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from clikit import SAY, Cli

COUNT = 20
PLACED = ("starting", "running")


def look(cli: Cli, processes: list[subprocess.Popen[str]]) -> list[list[dict[str, Any]]]:
    """What ``assignments`` shows, again and again, until all have ended."""
    seen = []
    deadline = time.monotonic() + 90
    while any(p.poll() is None for p in processes) and time.monotonic() < deadline:
        seen.append(cli("assignments", "--json").json["assignments"])
        time.sleep(0.1)
    return seen


def verdicts(processes: list[subprocess.Popen[str]]) -> list[dict[str, Any]]:
    found = []
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, (out, err)
        found.append(json.loads(out))
    return found


def counts(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(row["pool"] for row in rows if row["state"] in PLACED)


@pytest.fixture
def even(cli: Cli) -> Cli:
    """Four pools with the same reading."""
    names = ("a", "b", "c", "d")
    cli.world.echo(*names)
    now = datetime.now(UTC)
    for name in names:
        cli.world.meter(
            name,
            {"minutes": 300, "usedPct": 5, "resetsAt": (now + timedelta(hours=2)).isoformat()},
            {"minutes": 10080, "usedPct": 20, "resetsAt": (now + timedelta(days=3)).isoformat()},
        )
    return cli


def start(cli: Cli, count: int, *more: str) -> list[subprocess.Popen[str]]:
    words = ("run", "--lane", "analyze", "--json", *more, "echo: sleep 1.5\n" + SAY)
    return [cli.world.start(*words) for _ in range(count)]


def test_twenty_at_once_lose_nothing_keep_the_caps_and_spread(even: Cli) -> None:
    cap, own = 8, 1
    even.configure(config={"workerCap": cap})
    assert even("strategy", "set-subscription", "echo:d", "--cap", str(own)).code == 0
    processes = start(even, COUNT)
    seen = look(even, processes)
    found = verdicts(processes)

    # None is lost, none counted twice.
    assert len({v["runId"] for v in found}) == COUNT
    assert all(v["ok"] and len(v["attempts"]) == 1 for v in found)
    records = even("runs", "--limit", "100", "--json").json["runs"]
    assert {r["runId"] for r in records} == {v["runId"] for v in found}
    assert {r["state"] for r in records} == {"ok"}
    assert even("assignments", "--json").json["assignments"] == []

    # The caps hold at every look, and what waits says for what.
    peaks = [counts(rows) for rows in seen]
    assert max(sum(peak.values()) for peak in peaks) == cap
    assert max(peak["echo:d"] for peak in peaks) == own
    waiting = [row for rows in seen for row in rows if row["state"] == "waiting"]
    assert waiting and all(row["pool"] is None for row in waiting)
    assert {"cap" in row["why"] or "room" in row["why"] for row in waiting} == {True}
    assert all(row["until"] for row in waiting)

    # Spread by what is in flight: with the same reading no pool is piled up on.
    for peak in peaks:
        assert max((peak[f"echo:{n}"] for n in "abc"), default=0) <= 4, peaks
    total = Counter(v["pick"]["pool"] for v in found)
    assert set(total) == {"echo:a", "echo:b", "echo:c", "echo:d"}
    assert max(total.values()) <= 10, total

    # Every pick can be read back to the same answer, though twenty were made at once.
    for verdict in found[:5]:
        told = even("explain", verdict["runId"], "--json")
        assert told.code == 0 and told.json["decisions"][0]["same"]
    assert not even.world.alive()


def test_load_in_flight_is_seen_in_pools_and_counted_in_the_next_pick(even: Cli) -> None:
    processes = start(even, 3, "--pool", "echo:a")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if counts(even("assignments", "--json").json["assignments"])["echo:a"] == 3:
            break
        time.sleep(0.1)
    rows = {r["pool"]: r for r in even("pools", "--json").json["pools"]}
    assert rows["echo:a"]["inflight"] == 3
    # Three points of surplus for each of the three.
    lost = rows["echo:a"]["surplus"] - rows["echo:a"]["effectiveSurplus"]
    assert lost == pytest.approx(9.0, abs=0.01)
    assert even.run("--dry-run", "--json").json["pool"] == "echo:b"
    verdicts(processes)
