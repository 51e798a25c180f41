"""The database: one SQLite file in WAL mode that any number of processes and threads share."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bullswarm.errors import BullswarmError
from bullswarm.store.schema import MIGRATIONS

BUSY_S = 30.0
_TRIES = 4
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_BUSY, _LOCKED, _READONLY, _IO, _CORRUPT, _FULL, _CANT_OPEN, _NOT_A_DB = 5, 6, 8, 10, 11, 13, 14, 26


def stamp(moment: datetime) -> int:
    """Microseconds since 1970: exact, and sorts as the time does."""
    return (moment - _EPOCH) // _MICROSECOND


def moment(value: int) -> datetime:
    """The time that ``stamp`` made a number of."""
    return _EPOCH + timedelta(microseconds=value)


class Database:
    """One connection a process, shared by its threads under a lock, opened at first use.

    Every error of SQLite becomes a ``BullswarmError`` that names the file and what to do.
    """

    def __init__(self, path: Path, busy_s: float = BUSY_S) -> None:
        self.path = path
        self._busy_s = busy_s
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._depth = 0
        self._parents: list[sqlite3.Connection] = []

    def execute(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and give its rows."""
        self._after_fork()
        with self._lock:
            connection = self._open()
            return self._run(connection, sql, values)

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """One write transaction over all processes; re-entrant. What raises leaves nothing behind.
        Everybody else's writes wait, so nothing slow belongs inside."""
        self._after_fork()
        with self._lock:
            connection = self._open()
            depth = self._depth
            outer = depth == 0
            name = f"level{depth}"
            self._run(connection, "begin immediate" if outer else f"savepoint {name}")
            self._depth += 1
            try:
                yield
                self._run(connection, "commit" if outer else f"release {name}")
            except BaseException:
                # SQLite may have rolled back by itself (a full disk); then there is nothing to do.
                with contextlib.suppress(sqlite3.Error):
                    if connection.in_transaction:
                        connection.execute("rollback" if outer else f"rollback to {name}")
                raise
            finally:
                self._depth = depth

    def close(self) -> None:
        """Close the connection; the next use opens it again. A fork's parent keeps its own."""
        self._after_fork()
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _after_fork(self) -> None:
        if self._pid != os.getpid():
            # A connection must not cross a fork, and must not be closed on the other side either.
            parents = [*self._parents, *filter(None, [self._connection])]
            self._reset()
            self._parents = parents

    def _run(
        self, connection: sqlite3.Connection, sql: str, values: Sequence[Any] = ()
    ) -> list[tuple[Any, ...]]:
        for left in range(_TRIES - 1, -1, -1):
            try:
                return connection.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                # Within a transaction a statement never meets a lock: BEGIN IMMEDIATE took it.
                if left and _code(error) in (_BUSY, _LOCKED) and not connection.in_transaction:
                    time.sleep(0.02 * (_TRIES - left))
                    continue
                raise self._explain(error) from error
        raise AssertionError("unreachable")

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None:
            return self._connection
        connection = None
        try:
            # SQLite gives the -wal and -shm files the mode of the database. Only where it is not
            # there: to close a file drops all locks that this process has on it, those of its
            # other connections too.
            with contextlib.suppress(FileExistsError):
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                os.close(os.open(self.path, flags, 0o600))
            connection = sqlite3.connect(
                self.path, timeout=self._busy_s, isolation_level=None, check_same_thread=False
            )
            self._prepare(connection)
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, OSError):
                from bullswarm.store.files import explain

                raise explain(error, self.path) from error
            raise
        self._connection = connection
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        self._run(connection, f"pragma busy_timeout = {int(self._busy_s * 1000)}")
        self._run(connection, "pragma synchronous = normal")
        if self._version(connection) < len(MIGRATIONS):
            self._migrate(connection)

    def _version(self, connection: sqlite3.Connection) -> int:
        version: int = self._run(connection, "pragma user_version")[0][0]
        if version > len(MIGRATIONS):
            raise BullswarmError(
                f"{self.path} was written by a newer bullswarm (format {version}, this one knows "
                f"{len(MIGRATIONS)}); upgrade bullswarm, or use another home with --home or "
                "BULLSWARM_HOME"
            )
        return version

    def _migrate(self, connection: sqlite3.Connection) -> None:
        deadline = time.monotonic() + self._busy_s
        # Two processes that make the file at once: SQLite does not wait for this one by itself.
        while True:
            try:
                self._run(connection, "pragma journal_mode = wal")
                break
            except DatabaseBusy:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        self._run(connection, "begin immediate")
        try:
            version = self._version(connection)
            for script in MIGRATIONS[version:]:
                for statement in script.split(";"):
                    if statement.strip():
                        self._run(connection, statement)
            self._run(connection, f"pragma user_version = {len(MIGRATIONS)}")
            self._run(connection, "commit")
        except BaseException:
            if connection.in_transaction:
                connection.execute("rollback")
            raise

    def _explain(self, error: sqlite3.Error) -> Exception:
        code = _code(error)
        path = self.path
        if code in (_BUSY, _LOCKED):
            return DatabaseBusy(
                f"another process has kept {path} locked for over {self._busy_s:g} seconds; end it "
                "(is one stopped?) and try again"
            )
        if code in (_CORRUPT, _NOT_A_DB) or "no such table" in str(error):
            return BullswarmError(
                f"{path} is damaged ({error}); move it away with its -wal and -shm files and try "
                "again: a new one is made. What you configured is in state.json and stays"
            )
        if code == _FULL:
            return BullswarmError(
                f"the disk is full: {path} could not be written; free some space and try again"
            )
        if code in (_READONLY, _CANT_OPEN, _IO):
            return BullswarmError(
                f"{path} can't be written ({error}); make it writable for this user, or choose "
                "another home with --home or BULLSWARM_HOME"
            )
        return error


class DatabaseBusy(BullswarmError):
    """Somebody else held the database for too long."""


def _code(error: sqlite3.Error) -> int:
    code: int = getattr(error, "sqlite_errorcode", 0) or 0
    return code & 0xFF
