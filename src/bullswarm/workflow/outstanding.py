"""What a run still wants done: asked for again when a new process carries it on."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from bullswarm.workflow.commands import Command, Finish, Merge, SetTimer, StopWorker
from bullswarm.workflow.completion import verified, why_ended
from bullswarm.workflow.defaults import paths_of
from bullswarm.workflow.ending import timer_of
from bullswarm.workflow.launch import evidence_command, start_command
from bullswarm.workflow.state import RunState, find_step


def outstanding(state: RunState, live: Collection[str], at: datetime) -> list[Command]:
    """Every command whose answer has not come. ``live`` attempts are being watched already.

    A worker that is known to have started is only looked for (``reattach``); of one that was asked
    for nobody knows, so it is asked for by the same id, which can't start twice.
    """
    found: list[Command] = []
    for name, step in state.steps.items():
        last = step.last
        if step.status == "running" and last is not None:
            if last.id not in live:
                found.append(start_command(state, name, at, reattach=last.started))
            if last.stopping:
                found.append(StopWorker(step=name, attempt_id=last.id, level=last.stopping))
        elif step.status == "checking":
            found.append(evidence_command(state, name))
        elif step.status == "merging" and last is not None:
            paths = paths_of(find_step(state, name))
            found.append(Merge(step=name, attempt_id=last.id, deliverables=paths))
        elif step.status == "pending" and step.not_before is not None:
            found.append(SetTimer(timer=timer_of(step), at=step.not_before, why=step.why))
    if state.phase in ("completed", "partial", "cancelled"):
        found.append(finish_command(state))
    return found


def finish_command(state: RunState) -> Finish:
    """The end as a command; only for a run that has ended."""
    assert state.phase in ("completed", "partial", "cancelled")
    return Finish(
        state=state.phase,
        verified=state.phase == "completed" and verified(state),
        why=state.why or why_ended(state),
        limit=state.stopped_by,
    )
