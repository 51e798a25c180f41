"""Who else worked in a folder meanwhile: what changed there may be theirs."""

from __future__ import annotations

import os
from datetime import datetime

from bullswarm.judge.gates import CHANGING_LANES
from bullswarm.judge.types import Changes
from bullswarm.runs.app import App
from bullswarm.runs.types import AttemptSpec
from bullswarm.store.agents import INFLIGHT
from bullswarm.store.records import short_id

MAX_NAMED = 4


def company_note(
    app: App, spec: AttemptSpec, changes: Changes | None, since: datetime
) -> str | None:
    """A note where other agents could edit the attempt's folder at any time after ``since``, and
    something changed in it; else None. Two looks at a folder can't tell whose a change is."""
    if spec.lane not in CHANGING_LANES or changes is None or not changes.any:
        return None
    others = [run for run in _others(app, spec, since) if run]
    if not others:
        return None
    shown = ", ".join(others[:MAX_NAMED])
    more = f" and {len(others) - MAX_NAMED} more" if len(others) > MAX_NAMED else ""
    return f"in this folder meanwhile: {shown}{more}; what changed may be theirs"


def _others(app: App, spec: AttemptSpec, since: datetime) -> list[str]:
    folder = os.path.realpath(spec.cwd)
    found = {
        agent.run_id: f"agent {agent.id}" if agent.step_id else f"run {short_id(agent.run_id)}"
        for agent in app.store.agents()
        if agent.id != spec.attempt_id
        and agent.state in INFLIGHT
        and agent.lane in CHANGING_LANES
        and os.path.realpath(agent.cwd) == folder
    }
    for ended in app.store.outcomes(since):
        if ended.run_id in found or ended.work.lane not in CHANGING_LANES:
            continue
        if ended.run_id == spec.run_id:
            continue
        record = app.store.run(ended.run_id)
        # Where a step of a workflow ran is not kept: it may have had a tree of its own.
        if record and record.kind == "run" and os.path.realpath(record.cwd) == folder:
            found[ended.run_id] = f"run {record.short_id}"
    return sorted(found.values())
