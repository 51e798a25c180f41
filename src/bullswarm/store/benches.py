"""Benches: which pool, or model family of a pool, is out until when, and how sure that is.

The rules are those of the routing page's two quarantine sections and of the design.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from bullswarm.routing.types import Quarantine
from bullswarm.store.agents import INFLIGHT, Agent, Agents
from bullswarm.store.base import utcnow
from bullswarm.store.bench_rows import Bench, BenchEvent, BenchRows
from bullswarm.store.db import Database

OWN_WORD = ("event", "text", "notice", "provider")
"""Sources that are the provider's own word about this very pool."""

SIBLING = "sibling"
LONGEST_GUESS = timedelta(hours=24)
PROBE = timedelta(minutes=10)
FORGET = timedelta(days=2)
"""An expired bench that nobody tried again says nothing after this."""


class Benches(Agents):
    """The benches of all pools: one for each pool, model family and kind. Built on the agents,
    because whoever tries a pool out is one of them."""

    def __init__(self, db: Database, now: Callable[[], datetime] = utcnow) -> None:
        super().__init__(db, now)
        self._benches = BenchRows(db, now)

    def bench(
        self, q: Quarantine, *, source: str | None = None, guess: bool = False, cut: bool = False
    ) -> Quarantine:
        """Bench a pool (or a model family of it) and give back the bench that now holds.

        While one is active the later deadline wins, except that a second usage limit that the
        provider itself put a time on replaces the first: another window binds now. ``guess``: the
        deadline is ours; each one in a row without a success between doubles, up to 24 hours (an
        auth bench stays flat). ``cut``: a named deadline was cut to the pool's longest window.
        """
        with self.exclusive():
            now = self.now()
            since = q.since or now
            said = source or q.source
            old = self._benches.find(q.pool, q.family, q.kind)
            strikes = old.strikes if old is not None and now - old.until < FORGET else 0
            until = q.until
            if old is not None and old.until > now:
                replaces = q.kind == "quota" and said in OWN_WORD and not guess and until > now
                if old.until >= until and not replaces:
                    return old.quarantine
            elif guess:
                # Only after the last one is over: many agents that meet one limit are one strike.
                strikes += 1
                if q.kind != "auth":
                    until = since + _doubled(until - since, strikes)
            held = msgspec.structs.replace(q, until=until, since=since, source=said)
            self._benches.put(Bench(quarantine=held, guess=guess, cut=cut, strikes=strikes))
            self._benches.log("benched", held, held.reason, strikes)
            return held

    def siblings(self, pool: str, group_members: Iterable[str], why: str) -> tuple[str, ...]:
        """Bench every other pool of a credential group on the deadline of ``pool``'s own auth
        bench, and give the names of those whose bench it set. A later deadline stands. Nothing
        where ``pool`` has no active auth bench: a quota never spreads."""
        benched = []
        with self.exclusive():
            own = self._benches.find(pool, None, "auth")
            if own is None or own.until <= self.now():
                return ()
            for member in dict.fromkeys(group_members):
                if member == pool:
                    continue
                borrowed = Quarantine(
                    pool=member,
                    kind="auth",
                    until=own.until,
                    reason=f"sibling of {pool}: {why}",
                    source=SIBLING,
                )
                if self.bench(borrowed) == msgspec.structs.replace(borrowed, since=self.now()):
                    benched.append(member)
        return tuple(benched)

    def quarantines(self, now: datetime | None = None) -> tuple[Quarantine, ...]:
        """The active benches, and a ``probe`` for each pool that somebody is trying out: its last
        bench was a guess or was cut and is over, and the first agent that started on it since is
        still in flight, for ten minutes at most. A success forgets the bench, and with it the
        probe."""
        now = now or self.now()
        benches = self._benches.all()
        active = [bench.quarantine for bench in benches if bench.until > now]
        taken = {(q.pool, q.family) for q in active}
        unsure = [
            b
            for b in benches
            if now - FORGET < b.until <= now
            and (b.guess or b.cut)
            and (b.quarantine.pool, b.quarantine.family) not in taken
        ]
        if not unsure:
            return tuple(active)
        agents = [a for a in self.agents() if a.state in INFLIGHT]
        probes: dict[tuple[str, str | None], Quarantine] = {}
        for bench in unsure:
            probe = _probe(bench, agents)
            if probe is not None and probe.until > now:
                probes[(probe.pool, probe.family)] = probe
        return (*active, *probes.values())

    def release(self, pool: str, family: str | None = None) -> int:
        """Lift a pool's benches by hand and forget its strikes; with ``family`` only that model
        family's. Gives the number of active benches lifted."""
        with self.exclusive():
            now = self.now()
            lifted = 0
            for bench in self._benches.of(pool):
                q = bench.quarantine
                if family is not None and q.family != family:
                    continue
                self._benches.delete(q)
                if bench.until > now:
                    lifted += 1
                    self._benches.log("released", q, "by hand", 0)
            self.changed()
            return lifted

    def release_early(self, pool: str, reason: str, family: str | None = None) -> int:
        """End a pool's active quota benches because a fresh reading shows room; with ``family``
        only that model family's. Strikes stay: a limit that comes back is the next in a row. Gives
        the number of benches ended."""
        with self.exclusive():
            now = self.now()
            ended = 0
            for bench in self._benches.of(pool):
                q = bench.quarantine
                wanted = q.kind == "quota" and (family is None or q.family == family)
                if not wanted or bench.until <= now:
                    continue
                over = msgspec.structs.replace(q, until=now)
                self._benches.put(
                    Bench(quarantine=over, guess=False, cut=False, strikes=bench.strikes)
                )
                self._benches.log("released-early", q, reason, bench.strikes)
                ended += 1
            self.changed()
            return ended

    def succeeded(self, pool: str, model: str | None = None) -> None:
        """An agent on the pool succeeded: its expired benches and its strikes are forgotten. With
        ``model``, benches of a model family that the model is not of are left alone."""
        with self.exclusive():
            now = self.now()
            for bench in self._benches.of(pool):
                q = bench.quarantine
                if q.family is not None and model is not None and not _is_of(model, q.family):
                    continue
                if bench.until <= now:
                    self._benches.delete(q)
                elif bench.strikes:
                    self._benches.put(msgspec.structs.replace(bench, strikes=0))

    def bench_history(self, pool: str, limit: int = 50) -> tuple[BenchEvent, ...]:
        """What happened to the pool's benches, newest first."""
        return self._benches.history(pool, limit)


def _doubled(length: timedelta, strikes: int) -> timedelta:
    longest = max(length, LONGEST_GUESS)
    factor: int = 2 ** min(strikes - 1, 16)
    return min(length * factor, longest)


def _is_of(model: str, family: str) -> bool:
    return family.lower() in model.lower()


def _probe(bench: Bench, agents: Sequence[Agent]) -> Quarantine | None:
    q = bench.quarantine
    starts = [
        agent.began
        for agent in agents
        if agent.pool == q.pool
        and agent.began >= bench.until
        and (q.family is None or agent.model is None or _is_of(agent.model, q.family))
    ]
    if not starts:
        return None
    return Quarantine(
        pool=q.pool,
        kind="probe",
        until=min(starts) + PROBE,
        reason=f"one agent is trying the pool out after: {q.reason}",
        source="probe",
        since=min(starts),
        family=q.family,
    )
