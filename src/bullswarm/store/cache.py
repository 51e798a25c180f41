"""Meter readings and back-offs that processes share, and small values by name."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from bullswarm.errors import BullswarmError
from bullswarm.routing.types import Reading
from bullswarm.store.base import Part
from bullswarm.store.db import moment, stamp


class Cache(Part):
    """The ``MeterStore`` that the meter service keeps its readings in, and a little more."""

    def get_reading(self, pool: str, account: str | None) -> Reading | None:
        """The last reading of the pool under that account; None is the unknown account."""
        rows = self.db.execute(
            "select body from readings where pool = ? and account = ?", (pool, account or "")
        )
        try:
            return self.unpack(rows[0][0], Reading) if rows else None
        except BullswarmError:
            # It is only a copy: the meter is read again.
            return None

    def put_reading(self, reading: Reading) -> None:
        with self.exclusive():
            self.db.execute(
                "insert or replace into readings values (?, ?, ?)",
                (reading.pool, reading.account or "", msgspec.json.encode(reading)),
            )
            self.changed()

    def get_backoff(self, key: str) -> tuple[datetime, int] | None:
        """(not to be asked before, failures in a row), or None."""
        rows = self.db.execute("select next_at, failures from backoffs where key = ?", (key,))
        return (moment(rows[0][0]), rows[0][1]) if rows else None

    def put_backoff(self, key: str, next_at: datetime, failures: int) -> None:
        with self.exclusive():
            self.db.execute(
                "insert or replace into backoffs values (?, ?, ?)", (key, stamp(next_at), failures)
            )

    def clear_backoff(self, key: str) -> None:
        with self.exclusive():
            self.db.execute("delete from backoffs where key = ?", (key,))

    def get_value(self, key: str, default: Any = None) -> Any:
        """The value kept by that name, as JSON gives it back."""
        rows = self.db.execute("select body from kept where key = ?", (key,))
        return msgspec.json.decode(rows[0][0]) if rows else default

    def set_value(self, key: str, value: Any) -> None:
        """Keep a small value that JSON can hold; None forgets it."""
        with self.exclusive():
            if value is None:
                self.db.execute("delete from kept where key = ?", (key,))
            else:
                self.db.execute(
                    "insert or replace into kept values (?, ?)", (key, msgspec.json.encode(value))
                )

    def claim_start(self, login: str, gap_s: float) -> float:
        """Claim the next moment at which an agent may start on this login home, so that starts are
        ``gap_s`` seconds apart over all processes, and give the seconds to wait for it."""
        key = f"start {login}"
        with self.exclusive():
            now = self.now()
            kept = self.get_value(key)
            slot = now
            if kept is not None:
                gap = timedelta(seconds=gap_s)
                last = moment(kept)
                # A clock that was set back must not make anybody wait for the future.
                if last - now <= timedelta(hours=1):
                    slot = max(now, last + gap)
            self.set_value(key, stamp(slot))
            return (slot - now).total_seconds()
