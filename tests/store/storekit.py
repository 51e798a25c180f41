"""A store with a clock of its own, and agents to put into it."""

from __future__ import annotations

import itertools
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bullswarm.routing.types import Quarantine
from bullswarm.store import Agent, Home, Store, me

START = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
NOBODY = 2**22 - 7
"""A pid that no process has."""

_numbers = itertools.count(1)


class Clock:
    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> datetime:
        return self.time

    def on(self, **delta: float) -> datetime:
        self.time += timedelta(**delta)
        return self.time


def store_at(path: Path, clock: Clock | None = None) -> Store:
    return Store(Home.open(path / "home"), clock or Clock())


def agent(**fields: Any) -> Agent:
    pid, started = me()
    number = next(_numbers)
    defaults: dict[str, Any] = {
        "id": f"agent-{number}",
        "run_id": f"20260302-120000-000-r{number:05d}",
        "lane": "build",
        "state": "running",
        "owner_pid": pid,
        "owner_started": started,
        "queued_at": START,
        "started_at": START,
        "pool": "codex",
    }
    return Agent(**(defaults | fields))


def waiting(**fields: Any) -> Agent:
    return agent(**({"state": "waiting", "pool": None, "started_at": None} | fields))


def quota(until: datetime, **fields: Any) -> Quarantine:
    defaults: dict[str, Any] = {"pool": "codex", "kind": "quota", "reason": "limit", "until": until}
    return Quarantine(**(defaults | fields))


def python(code: str, *args: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )
