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

    def version(self) -> int:
        """A number that changes whenever waiting work may go on or must stop, in any process: an
        agent ended or left the line, a bench was lifted, a reading came in, an end was asked for.
        It does not change when work is added or benched, so waiting work never wakes itself."""
        rows = self.db.execute("select body from kept where key = 'version'")
        return int(rows[0][0]) if rows else 0

    def changed(self) -> None:
        """Tell whoever waits to look again."""
        self.db.execute(
            "insert into kept values ('version', '1') on conflict (key) do update set"
            " body = cast(cast(body as integer) + 1 as text)"
        )
