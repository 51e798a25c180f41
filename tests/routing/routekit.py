"""Short builders of fleets for the routing tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from bullswarm.routing import route
from bullswarm.routing.types import (
    Candidate,
    Config,
    Decision,
    Durations,
    Policy,
    Pool,
    Quarantine,
    Rate,
    Reading,
    Request,
    Snapshot,
    Window,
    WindowKind,
    Work,
)

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
WEEK = 10080.0
BUILD = Request(lane="build")


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def weekly(used: float | None, elapsed: float | None = 50.0, family: str | None = None) -> Window:
    """A week that is so many percent over."""
    reset = None if elapsed is None else at(WEEK * (1 - elapsed / 100))
    return Window(kind="weekly", minutes=WEEK, used_pct=used, resets_at=reset, family=family)


def five(used: float | None, left: float | None = 150.0) -> Window:
    """A 5-hour window with so many minutes left."""
    reset = None if left is None else at(left)
    return Window(kind="five_hour", minutes=300.0, used_pct=used, resets_at=reset)


def pool(name: str, *windows: Window, seen: float = 0.0, **more: Any) -> Pool:
    """A pool whose windows were read ``seen`` minutes ago; none at all means no reading."""
    more.setdefault("provider", name.split(":")[0])
    reading = Reading(
        pool=name,
        source="live" if windows else "none",
        observed_at=at(-seen) if windows else None,
        windows=windows,
    )
    return Pool(name=name, reading=reading, **more)


def paced(name: str, used: float = 30.0, elapsed: float = 50.0, **more: Any) -> Pool:
    """A pool with a weekly window and an empty 5-hour one."""
    return pool(name, five(0.0), weekly(used, elapsed), **more)


def rates(five_hour: float | None = None, week: float | None = None) -> tuple[Rate, ...]:
    kinds: tuple[tuple[WindowKind, float | None], ...] = (
        ("five_hour", five_hour),
        ("weekly", week),
    )
    return tuple(Rate(kind=kind, per_minute=rate, worker_minutes=60) for kind, rate in kinds)


def work(name: str, started: float = 0.0, ended: float | None = None, n: int = 1) -> Work:
    return Work(
        id=f"{name}-{started}-{n}",
        pool=name,
        lane="build",
        started_at=at(-started),
        ended_at=None if ended is None else at(-ended),
    )


def busy(name: str, count: int) -> tuple[Work, ...]:
    return tuple(work(name, n=n) for n in range(count))


def bench(name: str, minutes: float = 60.0, **more: Any) -> Quarantine:
    more.setdefault("kind", "quota")
    return Quarantine(pool=name, until=at(minutes), reason="session limit", **more)


def lasting(*minutes: float, pool: str = "*", lane: str = "*") -> Durations:
    return Durations(pool=pool, lane=lane, minutes=minutes)


def snap(*pools: Pool, **more: Any) -> Snapshot:
    config = more.pop("config", None) or Config()
    return Snapshot(now=NOW, pools=pools, config=config, **more)


def pick(
    *pools: Pool, request: Request = BUILD, policy: Policy | None = None, **more: Any
) -> Decision:
    return route(snap(*pools, **more), request, policy or Policy())


def row(decision: Decision, name: str) -> Candidate:
    return next(c for c in decision.candidates if c.pool == name)
