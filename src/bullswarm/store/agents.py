"""Live assignments: who waits, who runs, who owns it, and who asked for its end."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from bullswarm.errors import BullswarmError, UsageError
from bullswarm.routing.types import Durations, Health, Work
from bullswarm.store.base import Part, utcnow
from bullswarm.store.db import Database, stamp
from bullswarm.store.ended import Ended, EndedWork
from bullswarm.store.process import alive
from bullswarm.store.records import short_id

AgentState = Literal["waiting", "held", "starting", "running"]
LINE: tuple[AgentState, ...] = ("waiting", "held")
INFLIGHT: tuple[AgentState, ...] = ("starting", "running")

LOST = "lost"
"""The failure kind of work that ended while nobody watched: its outcome is unknown."""


class Agent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One agent, from the moment it asks for a pool until it ends.

    ``owner_pid`` and ``owner_started`` are the process that watches it (``store.me()``), ``pid``
    and ``pid_started`` the worker. ``pool`` is None until one was picked. ``started_at`` is set as
    it is placed. ``until`` and ``why`` say what held work waits for. ``request`` is JSON of the
    request, its policy and admission, so that any process can serve the line. ``cancel`` is 0 for
    go on, 1 for end it, 2 for kill it. Higher ``priority`` is served first. ``ran_minutes`` is how
    long an earlier attempt at it ran before a limit cut it off.
    """

    id: str
    run_id: str
    lane: str
    state: AgentState
    owner_pid: int
    owner_started: float
    queued_at: datetime
    step_id: str | None = None
    pool: str | None = None
    model: str | None = None
    pid: int | None = None
    pid_started: float | None = None
    started_at: datetime | None = None
    cwd: str = ""
    purpose: str = ""
    priority: int = 0
    until: datetime | None = None
    why: str = ""
    request: dict[str, Any] | None = None
    cancel: int = 0
    ran_minutes: float = 0.0

    @property
    def began(self) -> datetime:
        """When it was placed on its pool."""
        return self.started_at or self.queued_at


