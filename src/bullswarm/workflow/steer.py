"""The caller's words: pause, resume, cancel, rerun, accept. A refusal is an answer, no error."""

from __future__ import annotations

from bullswarm.workflow.commands import StopWorker
from bullswarm.workflow.completion import why_ended
from bullswarm.workflow.draft import Draft
from bullswarm.workflow.ending import finish_step, merge_step
from bullswarm.workflow.events import (
    CancelRequested,
    Paused,
    Resumed,
    StepAccepted,
    StepRerun,
)
from bullswarm.workflow.graph import dependents
from bullswarm.workflow.rounds import drop_rounds, open_failures
from bullswarm.workflow.state import ACTIVE, ENDED, PASSED, Again


def pause(draft: Draft, event: Paused) -> None:
    """No new starts; ``now`` also ends workers, but never one of an outward action."""
    if draft.base.phase in ENDED or draft.base.phase == "cancelling":
        draft.reply(event.id, f"the run is {draft.base.phase}")
        return
    draft.change(phase="paused")
    if event.now:
        for name in draft.active():
            if draft.steps[name].status == "running" and not draft.is_act(name):
                stop(draft, name, 1)
    draft.reply(event.id)


def resume(draft: Draft, event: Resumed) -> None:
    """Go on. Said twice it changes nothing."""
    phase = draft.base.phase
    if phase == "paused":
        draft.change(phase="running")
        draft.poke = True
    elif phase != "running":
        why = f"; {why_ended(draft.state())}" if phase == "partial" else ""
        draft.reply(event.id, f"the run is {phase}{why}")
        return
    draft.reply(event.id)


def cancel(draft: Draft, event: CancelRequested) -> None:
    """End every worker, then the run."""
    if draft.base.phase in ("completed", "cancelled"):
        draft.reply(event.id, f"the run is {draft.base.phase}")
        return
    draft.change(phase="cancelling")
    for name in draft.active():
        if draft.steps[name].status != "merging":
            stop(draft, name, event.level)
    draft.reply(event.id)


def stop(draft: Draft, name: str, level: int) -> None:
    """Ask for the end of a step's worker, or of its checks, unless that was asked for already."""
    attempt = draft.steps[name].attempts[-1]
    if attempt.stopping >= level:
        return
    draft.put_last(name, stopping=level)
    draft.commands.append(StopWorker(step=name, attempt_id=attempt.id, level=level))


def rerun(draft: Draft, event: StepRerun) -> None:
    """Do a step again, and what has to follow it."""
    why = rerun_refusal(draft, event.step)
    if not why:
        why = limit_refusal(draft)
    if not why:
        apply_rerun(draft, event.step, event.reason, dependents_too=event.dependents)
        reopen(draft)
    draft.reply(event.id, why)


def limit_refusal(draft: Draft) -> str:
    """A run that a limit stopped starts nothing until the plan says otherwise."""
    if draft.base.stopped_by is None:
        return ""
    return (
        f"the run was {why_ended(draft.state())}; raise options.{draft.base.stopped_by} with "
        "plan revise first"
        if draft.base.phase == "partial"
        else f"{draft.base.stopped_by} is reached; raise it with plan revise first"
    )


def rerun_refusal(draft: Draft, name: str) -> str:
    """Why a step can't be done again now; "" where it can."""
    if draft.base.phase in ("cancelling", "cancelled"):
        return f"the run is {draft.base.phase}"
    found = draft.steps.get(name)
    if found is None:
        return f"there is no step {name!r}"
    if found.root is not None and found.status != "needs-caller":
        return f"{name} belongs to the review {found.root}: rerun that"
    if found.status in ACTIVE:
        return f"{name} is {found.status}; wait for its end, or pause the run with --now"
    if found.status == "fixing":
        return f"{name} waits for its fix {found.rounds[-1].fix}"
    if found.status == "pending":
        return f"{name} is still to run"
    if found.status == "blocked" and not found.rounds:
        return f"{name} is still to run: {found.why}"
    busy = [
        n
        for n in (*dependents(draft.base.deps, name), *_reviews_of(draft, name))
        if n != name and draft.steps[n].status in (*ACTIVE, "fixing")
    ]
    return f"{busy[0]} builds on {name} and is {draft.steps[busy[0]].status}" if busy else ""


