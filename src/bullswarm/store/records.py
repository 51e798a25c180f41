"""What is kept of every decision and every run, and who did which work last."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec

from bullswarm.errors import UsageError
from bullswarm.routing.types import Admission, Decision, Policy, Request, Snapshot
from bullswarm.store.base import Part
from bullswarm.store.db import moment, stamp

KEEP_DECISIONS = 2_000
INCUMBENT_FOR = timedelta(hours=24)
_FIRST = "abcdefghjkmnpqrstvwxyz"
_REST = _FIRST + "23456789"


class DecisionRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A decision with everything it depended on, so that it can be replayed to the same pick."""

    id: str
    run_id: str
    at: datetime
    snapshot: Snapshot
    request: Request
    policy: Policy
    decision: Decision
    admission: Admission | None = None


class RunRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One run or workflow. ``state`` is "running" until it is over, then "ok", "failed",
    "cancelled", "kept" (left to the caller) or what its kind needs; "lost" where its process died.
    ``owner_pid`` and ``owner_started`` are the process that carries it (``store.me()``)."""

    run_id: str
    short_id: str
    started_at: datetime
    kind: Literal["run", "workflow"] = "run"
    lane: str | None = None
    pool: str | None = None
    cwd: str = ""
    purpose: str = ""
    ended_at: datetime | None = None
    state: str = "running"
    verdict: dict[str, Any] | None = None
    folder: str = ""
    owner_pid: int | None = None
    owner_started: float | None = None


def short_id(run_id: str) -> str:
    """The six characters that people type for a run that ``new_run_id`` named."""
    return run_id[-6:]


class Records(Part):
    """Decisions (the newest 2,000), runs and incumbents."""

    def put_decision(self, record: DecisionRecord) -> None:
        """Keep a decision; one of the same id is replaced."""
        import zlib

        body = zlib.compress(msgspec.json.encode(record), 1)
        with self.exclusive():
            self.db.execute(
                "insert or replace into decisions (id, run_id, body) values (?, ?, ?)",
                (record.id, record.run_id, body),
            )
            self.db.execute(
                "delete from decisions where n <="
                " (select n from decisions order by n desc limit 1 offset ?)",
                (KEEP_DECISIONS,),
            )

    def decision(self, id: str) -> DecisionRecord | None:
        """The decision of that id, with the values it was made of."""
        rows = self.db.execute("select body from decisions where id = ?", (id,))
        return self._decision(rows[0][0]) if rows else None

    def decisions(self, run_id: str) -> tuple[DecisionRecord, ...]:
        """A run's decisions, oldest first."""
        rows = self.db.execute("select body from decisions where run_id = ? order by n", (run_id,))
        return tuple(self._decision(row[0]) for row in rows)

    def put_run(self, record: RunRecord) -> None:
        """Keep a run; what was known of the same run is replaced."""
        with self.exclusive():
            self.db.execute(
                "insert or replace into runs values (?, ?, ?, ?, ?)",
                (
                    record.run_id,
                    record.short_id,
                    record.state,
                    stamp(record.started_at),
                    msgspec.json.encode(record),
                ),
            )

    def _decision(self, body: Any) -> DecisionRecord:
        import zlib

        try:
            text = zlib.decompress(body)
        except (zlib.error, TypeError) as error:
            raise self.unreadable(error) from error
        return self.unpack(text, DecisionRecord)

    def delete_run(self, run_id: str) -> None:
        """Forget a run and its decisions."""
        with self.exclusive():
            self.db.execute("delete from runs where run_id = ?", (run_id,))
            self.db.execute("delete from decisions where run_id = ?", (run_id,))

    def run(self, id_or_prefix: str) -> RunRecord | None:
        """A run by its id, its short id, or a prefix of either; None where none fits. Raises
        ``UsageError`` that lists them where several fit."""
        if not id_or_prefix:
            return None
        for where in (
            "run_id = ?1",
            "short_id = ?1",
            "substr(run_id, 1, length(?1)) = ?1 or substr(short_id, 1, length(?1)) = ?1",
        ):
            rows = self.db.execute(
                f"select body from runs where {where} order by started_at desc limit 9",
                (id_or_prefix,),
            )
            if len(rows) == 1:
                return self.unpack(rows[0][0], RunRecord)
            if rows:
                raise UsageError(
                    _several(id_or_prefix, [self.unpack(row[0], RunRecord) for row in rows])
                )
        return None

    def runs(self, limit: int | None = 50) -> tuple[RunRecord, ...]:
        """The newest runs, newest first; None means all."""
        rows = self.db.execute(
            "select body from runs order by started_at desc, run_id desc limit ?",
            (-1 if limit is None else limit,),
        )
        return tuple(self.unpack(row[0], RunRecord) for row in rows)

    def running(self) -> tuple[RunRecord, ...]:
        """The runs that are not over, newest first."""
        rows = self.db.execute(
            "select body from runs where state = 'running' order by started_at desc, run_id desc"
        )
        return tuple(self.unpack(row[0], RunRecord) for row in rows)

    def new_run_id(self, now: datetime | None = None) -> str:
        """An id that sorts by time; its last six characters are no other stored run's."""
        when = (now or self.now()).astimezone(UTC)
        while True:
            short = _short()
            if not self.db.execute("select 1 from runs where short_id = ?", (short,)):
                return f"{when:%Y%m%d-%H%M%S}-{when.microsecond // 1000:03d}-{short}"

    def incumbent(self, key: str) -> str | None:
        """The pool that did this work last, within 24 hours."""
        rows = self.db.execute("select pool, at from incumbents where key = ?", (key,))
        if not rows or self.now() - moment(rows[0][1]) > INCUMBENT_FOR:
            return None
        pool: str = rows[0][0]
        return pool

    def set_incumbent(self, key: str, pool: str) -> None:
        """The pool does this work now."""
        with self.exclusive():
            now = self.now()
            self.db.execute("delete from incumbents where at < ?", (stamp(now - INCUMBENT_FOR),))
            self.db.execute(
                "insert or replace into incumbents values (?, ?, ?)", (key, pool, stamp(now))
            )


def _several(given: str, fits: Sequence[RunRecord]) -> str:
    lines = [f"{r.short_id} ({r.run_id}, {r.purpose or r.kind})" for r in fits[:8]]
    more = ", ..." if len(fits) > 8 else ""
    return f"{given!r} fits several runs: {', '.join(lines)}{more}; give more of the id"


def _short() -> str:
    # A letter first, so that a short id is never taken for the date a run id begins with.
    head, *tail = os.urandom(6)
    return _FIRST[head % len(_FIRST)] + "".join(_REST[b % len(_REST)] for b in tail)
