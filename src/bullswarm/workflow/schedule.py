"""After every event: who is blocked, who may start, and whether the run is at its end."""

from __future__ import annotations

from collections.abc import Sequence

from bullswarm.workflow.completion import complete, settled, why_ended
from bullswarm.workflow.draft import Draft
from bullswarm.workflow.ending import needs_caller
from bullswarm.workflow.graph import heights, order, overlap
from bullswarm.workflow.launch import start_command
from bullswarm.workflow.outstanding import finish_command
from bullswarm.workflow.state import PASSED, AttemptState, Limit, Phase, StepState

_STUCK = ("needs-caller", "blocked", "cancelled")


def settle(draft: Draft) -> None:
    """Bring the run to the point where it waits for the next event, or to its end."""
    if draft.base.phase == "cancelling":
        _settle_cancel(draft)
        return
    _block(draft)
    if draft.base.phase == "running":
        _start_ready(draft)
    _finish_if_over(draft)


def _settle_cancel(draft: Draft) -> None:
    if draft.active():
        return
    for name, step in draft.steps.items():
        if step.status not in PASSED and step.status != "cancelled":
            draft.put(name, status="cancelled", why="cancelled", not_before=None)
    _end(draft, "cancelled")


def _block(draft: Draft) -> None:
    """A step is blocked while something that it waits for needs the caller, and no longer."""
    rounds = [(n, s.rounds[-1]) for n, s in draft.steps.items() if s.rounds]
    for name in order(draft.base.deps):
        step = draft.steps[name]
        if step.status not in ("pending", "blocked") or step.rounds:
            continue
        stuck = [n for n in draft.base.deps[name] if draft.steps[n].status in _STUCK]
        _set_blocked(draft, name, stuck, "pending")
    for name, last in rounds:
        if draft.steps[name].status in ("fixing", "blocked"):
            stuck = [n for n in (last.fix, last.review) if draft.steps[n].status in _STUCK]
            _set_blocked(draft, name, stuck, "fixing")
    if rounds:
        # What waits for a review is blocked with it.
        for name in order(draft.base.deps):
            step = draft.steps[name]
            if step.status in ("pending", "blocked") and not step.rounds:
                stuck = [n for n in draft.base.deps[name] if draft.steps[n].status in _STUCK]
                _set_blocked(draft, name, stuck, "pending")


def _set_blocked(draft: Draft, name: str, stuck: list[str], free: str) -> None:
    step = draft.steps[name]
    if stuck and step.status != "blocked":
        draft.put(name, status="blocked", why=f"waits for {', '.join(stuck)}")
    elif not stuck and step.status == "blocked":
        draft.put(name, status=free, why="")


def _ready(draft: Draft) -> list[str]:
    """Steps whose inputs are done, those with the longest chain behind them first."""
    deps = draft.base.deps
    found = [
        name
        for name, step in draft.steps.items()
        if step.status == "pending" and all(draft.steps[n].status in PASSED for n in deps[name])
    ]
    if len(found) < 2:
        return found
    high = heights(deps)
    return sorted(found, key=lambda name: -high[name])


def _start_ready(draft: Draft) -> None:
    held = []
    for name in _ready(draft):
        step = draft.steps[name]
        if step.not_before is None or step.not_before <= draft.at:
            if not _start(draft, name):
                return
        elif step.last is not None and step.last.state == "held":
            held.append(name)
    if not draft.poke:
        return
    # There may be room for who was held; no more are asked than can run.
    held.sort(key=lambda n: draft.steps[n].attempts[-1].asked_at)
    for name in held:
        if not _start(draft, name):
            return


def _start(draft: Draft, name: str) -> bool:
    """Start a step; False where no other could start either."""
    active = draft.active()
    # A merge takes no worker, and the caller may ask for one at any time.
    busy = [n for n in active if draft.steps[n].status != "merging"]
    if len(busy) >= draft.options.concurrency:
        return False
    step = draft.steps[name]
    if _owned_by_others(draft, step, active):
        return True
    last = step.last
    if last is not None and last.state == "held":
        draft.put_last(name, state="asked")
    else:
        limit = _limit(draft)
        if limit is not None:
            draft.change(stopped_by=limit)
            return False
        if _step_guard(draft, name):
            return True
        n = len(step.attempts) + 1
        again = step.again
        attempt = AttemptState(
            id=f"{draft.base.run_id}.{name}.{n}",
            n=n,
            reason=again.reason if again is not None else "first",
            by_caller=again is not None and again.by_caller,
            asked_at=draft.at,
        )
        draft.put(name, attempts=(*step.attempts, attempt))
    draft.put(name, status="running", not_before=None, why="asked for", failure_kind=None)
    draft.commands.append(start_command(draft.state(), name, draft.at, reattach=False))
    return True


def _owned_by_others(draft: Draft, step: StepState, active: Sequence[str]) -> bool:
    return bool(step.owns) and any(overlap(step.owns, draft.steps[n].owns) for n in active)


def _limit(draft: Draft) -> Limit | None:
    """The limit of the run that forbids one more attempt."""
    options = draft.options
    attempts = [a for s in draft.steps.values() for a in s.attempts]
    if options.max_attempts is not None and len(attempts) >= options.max_attempts:
        return "maxAttempts"
    if options.cost_cap_usd is not None:
        spent = sum(a.usage.cost_usd or 0.0 for a in attempts)
        if spent >= options.cost_cap_usd:
            return "costCapUsd"
    return None


def _step_guard(draft: Draft, name: str) -> bool:
    step = draft.steps[name]
    guard = draft.options.max_step_attempts
    if len(step.attempts) - step.cycle < guard:
        return False
    last = f"; last: {step.last.why}" if step.last is not None else ""
    needs_caller(draft, name, "guard", f"maxStepAttempts ({guard}) is reached{last}")
    _block(draft)
    return True


def _finish_if_over(draft: Draft) -> None:
    if draft.active():
        return
    state = draft.state()
    if all(settled(state, s) for s in draft.steps.values()):
        _end(draft, "completed" if complete(state) else "partial")
    elif draft.base.stopped_by is not None or not _ready(draft):
        _end(draft, "partial")


def _end(draft: Draft, phase: Phase) -> None:
    if phase == "completed":
        draft.change(stopped_by=None)
    draft.change(phase=phase, ended_at=draft.at)
    draft.change(why=why_ended(draft.state()))
    draft.commands.append(finish_command(draft.state()))
