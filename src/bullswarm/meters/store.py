"""What the meter service keeps between calls and between processes, and a copy in memory."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from bullswarm.routing.types import Reading


class MeterStore(Protocol):
    """Readings by pool and account (None where the account is unknown), and back-off by key.
    Called from one thread only; every call is one transaction."""

    def get_reading(self, pool: str, account: str | None) -> Reading | None: ...

    def put_reading(self, reading: Reading) -> None: ...

    def get_backoff(self, key: str) -> tuple[datetime, int] | None:
        """(not to be asked before, failures in a row), or None."""
        ...

    def put_backoff(self, key: str, next_at: datetime, failures: int) -> None: ...

    def clear_backoff(self, key: str) -> None: ...


class MemoryMeterStore:
    """A store that lasts as long as the process: for simulations, demos and tests."""

    def __init__(self) -> None:
        self.readings: dict[tuple[str, str | None], Reading] = {}
        self.backoffs: dict[str, tuple[datetime, int]] = {}

    def get_reading(self, pool: str, account: str | None) -> Reading | None:
        return self.readings.get((pool, account))

    def put_reading(self, reading: Reading) -> None:
        self.readings[(reading.pool, reading.account)] = reading

    def get_backoff(self, key: str) -> tuple[datetime, int] | None:
        return self.backoffs.get(key)

    def put_backoff(self, key: str, next_at: datetime, failures: int) -> None:
        self.backoffs[key] = (next_at, failures)

    def clear_backoff(self, key: str) -> None:
        self.backoffs.pop(key, None)
