"""What follows the end of an attempt, of its checks, of its merge; and of a review."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import cast

import msgspec

from bullswarm.dispatch.types import FailureKind
from bullswarm.runs.after import Next, Tried, after
from bullswarm.workflow.commands import DropWorkspace, Merge, Notify, SetTimer
from bullswarm.workflow.defaults import paths_of
from bullswarm.workflow.draft import Draft
from bullswarm.workflow.events import AttemptEnded, EvidenceRan, Merged, Outcome
from bullswarm.workflow.launch import evidence_command, tail_of
from bullswarm.workflow.reviews import read_review
from bullswarm.workflow.rounds import review_done
from bullswarm.workflow.state import (
    Again,
    AttemptState,
    CheckResult,
    Resume,
    StepFailure,
    StepState,
)

RESET_MARGIN_S = 30.0
"""A wait for a reset ends this long after it: clocks differ, and providers are late."""

KEPT_PATHS = 100
"""Changed paths of one kind that the state remembers of an attempt."""


def attempt_ended(draft: Draft, event: AttemptEnded) -> None:
    """Take in the end of an attempt, once; anything else about it is old news."""
    attempt = draft.current(event.step, event.attempt_id)
    if attempt is None or draft.steps[event.step].status not in ("running", "pending"):
        return
    outcome = event.outcome
    attempt = _record(draft, event, attempt)
    cancelling = draft.base.phase == "cancelling"
    step = draft.defs[event.step]
    if cancelling and not (outcome.ok and _nothing_left(draft, event.step)):
        draft.put(event.step, status="cancelled", why="cancelled", failure_kind="cancelled")
    elif not outcome.ok and attempt.stopping:
        _stopped(draft, event.step, attempt)
    elif not outcome.ok:
        fail(draft, event.step, outcome.failure_kind or "process", outcome.why, outcome)
    elif outcome.merge_conflict is not None:
        fail(draft, event.step, "merge-conflict", outcome.merge_conflict)
    else:
        if step.evidence_for:
            wrong = read_review(outcome.answer, draft.judged(event.step))[1]
            if wrong:
                fail(draft, event.step, "schema", wrong)
                return
        draft.put(event.step, answer=outcome.answer)
        if not step.evidence:
            _gates_passed(draft, event.step)
        elif outcome.checks is not None:
            _checked(draft, event.step, outcome.checks)
        else:
            draft.put(event.step, status="checking", why="its checks run")
            draft.commands.append(evidence_command(draft.state(), event.step))


def evidence_ran(draft: Draft, event: EvidenceRan) -> None:
    """Take in the results of the checks of a step that waits for them."""
    found = draft.steps.get(event.step)
    if found is None or found.status != "checking" or found.attempts[-1].id != event.attempt_id:
        return
    if draft.base.phase == "cancelling":
        draft.put_last(event.step, checks=event.checks)
        draft.put(event.step, status="cancelled", why="cancelled", failure_kind="cancelled")
    else:
        _checked(draft, event.step, event.checks)


def merged(draft: Draft, event: Merged) -> None:
    """Take in how the merge of a step's worktree went."""
    found = draft.steps.get(event.step)
    if found is None or found.status != "merging" or found.attempts[-1].id != event.attempt_id:
        return
    if event.ok:
        draft.commands.append(DropWorkspace(step=event.step))
        finish_step(draft, event.step)
    elif draft.base.phase == "cancelling":
        draft.put(event.step, status="cancelled", why=event.why, failure_kind="merge-conflict")
    elif found.accepted is not None:
        draft.put(event.step, accepted=None)
        needs_caller(draft, event.step, "merge-conflict", event.why)
    else:
        note = CheckResult(index=-1, type="command", ok=False, why=event.why, tail=event.tail)
        draft.put_last(event.step, checks=(*found.attempts[-1].checks, note))
        fail(draft, event.step, "merge-conflict", event.why)


