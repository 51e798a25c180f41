"""What the parts of the store stand on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime

from bullswarm.store.db import Database


def utcnow() -> datetime:
    return datetime.now(UTC)


class Part:
    """One subject of the store: its methods, over the one database and the one clock."""

    def __init__(self, db: Database, now: Callable[[], datetime] = utcnow) -> None:
        self.db = db
        self.now = now

    def exclusive(self) -> contextlib.AbstractContextManager[None]:
        """One write transaction over all processes, re-entrant: what is read in it stays true until
        it ends. "Pick a pool and register the work" belongs in one. Nothing slow belongs inside."""
        return self.db.exclusive()
