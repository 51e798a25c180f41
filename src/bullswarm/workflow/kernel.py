"""The reducer: ``advance(state, event) -> (state, commands)``. No clock, file, process, network.

Design: everything that happens to a run is an event, everything that it wants done is a command.
The same events give the same state, and an event that comes twice changes nothing.

How a run ends: it is ``completed`` when every step passed, ``cancelled`` when the caller said so,
and ``partial`` when nothing can go on without the caller, or a limit stopped it. A partial run
stays steerable: rerun, accept and revise open it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from bullswarm.runs.after import LimitsMode
from bullswarm.workflow import ending, plan, steer
from bullswarm.workflow import events as ev
from bullswarm.workflow.commands import Command
from bullswarm.workflow.draft import Draft
from bullswarm.workflow.outstanding import outstanding
from bullswarm.workflow.program import Program
from bullswarm.workflow.schedule import settle
from bullswarm.workflow.state import ENDED, RunState

HOLD_S = 60.0
"""When a hold names no time, it is asked again after this long."""

Advanced = tuple[RunState, tuple[Command, ...]]


def start(
    program: Program,
    *,
    run_id: str,
    now: datetime,
    limits_mode: LimitsMode = "quarantine",
) -> Advanced:
    """A new run of a valid program, and its first commands. ``limits_mode`` is the home's setting;
    the program's ``onLimit`` wins. ``run_id`` goes into every attempt's id."""
    draft = Draft(plan.first_state(program, run_id, now, limits_mode), now)
    settle(draft)
    return draft.state(), tuple(draft.commands)


def advance(state: RunState, event: ev.Event) -> Advanced:
    """Take in one event. Never raises for what an event holds; a caller's event that can't be done
    is answered by a ``Reply`` that says why, and changes nothing else."""
    if event.id in state.seen:
        return state, ()
    # Clocks of several processes may disagree; the run's own never goes back.
    draft = Draft(state, max(event.at, state.at))
    _HANDLERS[type(event)](draft, event)
    if draft.base.phase not in ENDED:
        settle(draft)
    draft.change(seen={**state.seen, event.id: len(state.seen) + 1}, at=draft.at)
    return draft.state(), tuple(draft.commands)


def replay(first: RunState, events: Iterable[ev.Event]) -> RunState:
    """The state after all of ``events``."""
    for event in events:
        first, _ = advance(first, event)
    return first


def _started(draft: Draft, event: ev.AttemptStarted) -> None:
    attempt = draft.current(event.step, event.attempt_id)
    if attempt is None:
        return
    if draft.steps[event.step].status == "pending":
        # A hold that was overtaken by its own start.
        draft.put(event.step, status="running", not_before=None)
    draft.put_last(
        event.step,
        state="running",
        started=True,
        started_at=attempt.started_at or event.at,
        pool=event.pool,
        provider=event.provider,
        group=event.group,
        model=event.model,
    )
    draft.put(event.step, why=f"on {event.pool}")


def _held(draft: Draft, event: ev.Held) -> None:
    attempt = draft.current(event.step, event.attempt_id)
    if attempt is None or attempt.started or attempt.state != "asked":
        return
    until = event.until or draft.at + timedelta(seconds=HOLD_S)
    draft.put_last(event.step, state="held", held_until=until, held_why=event.why)
    if draft.base.phase == "cancelling":
        draft.put_last(event.step, state="ended", ok=False, ended_at=event.at, why="cancelled")
        draft.put(event.step, status="cancelled", why="cancelled")
        return
    if attempt.stopping:
        draft.put_last(event.step, stopping=0)
    ending.put_off(draft, event.step, until, event.why)


def _released(draft: Draft, event: ev.Released) -> None:
    if event.step is None:
        draft.poke = True
    elif event.step in draft.steps and draft.steps[event.step].status == "pending":
        last = draft.steps[event.step].last
        if last is not None and last.state == "held":
            draft.put(event.step, not_before=None)


def _timer(draft: Draft, event: ev.TimerFired) -> None:
    for name, found in draft.steps.items():
        if found.status == "pending" and ending.timer_of(found) == event.timer:
            draft.put(name, not_before=None)


def _restarted(draft: Draft, event: ev.KernelRestarted) -> None:
    draft.commands.extend(outstanding(draft.state(), event.live, draft.at))


_HANDLERS: dict[type[msgspec.Struct], Callable[[Draft, Any], None]] = {
    ev.AttemptStarted: _started,
    ev.AttemptEnded: ending.attempt_ended,
    ev.Held: _held,
    ev.Released: _released,
    ev.EvidenceRan: ending.evidence_ran,
    ev.Merged: ending.merged,
    ev.TimerFired: _timer,
    ev.Paused: steer.pause,
    ev.Resumed: steer.resume,
    ev.CancelRequested: steer.cancel,
    ev.StepRerun: steer.rerun,
    ev.StepAccepted: steer.accept,
    ev.PlanRevised: plan.revise,
    ev.KernelRestarted: _restarted,
}
