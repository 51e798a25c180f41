"""A meter store that several processes share, as small as can be."""

from __future__ import annotations

import sqlite3
from datetime import datetime

import msgspec

from bullswarm.routing.types import Reading


class SqliteMeterStore:
    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path, timeout=30, isolation_level=None)
        self.db.execute("create table if not exists kept (name text primary key, value blob)")

    def _get(self, name: str) -> bytes | None:
        row = self.db.execute("select value from kept where name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def _put(self, name: str, value: bytes) -> None:
        self.db.execute("insert or replace into kept values (?, ?)", (name, value))

    def get_reading(self, pool: str, account: str | None) -> Reading | None:
        value = self._get(f"reading {pool} {account}")
        return None if value is None else msgspec.json.decode(value, type=Reading)

    def put_reading(self, reading: Reading) -> None:
        self._put(f"reading {reading.pool} {reading.account}", msgspec.json.encode(reading))

    def get_backoff(self, key: str) -> tuple[datetime, int] | None:
        value = self._get(f"backoff {key}")
        return None if value is None else msgspec.json.decode(value, type=tuple[datetime, int])

    def put_backoff(self, key: str, next_at: datetime, failures: int) -> None:
        self._put(f"backoff {key}", msgspec.json.encode((next_at, failures)))

    def clear_backoff(self, key: str) -> None:
        self.db.execute("delete from kept where name = ?", (f"backoff {key}",))