def merge_step(draft: Draft, name: str) -> None:
    """Ask for the merge of the step's worktree."""
    attempt = draft.steps[name].attempts[-1]
    draft.put(name, status="merging", why="its worktree is being merged")
    draft.commands.append(
        Merge(step=name, attempt_id=attempt.id, deliverables=paths_of(draft.defs[name]))
    )


def finish_step(draft: Draft, name: str) -> None:
    """Every gate has passed, or the caller took it as it is."""
    found = draft.steps[name]
    status = "done" if found.accepted is None else "accepted"
    draft.put(
        name,
        status=status,
        why="verified" if status == "done" else f"accepted: {found.accepted}",
        failure_kind=None if status == "done" else found.failure_kind,
        again=None,
        not_before=None,
        done_at=draft.at,
    )
    if draft.defs[name].evidence_for and status == "done":
        for review, why in review_done(draft, name):
            needs_caller(draft, review, "review", why)


def fail(
    draft: Draft, name: str, kind: StepFailure, why: str, outcome: Outcome | None = None
) -> None:
    """The attempt failed: once more by itself, or over to the caller (one automatic
    retry a step; a limit does not spend it; outward actions are never repeated)."""
    draft.put_last(name, ok=False, failure_kind=kind, why=why)
    found = draft.steps[name]
    tried = [_tried(a) for a in found.attempts[found.cycle :] if a.spent]
    following = after(tried, mode=draft.base.limits_mode, repeatable=not draft.is_act(name))
    if _waits_for_reset(draft, name, kind, outcome):
        _wait(draft, name, outcome)
    elif following.action == "done":
        needs_caller(draft, name, kind, _with_reason(why, following, kind))
    else:
        _again(draft, name, kind, following)


def needs_caller(draft: Draft, name: str, kind: StepFailure, why: str) -> None:
    """Nothing more is tried by itself: tell the caller why, and what can be done."""
    from bullswarm.workflow.result import options_for, waiting_for

    draft.put(name, status="needs-caller", failure_kind=kind, why=why, again=None, not_before=None)
    state = draft.state()
    last = draft.steps[name].last
    draft.commands.append(
        Notify(
            step=name,
            why=why,
            failure_kind=kind,
            tail=tail_of(last),
            waiting=waiting_for(state, name),
            choices=options_for(state, name),
            checks=last.checks if last is not None else (),
        )
    )


def timer_of(step: StepState) -> str:
    """The name of a step's timer: another one for every attempt."""
    return f"{step.id}:{len(step.attempts)}"


def _record(draft: Draft, event: AttemptEnded, attempt: AttemptState) -> AttemptState:
    outcome = event.outcome
    changes = outcome.changes
    if changes is not None:
        fields = ("created", "modified", "deleted", "commits")
        cut = {f: getattr(changes, f)[:KEPT_PATHS] for f in fields}
        changes = msgspec.structs.replace(changes, **cut)
    return draft.put_last(
        event.step,
        state="ended",
        ended_at=event.at,
        started=attempt.started or outcome.started,
        ok=outcome.ok,
        failure_kind=None if outcome.ok else outcome.failure_kind or "process",
        why=outcome.why,
        pool=outcome.pool or attempt.pool,
        provider=outcome.provider or attempt.provider,
        group=outcome.group or attempt.group,
        model=outcome.model or attempt.model,
        session=outcome.session,
        notice=outcome.notice,
        changes=changes,
        usage=outcome.usage,
        out_file=outcome.out_file,
    )


def _nothing_left(draft: Draft, name: str) -> bool:
    step = draft.defs[name]
    return not step.evidence and not step.evidence_for and step.workspace == "shared"


def _stopped(draft: Draft, name: str, attempt: AttemptState) -> None:
    """Ended by a pause: the work did nothing wrong, so nothing is spent."""
    draft.put_last(name, spent=False, failure_kind="stopped", why="stopped by a pause")
    resume = _resume(attempt)
    draft.put(
        name,
        status="pending",
        why="stopped by a pause",
        again=Again(reason="stopped by a pause", resume=resume, attach="hand-over"),
    )


