"""When to start weekly windows that no work has started yet, so that resets spread over the week.

Accounts whose week begins with its first use and that are started together run out together and
come back together. Started one after the other, some account comes back every few hours. Pure, and
opt-in: an account that waits for its start is one that can't be used before.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from bullswarm.routing.types import Pool, Snapshot, Value
from bullswarm.routing.windows import running

WEEK = timedelta(days=7)


class Start(Value, frozen=True, kw_only=True):
    """Start ``pool`` at ``at`` (not before now, less than a week away): its week then resets at
    ``resets_at``. ``reason`` is a sentence for people."""

    pool: str
    at: datetime
    resets_at: datetime
    reason: str


def stagger(snapshot: Snapshot) -> tuple[Start, ...]:
    """A start for each usable weekly account without a running weekly window, the soonest first.

    Resets that are running stay where they are: each new one goes into the middle of the widest
    gap between them, so that no two schemes of the same number leave a smaller widest gap. The
    cheaper account starts sooner, then by name. An account whose meter shows no weekly window at
    all is left alone: nothing is known of it.
    """
    now = snapshot.now
    taken: list[timedelta] = []
    idle: list[Pool] = []
    for pool in snapshot.pools:
        if pool.pacing != "weekly" or not pool.enabled or pool.unavailable is not None:
            continue
        resets = [
            window.resets_at
            for window in running(pool.reading, now)
            if window.kind == "weekly" and window.family is None and window.resets_at is not None
        ]
        if resets:
            taken.append((max(resets) - now) % WEEK)
        elif _knows_its_week(pool) and not pool.paused:
            idle.append(pool)
    if not idle:
        return ()
    idle.sort(key=lambda pool: (pool.cost_rank, pool.name))
    offsets = _offsets(sorted(taken), len(idle))
    total = len(taken) + len(idle)
    return tuple(
        Start(
            pool=pool.name,
            at=now + offset,
            resets_at=now + offset + WEEK,
            reason=(
                f"its week starts with its first use; started then, the resets of {total} "
                f"accounts spread over the week"
                if total > 1
                else "its week starts with its first use, and it is the only account"
            ),
        )
        for pool, offset in zip(idle, offsets, strict=True)
    )


def _knows_its_week(pool: Pool) -> bool:
    reading = pool.reading
    return reading is not None and any(
        window.kind == "weekly" and window.family is None for window in reading.windows
    )


def _offsets(taken: list[timedelta], count: int) -> list[timedelta]:
    """``count`` points on the circle of a week, spread over the gaps that ``taken`` leaves; 0 is
    now."""
    if not taken:
        return [WEEK * i / count for i in range(count)]
    gaps = [
        (start, (taken[i + 1] if i + 1 < len(taken) else taken[0] + WEEK) - start, 0)
        for i, start in enumerate(taken)
    ]
    for _ in range(count):
        widest = max(range(len(gaps)), key=lambda i: (gaps[i][1] / (gaps[i][2] + 1), -i))
        start, length, inside = gaps[widest]
        gaps[widest] = (start, length, inside + 1)
    points = [
        (start + length * (i + 1) / (inside + 1)) % WEEK
        for start, length, inside in gaps
        for i in range(inside)
    ]
    return sorted(points)