class Agents(Part):
    """The agents of all processes. Rows of dead processes are pruned whenever agents are listed."""

    def __init__(self, db: Database, now: Callable[[], datetime] = utcnow) -> None:
        super().__init__(db, now)
        self._ended = Ended(db, now)

    def add(self, agent: Agent) -> None:
        """Register an agent, or take over one whose owner is gone. Raises ``BullswarmError`` where
        another live process owns it: nothing is ever started twice."""
        with self.exclusive():
            known = self.agent(agent.id)
            if known is not None:
                same = (known.owner_pid, known.owner_started) == (
                    agent.owner_pid,
                    agent.owner_started,
                )
                if not same and alive(known.owner_pid, known.owner_started):
                    raise BullswarmError(
                        f"agent {agent.id} already belongs to process {known.owner_pid}, which is "
                        "alive; let it finish, or cancel it"
                    )
                agent = msgspec.structs.replace(agent, cancel=max(agent.cancel, known.cancel))
            self._put(agent)

    def change(self, id: str, **fields: Any) -> Agent | None:
        """Set fields of an agent and give it back, or None where there is none of that id. Raises
        ``TypeError`` for a field that agents don't have."""
        with self.exclusive():
            agent = self.agent(id)
            if agent is None:
                return None
            agent = msgspec.structs.replace(agent, **fields)
            self._put(agent)
            return agent

    def agent(self, id: str) -> Agent | None:
        """The agent of that id, dead or alive."""
        rows = self.db.execute("select body from agents where id = ?", (id,))
        return self.unpack(rows[0][0], Agent) if rows else None

    def agents(self) -> tuple[Agent, ...]:
        """Every live agent, oldest first."""
        self.prune()
        return self._all()

    def line(self) -> tuple[Agent, ...]:
        """Who waits or is held, in serving order: higher priority first, then who asked first."""
        queue = [agent for agent in self.agents() if agent.state in LINE]
        return tuple(sorted(queue, key=lambda a: (-a.priority, a.queued_at, a.id)))

    def drop(self, id: str) -> bool:
        """Forget an agent that never started (its work went elsewhere). False where there is
        none."""
        with self.exclusive():
            known = bool(self.db.execute("select 1 from agents where id = ?", (id,)))
            self.db.execute("delete from agents where id = ?", (id,))
            self.changed()
            return known

    def end(
        self,
        id: str,
        ended_at: datetime,
        ok: bool | None,
        failure_kind: str | None = None,
        wall_s: float | None = None,
    ) -> bool:
        """The agent is over. One that was placed on a pool is kept as ended work; ``wall_s`` None
        means the time since it was placed. Ends work that was already given up as lost, too. False
        where there is no such agent."""
        with self.exclusive():
            agent = self.agent(id)
            if agent is None:
                return self._ended.settle(id, ended_at, ok, failure_kind, wall_s)
            self.db.execute("delete from agents where id = ?", (id,))
            self.changed()
            if agent.pool is not None and agent.started_at is not None:
                wall = wall_s
                if wall is None:
                    wall = max(0.0, (ended_at - agent.started_at).total_seconds())
                self._ended.put(
                    Work(
                        id=id,
                        pool=agent.pool,
                        lane=agent.lane,
                        model=agent.model,
                        started_at=agent.started_at,
                        ended_at=ended_at,
                    ),
                    run_id=agent.run_id,
                    ok=ok,
                    failure_kind=failure_kind,
                    wall_s=wall,
                )
            return True

    def work(self, since: datetime | None = None) -> tuple[Work, ...]:
        """Agents in flight, and those that ended at or after ``since`` (None: all that are
        kept)."""
        inflight = tuple(
            Work(
                id=a.id,
                pool=a.pool,
                lane=a.lane,
                model=a.model,
                started_at=a.began,
                ran_minutes=a.ran_minutes,
            )
            for a in self.agents()
            if a.state in INFLIGHT and a.pool is not None
        )
        return inflight + self._ended.since(since)

    def outcomes(self, since: datetime | None = None) -> tuple[EndedWork, ...]:
        """Attempts that ended at or after ``since`` with what came of them, by their start; None
        means all that is kept."""
        return self._ended.outcomes(since)

    def cut_off_minutes(self, piece: str) -> float:
        """How long the longest attempt at a piece of work ran before a limit cut it off; 0 where
        none was. Attempts of a piece have ids that begin with it and a dot."""
        return self._ended.cut_off_minutes(piece)

    def durations(self, limit: int = 200) -> tuple[Durations, ...]:
        """Minutes of work that ran its whole course, by pool and lane: the newest ``limit`` each,
        oldest first."""
        return self._ended.durations(limit)

    def health(self, since: datetime) -> dict[str, Health]:
        """Attempts, errors and the median seconds of successes, by pool, of work that ended at or
        after ``since``. A spent quota is no error; what was cancelled or lost is no attempt."""
        return self._ended.health(since)

    def prune(self) -> tuple[str, ...]:
        """Remove what dead processes left and give the ids. An agent stays while its owner or its
        worker lives: a worker without an owner can be watched again. Work that had started is kept
        as ended with an unknown outcome."""
        dead = [agent.id for agent in self._all() if _is_dead(agent)]
        if not dead:
            return ()
        gone = []
        with self.exclusive():
            for id in dead:
                agent = self.agent(id)
                # Somebody may have taken it over since it was read.
                if agent is not None and _is_dead(agent):
                    self.end(id, self.now(), None, LOST)
                    gone.append(id)
        return tuple(gone)

    def cancel(self, target: str, level: int = 1) -> tuple[str, ...]:
        """Ask for the end of an agent, or of a run with all its agents: by id, short id or a prefix
        that fits one only. Gives the ids of the agents that are asked, or the run's own id where
        none of its agents is there now; () where nothing fits. A level is never lowered. Raises
        ``UsageError`` for a prefix that fits several."""
        with self.exclusive():
            agents = self._all()
            exact = [agent for agent in agents if agent.id == target]
            run = None if exact else self._one_run(target, agents)
            chosen = exact
            if run is not None:
                chosen = [agent for agent in agents if agent.run_id == run]
                self.db.execute(
                    "insert into cancels values (?, ?, ?) on conflict (run_id) do update set"
                    " level = max(level, excluded.level), at = excluded.at",
                    (run, level, stamp(self.now())),
                )
            elif not exact:
                chosen = [agent for agent in agents if agent.id.startswith(target)]
                _refuse_several(target, [agent.id for agent in chosen], "agents")
            for agent in chosen:
                self.change(agent.id, cancel=max(level, agent.cancel))
            self.changed()
        return tuple(a.id for a in chosen) or ((run,) if run is not None else ())

    def cancel_level(self, id: str) -> int:
        """How strongly an agent, or a run, is asked to end: 0 not at all, 1 end it, 2 kill it. An
        agent that was added after its run was cancelled is asked as well."""
        agent = self.agent(id)
        run = id if agent is None else agent.run_id
        rows = self.db.execute("select level from cancels where run_id = ?", (run,))
        return max(rows[0][0] if rows else 0, agent.cancel if agent is not None else 0)

    def _one_run(self, target: str, agents: Sequence[Agent]) -> str | None:
        if not target:
            return None
        rows = self.db.execute("select run_id from runs where state = 'running'")
        known = dict.fromkeys([agent.run_id for agent in agents] + [row[0] for row in rows])
        if target in known:
            return target
        fits = [run for run in known if short_id(run) == target] or [
            run for run in known if run.startswith(target) or short_id(run).startswith(target)
        ]
        _refuse_several(target, fits, "runs")
        return fits[0] if fits else None

    def _all(self) -> tuple[Agent, ...]:
        agents = [self.unpack(row[0], Agent) for row in self.db.execute("select body from agents")]
        return tuple(sorted(agents, key=lambda a: (a.queued_at, a.id)))

    def _put(self, agent: Agent) -> None:
        self.db.execute(
            "insert or replace into agents values (?, ?, ?, ?)",
            (agent.id, agent.run_id, agent.state, msgspec.json.encode(agent)),
        )


def _is_dead(agent: Agent) -> bool:
    return not alive(agent.owner_pid, agent.owner_started) and not (
        agent.pid is not None and alive(agent.pid, agent.pid_started)
    )


def _refuse_several(target: str, fits: Sequence[str], what: str) -> None:
    if len(fits) > 1:
        shown = ", ".join(sorted(fits)[:8]) + (", ..." if len(fits) > 8 else "")
        raise UsageError(f"{target!r} fits several {what}: {shown}; give more of the id")
