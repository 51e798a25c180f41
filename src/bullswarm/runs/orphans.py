"""Workers whose watcher is gone: named as such, and ended when they are cancelled.

A worker outlives the process that started it. A workflow's kernel finds it again; a single run has
nobody who would.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from bullswarm.runs.app import App
from bullswarm.runs.record import write_record
from bullswarm.store import Agent
from bullswarm.store.process import alive

GRACE_S = 5.0
"""After TERM, how long an orphan may take to leave."""


def is_orphan(agent: Agent) -> bool:
    """Whether the agent's worker runs on while the process that watched it is gone."""
    return (
        agent.pid is not None
        and not alive(agent.owner_pid, agent.owner_started)
        and alive(agent.pid, agent.pid_started)
    )


def words(agent: Agent) -> str:
    """What to say of an orphan."""
    return (
        f"nobody watches it: process {agent.owner_pid} is gone, worker {agent.pid} runs on; "
        f"end it with: bullswarm cancel {agent.id}"
    )


def end_orphans(app: App, ids: Collection[str], *, kill: bool = False) -> tuple[str, ...]:
    """End the orphans among these agents and close their records; nobody else would. Gives their
    ids. A workflow's worker is left to its kernel's record, which reads the end that it finds."""
    from bullswarm.dispatch import end_group
    from bullswarm.dispatch.types import Launch, Worker

    ended = []
    for agent in app.store.agents():
        if agent.id not in ids or not is_orphan(agent) or agent.pid is None:
            continue
        nothing = Launch(
            attempt_id=agent.id,
            argv=(),
            env={},
            cwd=agent.cwd,
            stdout="",
            stderr="",
            exit_file="",
            pid_file="",
        )
        worker = Worker(
            attempt_id=agent.id, pid=agent.pid, started=agent.pid_started or 0.0, launch=nothing
        )
        end_group(worker, 0.0 if kill else GRACE_S)
        ended.append(agent.id)
        record = app.store.run(agent.run_id)
        if record is None or record.kind != "run":
            continue
        app.store.end(agent.id, app.now(), None, "cancelled")
        if record.state == "running":
            closed = msgspec.structs.replace(record, state="cancelled", ended_at=app.now())
            app.store.put_run(closed)
            write_record(app.home, closed)
    return tuple(ended)
