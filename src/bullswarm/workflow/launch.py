"""From a step and its history to the command that starts, or finds, its worker."""

from __future__ import annotations

from datetime import datetime

from bullswarm.workflow.brief import brief
from bullswarm.workflow.commands import Before, RunEvidence, StartAttempt
from bullswarm.workflow.defaults import must_change, paths_of, role_of, routing_of
from bullswarm.workflow.draft import writers
from bullswarm.workflow.graph import judged
from bullswarm.workflow.program import JsonSchema, Step
from bullswarm.workflow.reviews import review_schema
from bullswarm.workflow.state import Again, AttemptState, RunState, StepState, find_step


def start_command(state: RunState, name: str, at: datetime, *, reattach: bool) -> StartAttempt:
    """The command for the step's last attempt."""
    step, found = find_step(state, name), state.steps[name]
    attempt = found.attempts[-1]
    again = found.again or Again(reason=attempt.reason)
    routing = routing_of(step)
    return StartAttempt(
        step=name,
        attempt_id=attempt.id,
        n=attempt.n,
        reason=attempt.reason,
        prompt=brief(state, step),
        lane=routing.lane,
        effort=routing.effort,
        purpose=step.purpose or step.prompt.strip().splitlines()[0][:80],
        model=step.model,
        use=step.route.use,
        avoid=step.route.avoid,
        not_providers=_providers(state, step.route.independent_of),
        rather_not=_rather_not(state, step),
        exclude=_still_out(state, found, again, at),
        exclude_groups=again.exclude_groups,
        pool=again.pool,
        resume=again.resume,
        before=_before(found, again),
        deliverables=paths_of(step),
        must_change=must_change(step),
        answer_schema=answer_schema(state, step),
        time_box_s=None if step.time_box is None else step.time_box * 60,
        workspace=step.workspace,
        repeatable=role_of(step) != "act",
        reattach=reattach,
        relogin=again.relogin,
        limits_mode=state.limits_mode,
        held_since=attempt.asked_at if attempt.held_why else None,
    )


def evidence_command(state: RunState, name: str) -> RunEvidence:
    """The command that runs the checks of the step's last attempt."""
    step, found = find_step(state, name), state.steps[name]
    attempt = found.attempts[-1]
    return RunEvidence(
        step=name,
        attempt_id=attempt.id,
        evidence=step.evidence,
        protect=found.owns,
        out_file=attempt.out_file,
        workspace=step.workspace,
    )


def answer_schema(state: RunState, step: Step) -> JsonSchema | str | None:
    """The schema of the answer: a review's own, else what the step asks for."""
    if step.evidence_for:
        return review_schema(judged(step, {s.id: s for s in state.all_steps}))
    return step.answer_schema


def wrote(state: RunState, items: tuple[str, ...]) -> tuple[str, ...]:
    """The providers whose workers were started for any step that works on ``items``."""
    defs = {s.id: s for s in state.all_steps}
    return _providers(state, tuple(w for item in items for w in writers(defs, item)))


def _rather_not(state: RunState, step: Step) -> tuple[str, ...]:
    """Who wrote what a review judges; and for a fix, who reviews it."""
    if step.evidence_for:
        return wrote(state, judged(step, {s.id: s for s in state.all_steps}))
    root = state.steps[step.id].root
    return _providers(state, (root,)) if root is not None else ()


def _providers(state: RunState, names: tuple[str, ...]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for name in names:
        for attempt in state.steps[name].attempts if name in state.steps else ():
            if attempt.provider is not None and attempt.started:
                found[attempt.provider] = None
    return tuple(found)


def _still_out(state: RunState, found: StepState, again: Again, at: datetime) -> tuple[str, ...]:
    """A pool whose limit has reset since is no longer left out; one whose reset is waited for never
    is: its bench alone keeps it out."""
    back = {
        a.pool
        for a in found.attempts
        if a.failure_kind == "quota" and (state.limits_mode == "wait" or _has_reset(a, at))
    }
    return tuple(pool for pool in again.exclude if pool not in back)


def _has_reset(attempt: AttemptState, at: datetime) -> bool:
    notice = attempt.notice
    return notice is not None and notice.resets_at is not None and notice.resets_at <= at


def _before(found: StepState, again: Again) -> Before | None:
    ran: list[AttemptState] = [a for a in found.attempts[:-1] if a.started]
    if again.attach is None or not ran:
        return None
    last = ran[-1]
    return Before(kind=again.attach, attempt_id=last.id, why=last.why, tail=tail_of(last))


def tail_of(attempt: AttemptState | None) -> str:
    """The end of what the attempt's failed evidence said."""
    failed = [c for c in attempt.checks if not c.ok] if attempt is not None else []
    return "\n".join(c.tail or c.why for c in failed)
