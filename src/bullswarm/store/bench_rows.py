"""Benches as they are stored, and the log of what happened to them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from bullswarm.routing.types import Quarantine
from bullswarm.store.base import Part
from bullswarm.store.db import moment, stamp

_LOG = 5_000
_COLUMNS = "pool, family, kind, until, since, reason, source, guess, cut, strikes"

Happened = Literal["benched", "released", "released-early"]


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """One stored bench. ``guess``: nobody named its deadline. ``cut``: the named one was longer
    than any window of the pool. ``strikes`` counts guesses in a row with no success between."""

    quarantine: Quarantine
    guess: bool
    cut: bool
    strikes: int

    @property
    def until(self) -> datetime:
        return self.quarantine.until


class BenchEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One thing that happened to a pool's benches."""

    at: datetime
    event: Happened
    pool: str
    kind: str
    until: datetime
    reason: str
    source: str = ""
    family: str | None = None
    strikes: int = 0


class BenchRows(Part):
    """The tables of benches; their rules are elsewhere."""

    def find(self, pool: str, family: str | None, kind: str) -> Bench | None:
        found = [
            bench
            for bench in self.of(pool)
            if bench.quarantine.family == family and bench.quarantine.kind == kind
        ]
        return found[0] if found else None

    def of(self, pool: str) -> Sequence[Bench]:
        return [bench for bench in self.all() if bench.quarantine.pool == pool]

    def all(self) -> Sequence[Bench]:
        rows = self.db.execute(f"select {_COLUMNS} from benches order by pool, family, kind")
        return [
            Bench(
                quarantine=Quarantine(
                    pool=pool,
                    kind=kind,
                    until=moment(until),
                    reason=reason,
                    source=source,
                    since=moment(since),
                    family=family or None,
                ),
                guess=bool(guess),
                cut=bool(cut),
                strikes=strikes,
            )
            for pool, family, kind, until, since, reason, source, guess, cut, strikes in rows
        ]

    def put(self, bench: Bench) -> None:
        q = bench.quarantine
        assert q.since is not None
        self.db.execute(
            f"insert or replace into benches ({_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                q.pool,
                q.family or "",
                q.kind,
                stamp(q.until),
                stamp(q.since),
                q.reason,
                q.source,
                bench.guess,
                bench.cut,
                bench.strikes,
            ),
        )

    def delete(self, q: Quarantine) -> None:
        self.db.execute(
            "delete from benches where pool = ? and family = ? and kind = ?",
            (q.pool, q.family or "", q.kind),
        )

    def log(self, event: Happened, q: Quarantine, reason: str, strikes: int) -> None:
        self.db.execute(
            "insert into bench_log (at, event, pool, family, kind, until, reason, source, strikes)"
            " values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                stamp(self.now()),
                event,
                q.pool,
                q.family or "",
                q.kind,
                stamp(q.until),
                reason,
                q.source,
                strikes,
            ),
        )
        self.db.execute(
            "delete from bench_log where n <= (select max(n) from bench_log) - ?", (_LOG,)
        )

    def history(self, pool: str, limit: int) -> tuple[BenchEvent, ...]:
        """What happened to the pool's benches, newest first."""
        rows = self.db.execute(
            "select at, event, pool, kind, until, reason, source, family, strikes from bench_log"
            " where pool = ? order by n desc limit ?",
            (pool, limit),
        )
        return tuple(
            BenchEvent(
                at=moment(at),
                event=event,
                pool=name,
                kind=kind,
                until=moment(until),
                reason=reason,
                source=source,
                family=family or None,
                strikes=strikes,
            )
            for at, event, name, kind, until, reason, source, family, strikes in rows
        )
