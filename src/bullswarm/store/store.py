"""The store: one face over its parts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from types import TracebackType

import msgspec

from bullswarm.store.base import utcnow
from bullswarm.store.benches import Benches
from bullswarm.store.cache import Cache
from bullswarm.store.db import Database
from bullswarm.store.home import Home
from bullswarm.store.process import alive
from bullswarm.store.records import Records


class Store(Benches, Records, Cache):
    """What changes while things run, for all processes of one home: agents, benches, decisions,
    runs, readings. Safe in threads. The file is opened at first use.

    ``now`` is the clock (aware UTC). Every method may raise ``BullswarmError``: the file is
    damaged, from a newer bullswarm, not writable, locked for too long, or the disk is full.
    """

    def __init__(self, home: Home, now: Callable[[], datetime] = utcnow) -> None:
        super().__init__(Database(home.db_file), now)
        self.home = home

    def reconcile(self) -> tuple[str, ...]:
        """End what dead processes left: prune agents, and mark as "lost" each single run whose
        owner is dead and that has no live agent. Gives the run ids. Workflows are left to their
        kernel, which takes them up again."""
        with self.exclusive():
            busy = {agent.run_id for agent in self.agents()}
            lost = [
                run
                for run in self.running()
                if run.kind == "run"
                and run.owner_pid is not None
                and run.run_id not in busy
                and not alive(run.owner_pid, run.owner_started)
            ]
            for run in lost:
                self.put_run(msgspec.structs.replace(run, state="lost", ended_at=self.now()))
        return tuple(run.run_id for run in lost)

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        self.db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