def apply_rerun(draft: Draft, name: str, reason: str, *, dependents_too: bool = False) -> None:
    """Put a step back to its start.

    With it go the reviews that judged it, what failed on its results, and on request what was
    built on them; but never an outward action that may have happened.
    """
    reset(draft, name, f"rerun: {reason}")
    if draft.steps[name].root is not None:
        # The review that it belongs to waits for it anyway.
        return
    again = (*PASSED, "needs-caller") if dependents_too else ("needs-caller",)
    after = [
        other
        for other in dependents(draft.base.deps, name)
        if draft.steps[other].status in again and not _may_have_acted(draft, other)
    ]
    for other in (name, *after):
        if draft.steps[other].root is None and other != name:
            reset(draft, other, f"rerun: {name} is done again")
        for review in _reviews_of(draft, other):
            found = draft.steps[review]
            if found.status in (*PASSED, "needs-caller") or found.rounds:
                reset(draft, review, f"rerun: {other} is done again")


def _may_have_acted(draft: Draft, name: str) -> bool:
    return draft.is_act(name) and any(a.started for a in draft.steps[name].attempts)


def reset(draft: Draft, name: str, reason: str) -> None:
    """A step as if the caller had just asked for it for the first time; what was is remembered."""
    found = draft.steps[name]
    last = found.last
    failed = last is not None and last.ok is False and last.started
    drop_rounds(draft, name)
    draft.change(verdicts={k: v for k, v in draft.base.verdicts.items() if k != name})
    draft.put(
        name,
        status="pending",
        cycle=len(found.attempts),
        again=Again(reason=reason, by_caller=True, attach="hand-over" if failed else None),
        not_before=None,
        why=reason,
        failure_kind=None,
        accepted=None,
        answer=None,
        rounds=(),
        done_at=None,
    )


def accept(draft: Draft, event: StepAccepted) -> None:
    """The caller's choice: for a failed step, or for a requirement that fails a review."""
    if draft.base.phase in ("cancelling", "cancelled"):
        why = f"the run is {draft.base.phase}"
    elif not event.reason.strip():
        why = "an acceptance needs a reason"
    elif event.target in draft.steps:
        why = _accept_step(draft, event.target, event.reason)
    elif any(r.id == event.target for r in draft.base.requirements):
        why = _accept_requirement(draft, event.target, event.reason)
    else:
        why = f"there is no step or requirement {event.target!r}"
    if not why:
        reopen(draft)
    draft.reply(event.id, why)


def reopen(draft: Draft) -> None:
    """An ended run goes on after the caller's word."""
    if draft.base.phase in ENDED:
        draft.change(phase="running", ended_at=None, why="")
    draft.poke = True


def _accept_step(draft: Draft, name: str, reason: str) -> str:
    found = draft.steps[name]
    if found.status != "needs-caller":
        return f"{name} is {found.status}; only a failed step can be accepted"
    draft.put(name, accepted=reason)
    failing = open_failures(draft, name)
    if failing:
        _choose(draft, [v.id for v in failing], reason)
        drop_rounds(draft, name)
    unmerged = any(a.started for a in found.attempts)
    if draft.defs[name].workspace == "own" and unmerged:
        merge_step(draft, name)
        return ""
    finish_step(draft, name)
    root = found.root
    if root is not None and draft.defs[name].evidence_for:
        _choose(draft, [v.id for v in open_failures(draft, root)], reason)
        _close(draft, root, reason)
    return ""


def _accept_requirement(draft: Draft, item: str, reason: str) -> str:
    failing = [
        root
        for root in draft.base.verdicts
        if any(v.id == item for v in open_failures(draft, root))
    ]
    if not failing:
        return f"{item} fails no review; there is nothing to accept"
    busy = [r for r in failing if draft.steps[r].status not in ("needs-caller", "blocked")]
    if busy:
        return f"{busy[0]} waits for its fix {draft.steps[busy[0]].rounds[-1].fix}"
    _choose(draft, [item], reason)
    for root in failing:
        if not open_failures(draft, root):
            _close(draft, root, reason)
    return ""


def _choose(draft: Draft, items: list[str], reason: str) -> None:
    draft.change(choices={**draft.base.choices, **dict.fromkeys(items, reason)})


def _close(draft: Draft, root: str, reason: str) -> None:
    drop_rounds(draft, root)
    draft.put(root, accepted=reason)
    finish_step(draft, root)


def _reviews_of(draft: Draft, name: str) -> tuple[str, ...]:
    """The reviews, generated ones aside, that judge what a step works on."""
    items = {name, *draft.defs[name].requirements}
    return tuple(
        other
        for other, step in draft.defs.items()
        if step.evidence_for
        and draft.steps[other].root is None
        and other != name
        and items & set(draft.judged(other))
    )
