"""Work that is over: what rates, expected durations and health are computed from."""

from __future__ import annotations

from datetime import datetime

import msgspec

from bullswarm.routing.types import Durations, Health, Work
from bullswarm.store.base import Part
from bullswarm.store.db import moment, stamp

KEEP = 20_000

ERRORS = ("provider", "process", "stalled", "throttle", "auth")
"""Failures that speak against a pool. A spent quota does not: it is what quotas do."""

FULL_LENGTH = ("not-produced", "schema")
"""Failures of work that ran its whole course, so its duration is as good as a success's."""

_UNTRIED = ("cancelled", "depth", "unavailable", "lost")


class EndedWork(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One attempt that is over, with its outcome. ``ok`` None is unknown; ``wall_s`` is seconds."""

    work: Work
    run_id: str
    ok: bool | None
    failure_kind: str | None
    wall_s: float


class Ended(Part):
    """The newest 20,000 pieces of work that are over."""

    def put(
        self,
        work: Work,
        *,
        run_id: str,
        ok: bool | None,
        failure_kind: str | None,
        wall_s: float,
    ) -> None:
        """Keep a piece of work; one of the same id is replaced."""
        assert work.ended_at is not None
        with self.exclusive():
            self.db.execute(
                "insert or replace into ended"
                " (id, run_id, pool, lane, model, started_at, ended_at, ok, failure_kind, wall_s)"
                " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    work.id,
                    run_id,
                    work.pool,
                    work.lane,
                    work.model,
                    stamp(work.started_at),
                    stamp(work.ended_at),
                    ok,
                    failure_kind,
                    wall_s,
                ),
            )
            self.db.execute("delete from ended where n <= (select max(n) from ended) - ?", (KEEP,))

    def settle(
        self,
        id: str,
        ended_at: datetime,
        ok: bool | None,
        failure_kind: str | None,
        wall_s: float | None,
    ) -> bool:
        """Give work that was kept as lost the outcome that is known now. False where there is no
        such work."""
        with self.exclusive():
            if not self.db.execute(
                "select 1 from ended where id = ? and failure_kind = 'lost'", (id,)
            ):
                return False
            self.db.execute(
                "update ended set ended_at = ?, ok = ?, failure_kind = ?,"
                " wall_s = coalesce(?, (? - started_at) / 1e6) where id = ?",
                (stamp(ended_at), ok, failure_kind, wall_s, stamp(ended_at), id),
            )
            return True

    def since(self, since: datetime | None) -> tuple[Work, ...]:
        """Work that ended at or after ``since``, oldest first; None means all that is kept."""
        rows = self.db.execute(
            "select id, pool, lane, model, started_at, ended_at from ended"
            " where ended_at >= ? order by ended_at, n",
            (stamp(since) if since is not None else 0,),
        )
        return tuple(_work(*row) for row in rows)

    def outcomes(self, since: datetime | None) -> tuple[EndedWork, ...]:
        """Attempts that ended at or after ``since`` with what came of them, by their start; None
        means all that is kept."""
        rows = self.db.execute(
            "select id, pool, lane, model, started_at, ended_at, run_id, ok, failure_kind, wall_s"
            " from ended where ended_at >= ? order by started_at, n",
            (stamp(since) if since is not None else 0,),
        )
        return tuple(
            EndedWork(
                work=_work(*work),
                run_id=run_id,
                ok=None if ok is None else bool(ok),
                failure_kind=kind,
                wall_s=wall_s,
            )
            for *work, run_id, ok, kind, wall_s in rows
        )

    def cut_off_minutes(self, piece: str) -> float:
        """How long the longest attempt at a piece of work ran before a limit cut it off; 0 where
        none was. Attempts of a piece have ids that begin with it and a dot."""
        rows = self.db.execute(
            "select max(wall_s) from ended where failure_kind = 'quota'"
            " and substr(id, 1, length(?1) + 1) = ?1 || '.'",
            (piece,),
        )
        return (rows[0][0] or 0.0) / 60

    def durations(self, limit: int = 200) -> tuple[Durations, ...]:
        """Minutes of work that ran its whole course, by pool and lane: the newest ``limit`` each,
        oldest first."""
        marks = ", ".join("?" * len(FULL_LENGTH))
        rows = self.db.execute(
            "select pool, lane, wall_s from (select pool, lane, wall_s, n, row_number() over"
            " (partition by pool, lane order by n desc) as nth from ended"
            f" where ok = 1 or failure_kind in ({marks})) where nth <= ? order by pool, lane, n",
            (*FULL_LENGTH, limit),
        )
        found: dict[tuple[str, str], list[float]] = {}
        for pool, lane, wall_s in rows:
            found.setdefault((pool, lane), []).append(wall_s / 60)
        return tuple(
            Durations(pool=pool, lane=lane, minutes=tuple(minutes))
            for (pool, lane), minutes in found.items()
        )

    def health(self, since: datetime) -> dict[str, Health]:
        """Attempts, errors and the median seconds of successes, by pool, of work that ended at or
        after ``since``. What was cancelled or lost is no attempt."""
        rows = self.db.execute(
            "select pool, ok, failure_kind, wall_s from ended where ended_at >= ?", (stamp(since),)
        )
        found: dict[str, list[tuple[bool, bool, float]]] = {}
        for pool, ok, kind, wall_s in rows:
            if kind not in _UNTRIED:
                found.setdefault(pool, []).append((bool(ok), kind in ERRORS, wall_s))
        return {
            pool: Health(
                attempts=len(tried),
                errors=sum(bad for _, bad, _ in tried),
                median_seconds=_median([wall for ok, _, wall in tried if ok]),
            )
            for pool, tried in found.items()
        }


def _median(values: list[float]) -> float | None:
    if not values:
        return None
    ordered = sorted(values)
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    return (ordered[half - 1] + ordered[half]) / 2


def _work(id: str, pool: str, lane: str, model: str | None, started: int, ended: int) -> Work:
    return Work(
        id=id,
        pool=pool,
        lane=lane,
        model=model,
        started_at=moment(started),
        ended_at=moment(ended),
    )
