"""Runs on echo pools, in this process, with a clock that tests can turn."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bullswarm.judge.types import Verdict
from bullswarm.routing.types import Policy
from bullswarm.runs import App, Progress, Task, run_task
from bullswarm.runs.overview import PoolRow, overview
from bullswarm.store import Home
from rig import World

ANSWER = "echo: answer The parser reads tokens from src/parser.py and builds a tree of nodes."
WORK = f"Explain the parser.\n{ANSWER}"


class Bench:
    """A world with echo pools ``a``, ``b``, ... that are preferred in that order."""

    def __init__(self, world: World, *names: str, **limits: Any) -> None:
        self.world = world
        self.names = names
        self.pools = world.echo(*names)
        self.skew = timedelta(0)
        self.seen: list[Progress] = []
        self.configure(limits={"throttlePausesSeconds": [0, 0], "waitMarginSeconds": 0, **limits})

    def configure(self, **sections: Any) -> None:
        file = self.world.bull / "state.json"
        known = json.loads(file.read_text())
        for section, fields in sections.items():
            known.setdefault(section, {}).update(fields)
        file.write_text(json.dumps(known))

    def now(self) -> datetime:
        return datetime.now(UTC) + self.skew

    def app(self) -> App:
        return App(Home.open(str(self.world.bull)), env=self.world.env, now=self.now)

    def script(self, name: str, *lines: str) -> None:
        """What the pool does before it reads its prompt."""
        text = "".join(f"echo: {line}\n" for line in lines)
        (self.world.root / "echo" / name / "script").write_text(text)

    def meter(self, name: str, five: float, week: float, *, h: float = 2) -> None:
        now = self.now()
        self.world.meter(
            name,
            {"minutes": 300, "usedPct": five, "resetsAt": _iso(now + timedelta(hours=h))},
            {"minutes": 10080, "usedPct": week, "resetsAt": _iso(now + timedelta(days=3))},
        )

    def in_(self, seconds: float) -> int:
        """An epoch that many seconds from now, on the tests' clock."""
        return int((self.now() + timedelta(seconds=seconds)).timestamp())

    def go(
        self,
        prompt: str = WORK,
        *,
        on: Callable[[Progress], None] = lambda _: None,
        cancelled: Callable[[], int] = lambda: 0,
        app: App | None = None,
        **fields: Any,
    ) -> Verdict:
        self.seen = []

        def progress(item: Progress) -> None:
            if item.kind not in ("tick", "event"):
                self.seen.append(item)
                on(item)

        fields.setdefault("use", tuple(self.pools))
        fields.setdefault("policy", Policy(strategy="prefer-order", prefer=tuple(self.pools)))
        task = Task(
            prompt=prompt,
            lane=fields.pop("lane", "analyze"),
            cwd=fields.pop("cwd", str(self.world.work)),
            **fields,
        )
        return run_task(app or self.app(), task, on_progress=progress, cancelled=cancelled)

    def rows(self) -> dict[str, PoolRow]:
        return {row.pool: row for row in overview(self.app(), lane="analyze")}

    def benches(self) -> dict[str, Any]:
        app = self.app()
        return {q.pool: q for q in app.store.quarantines(app.now())}

    def told(self, kind: str) -> list[str]:
        return [item.text for item in self.seen if item.kind == kind]


def pools_of(verdict: Verdict) -> list[str]:
    return [a.pool.partition(":")[2] for a in verdict.attempts]


def kinds_of(verdict: Verdict) -> list[str | None]:
    return [a.failure_kind for a in verdict.attempts]


def task_of(verdict: Verdict, n: int) -> str:
    """What the attempt of that number (from 1) was told."""
    stream = Path(verdict.attempts[n - 1].stream_file or "")
    stamp = stream.name.removeprefix("stream-").removesuffix(".jsonl")
    return (stream.parent / f"task-{stamp}.md").read_text()


def wait_for(what: Callable[[], Any], seconds: float = 20.0) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = what()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def _iso(moment: datetime) -> str:
    return moment.isoformat()
