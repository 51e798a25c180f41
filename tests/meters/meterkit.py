"""Shared makings of the meter tests: a fixed time, readings, a provider with scripted answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from bullswarm.meters import window_from
from bullswarm.providers.types import Account, Connector
from bullswarm.routing.types import Reading, Window

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def after(minutes: float = 0, *, hours: float = 0, days: float = 0) -> datetime:
    return NOW + timedelta(minutes=minutes, hours=hours, days=days)


def five(used: float | None, resets: datetime | None = None) -> Window:
    return window_from(300, used, resets)


def week(used: float | None, resets: datetime | None = None, family: str | None = None) -> Window:
    return window_from(10080, used, resets, family)


def reading(
    *windows: Window, at: datetime | None = NOW, pool: str = "p", account: str | None = "a"
) -> Reading:
    return Reading(
        pool=pool, source="live", observed_at=at, windows=tuple(windows), account=account
    )


def account(pool: str = "p", identity: str | None = "a", **more: Any) -> Account:
    return Account(pool=pool, provider="fake", identity=identity, **more)


class Clock:
    def __init__(self, now: datetime = NOW) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, **delta: float) -> None:
        self.now += timedelta(**delta)


class FakeProvider:
    """Only what the meter service uses of a provider: its connector and ``read_meter``."""

    def __init__(
        self, answer: Callable[[Account, datetime], Reading | None], **connector: Any
    ) -> None:
        self.connector = Connector(name="fake", command="fake", **connector)
        self._answer = answer
        self.calls: list[str] = []

    def read_meter(self, account: Account, env: Mapping[str, str], now: datetime) -> Reading | None:
        self.calls.append(account.pool)
        return self._answer(account, now)
