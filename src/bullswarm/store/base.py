"""What the parts of the store stand on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from bullswarm.errors import BullswarmError
from bullswarm.store.db import Database

T = TypeVar("T")


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

    def unpack(self, body: Any, kind: type[T]) -> T:
        """A stored value. Raises ``BullswarmError`` that names the file where it can't be read."""
        try:
            return msgspec.json.decode(body, type=kind)
        except (msgspec.DecodeError, TypeError) as error:
            raise self.unreadable(error) from error

    def unreadable(self, error: Exception) -> BullswarmError:
        """What to say of a row that makes no sense."""
        return BullswarmError(
            f"{self.db.path} holds something that can't be read ({error}): it is damaged, or "
            "another version wrote it. Move it away with its -wal and -shm files and try again: a "
            "new one is made. What you configured is in state.json and stays"
        )

    def changed(self) -> None:
        """Tell whoever waits to look again."""
        self.db.execute(
            "insert into kept values ('version', '1') on conflict (key) do update set"
            " body = cast(cast(body as integer) + 1 as text)"
        )