def _checked(draft: Draft, name: str, checks: tuple[CheckResult, ...]) -> None:
    draft.put_last(name, checks=checks)
    ran = {c.index for c in checks}
    failed = next((c for c in checks if not c.ok), None)
    missing = [i for i in range(len(draft.defs[name].evidence)) if i not in ran]
    if failed is not None:
        fail(draft, name, "evidence", f"evidence {failed.index + 1}: {failed.why}")
    elif missing:
        fail(draft, name, "evidence", f"evidence {missing[0] + 1} was not run")
    else:
        _gates_passed(draft, name)


def _gates_passed(draft: Draft, name: str) -> None:
    if draft.defs[name].workspace == "own":
        merge_step(draft, name)
    else:
        finish_step(draft, name)


def _tried(attempt: AttemptState) -> Tried:
    kind = attempt.failure_kind
    # For the rule of retries every failed gate is one that the same worker can put right.
    gates = ("evidence", "merge-conflict", "review")
    if kind == "lost":
        kind = "process"
    known = cast("FailureKind | None", "not-produced" if kind in gates else kind)
    return Tried(
        pool=attempt.pool or "",
        failure_kind=known,
        group=attempt.group,
        notice=attempt.notice,
        started=attempt.started,
    )


def _waits_for_reset(draft: Draft, name: str, kind: StepFailure, outcome: Outcome | None) -> bool:
    if draft.is_act(name) and draft.steps[name].attempts[-1].started:
        return False
    return (
        draft.base.limits_mode == "wait"
        and kind == "unavailable"
        and outcome is not None
        and outcome.retry_at is not None
    )


def _wait(draft: Draft, name: str, outcome: Outcome | None) -> None:
    assert outcome is not None and outcome.retry_at is not None
    draft.put_last(name, spent=False)
    found = draft.steps[name]
    limited = next((a for a in reversed(found.attempts) if a.failure_kind == "quota"), None)
    again = Again(
        reason="a limit has reset",
        resume=_resume(limited) if limited is not None else None,
        attach="hand-over" if limited is not None else None,
    )
    until = outcome.retry_at + timedelta(seconds=RESET_MARGIN_S)
    put_off(draft, name, until, f"waits for a reset: {outcome.why}")
    draft.put(name, again=again)


def put_off(draft: Draft, name: str, until: datetime, why: str) -> None:
    """Back in line, not before ``until``."""
    found = draft.put(name, status="pending", why=why, not_before=until)
    draft.commands.append(SetTimer(timer=timer_of(found), at=until, why=why))


def _again(draft: Draft, name: str, kind: StepFailure, following: Next) -> None:
    last = draft.steps[name].attempts[-1]
    limit = kind in ("quota", "throttle", "auth")
    again = Again(
        reason=f"{kind}: {following.why}" if following.why != kind else kind,
        pool=last.pool if following.action == "same" else None,
        resume=_resume(last) if kind in ("quota", "throttle") else None,
        exclude=following.exclude,
        exclude_groups=following.exclude_groups,
        attach="failure" if following.attach_failure else "hand-over" if last.started else None,
        relogin=following.relogin,
    )
    if following.wait_s > 0:
        until = draft.at + timedelta(seconds=following.wait_s)
        put_off(draft, name, until, following.why)
    why = f"{last.why}; trying again" + (" (no retry spent)" if limit else "")
    draft.put(name, status="pending", again=again, why=why)


def _resume(attempt: AttemptState) -> Resume | None:
    if attempt.pool is None or attempt.session is None:
        return None
    return Resume(pool=attempt.pool, session=attempt.session)


def _with_reason(why: str, following: Next, kind: StepFailure) -> str:
    return why if following.why in ("", kind, "ok") else f"{why} ({following.why})"
