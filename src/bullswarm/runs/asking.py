"""What a task asks for: what can't work is refused, the rest becomes a request to the router."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from bullswarm.errors import UsageError
from bullswarm.judge.schema import Schema, load_schema
from bullswarm.routing import route
from bullswarm.routing.types import Decision, Request
from bullswarm.runs.after import Next, Tried
from bullswarm.runs.app import App
from bullswarm.runs.placing import Want, decide
from bullswarm.runs.snapshot import read_pools, take_snapshot
from bullswarm.runs.types import Task
from bullswarm.store import routing_policy

PURPOSE_CHARS = 80


def dry_run(app: App, task: Task) -> Decision:
    """The pick as it would be now, with its forecast. Registers and starts nothing."""
    check(app, task)
    return decide(app, want_of(app, task, "dry-run", "dry-run", (), Next(action="elsewhere")))[1]


def pick(app: App, task: Task) -> Decision:
    """Who would get the task now if it had to go somewhere: caps and holds aside. Registers and
    starts nothing. Raises ``UsageError`` as ``run_task`` does."""
    check(app, task)
    want = want_of(app, task, "pick", "pick", (), Next(action="elsewhere"))
    return route(take_snapshot(app, read_pools(app)), want.request, want.policy)


def check(app: App, task: Task) -> Schema | None:
    """Refuse what can't work before anything starts. Raises ``UsageError`` naming the field."""
    if not Path(task.cwd).is_dir():
        raise UsageError(f"cwd: {task.cwd} is not a folder")
    try:
        task.cwd.encode()
    except UnicodeEncodeError:
        raise UsageError(f"cwd: {task.cwd!a} is not a name in UTF-8, as records are") from None
    if task.pool is not None:
        app.pool(task.pool)
    for field in ("use", "avoid"):
        for name in getattr(task, field):
            app.resolve(name, field)
    if task.permission_mode is not None and task.pool is None and not _one_vendor(app, task):
        raise UsageError(
            "permission mode: its words differ from vendor to vendor, so pin a pool (--pool), "
            "or leave only one provider to choose from (--use)"
        )
    for path in task.deliverables:
        folder = Path(task.cwd).resolve()
        if not (folder / path).resolve().is_relative_to(folder):
            raise UsageError(f"deliverable: {path} is outside the working folder")
    return load_schema(task.answer_schema) if task.answer_schema else None


def incumbency(task: Task) -> str:
    """Who does this work already: the pool that last did this lane in this folder."""
    return f"{task.lane}:{os.path.realpath(task.cwd)}"


def purpose_of(prompt: str) -> str:
    first = next((line.strip() for line in prompt.splitlines() if line.strip()), "")
    return first if len(first) <= PURPOSE_CHARS else first[: PURPOSE_CHARS - 1] + "…"


def _one_vendor(app: App, task: Task) -> bool:
    if not task.use:
        return False
    names = {app.resolve(name, "use") for name in task.use}
    providers = {
        account.provider
        for pool, (_, account) in app.accounts.items()
        if names & {pool, account.provider}
    }
    return len(providers) == 1


def want_of(
    app: App,
    task: Task,
    run_id: str,
    agent_id: str,
    tried: Sequence[Tried],
    following: Next,
) -> Want:
    """What the next attempt asks the router for, after those that were tried."""
    now = app.now()
    again = following.action == "same" and bool(tried)
    mode = task.on_limit or app.settings.limits.mode
    request = Request(
        lane=task.lane,
        capabilities=task.capabilities,
        model=task.model,
        effort=task.effort,
        domain=task.domain,
        pin=tried[-1].pool if again else task.pool,
        use=tuple(app.resolve(name, "use") for name in task.use),
        avoid=tuple(app.resolve(name, "avoid") for name in task.avoid),
        exclude=following.exclude if mode != "wait" else _not_limited(tried, following),
        exclude_groups=following.exclude_groups,
        caller=task.caller,
        incumbent=app.store.incumbent(incumbency(task)),
        waiting_since=now,
    )
    return Want(
        agent_id=agent_id,
        run_id=run_id,
        request=request,
        policy=app.known(task.policy or routing_policy(app.settings)),
        admission=app.admission(task.hold, task.patience_minutes),
        cwd=task.cwd,
        purpose=purpose_of(task.prompt),
        priority=task.priority,
        wait_for_reset=mode == "wait",
        wait_margin_s=app.settings.limits.wait_margin_seconds,
        fresh=following.reread,
        not_before=now + timedelta(seconds=following.wait_s) if following.wait_s else None,
    )


def _not_limited(tried: Sequence[Tried], following: Next) -> tuple[str, ...]:
    """In ``wait`` mode a pool that hit its limit is only benched: once its reset has passed it is a
    candidate again, and its session can be gone on with."""
    limited = {t.pool for t in tried if t.failure_kind == "quota"}
    return tuple(pool for pool in following.exclude if pool not in limited)
