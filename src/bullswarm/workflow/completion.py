"""What a run has come to: labels, requirements, counts and the end state.

Doctrine: the kernel alone accepts evidence and computes completion; what a worker says of its own
work counts for nothing here.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from bullswarm.judge.labels import Facts, Label, is_proof, label
from bullswarm.workflow.draft import writers
from bullswarm.workflow.graph import judged
from bullswarm.workflow.program import Requirement, Step
from bullswarm.workflow.state import PASSED, CheckResult, RunState, StepState, Value, Verdict

Standing = Literal["proven", "choice", "failing", "unproven", "open"]
"""A requirement is ``proven`` when a review passed it, or when every step that affects it is
proven; ``open`` while such a step is not finished, or where there is none."""


class RequirementState(Value, frozen=True, kw_only=True):
    """Where one requirement stands, who works on it, and what the reviews said of it."""

    id: str
    text: str
    standing: Standing
    steps: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    reason: str | None = None


def verdicts_on(state: RunState, item: str) -> tuple[Verdict, ...]:
    """The last verdict of every review on a requirement, or on a step."""
    return tuple(v for said in state.verdicts.values() for v in said if v.id == item)


def passed(state: RunState, item: str) -> bool | None:
    """What the reviews together say: one failing verdict fails it; None where nobody judged."""
    said = verdicts_on(state, item)
    return all(v.passed for v in said) if said else None


def label_of(state: RunState, step: Step) -> Label | None:
    """The step's evidence label; None for one that is neither finished nor accepted."""
    found = state.steps[step.id]
    last = next((a for a in reversed(found.attempts) if a.state == "ended"), None)
    checks = last.checks if last is not None and found.status in PASSED else ()
    items = step.requirements or (step.id,)
    covered = _covered(state)
    reviews = {} if step.evidence_for else {i: passed(state, i) for i in items}
    if not step.requirements and reviews.get(step.id) is None and step.id not in covered:
        reviews = {}
    undecided = {i for i, said in reviews.items() if said is None}
    return label(
        Facts(
            finished=found.status == "done",
            accepted=found.status == "accepted",
            command=_held(step, checks, "command"),
            schema=_held(step, checks, "schema"),
            answer_schema=True if step.answer_schema is not None or step.evidence_for else None,
            reviews=reviews,
            review_covers=bool(undecided & covered),
        )
    )


def _held(step: Step, checks: tuple[CheckResult, ...], kind: str) -> bool | None:
    declared = [i for i, one in enumerate(step.evidence) if one.__struct_config__.tag == kind]
    if not declared:
        return None
    results = {c.index: c.ok for c in checks if c.type == kind}
    return all(results.get(i, False) for i in declared)


def _covered(state: RunState) -> set[str]:
    """What a review that is still to come will judge."""
    defs = {s.id: s for s in state.all_steps}
    return {
        item
        for step in state.all_steps
        if step.evidence_for and state.steps[step.id].status not in (*PASSED, "cancelled")
        for item in judged(step, defs)
    }


def requirement_states(state: RunState) -> tuple[RequirementState, ...]:
    """Every requirement, in order."""
    defs = {s.id: s for s in state.all_steps}
    return tuple(_requirement(state, defs, r) for r in state.requirements)


def _requirement(state: RunState, defs: dict[str, Step], one: Requirement) -> RequirementState:
    names = writers(defs, one.id)
    working = [n for n in names if state.steps[n].status != "cancelled"]
    said = passed(state, one.id)
    finished = bool(working) and all(state.steps[n].status in PASSED for n in working)
    standing: Standing
    if one.id in state.choices:
        standing = "choice"
    elif said is False:
        standing = "failing"
    elif not finished:
        standing = "open"
    elif any(state.steps[n].status == "accepted" for n in working) and not said:
        standing = "choice"
    elif said or all(is_proof(label_of(state, defs[n])) for n in working):
        standing = "proven"
    else:
        standing = "unproven"
    return RequirementState(
        id=one.id,
        text=one.text,
        standing=standing,
        steps=names,
        verdicts=verdicts_on(state, one.id),
        reason=state.choices.get(one.id),
    )


def settled(state: RunState, step: StepState) -> bool:
    """Nothing more is to be done about the step: it passed, or was made needless by a decision."""
    return step.status in PASSED or (step.root is not None and step.status == "cancelled")


def complete(state: RunState) -> bool:
    """Every step passed, and no requirement fails a review without the caller's choice."""
    if not all(settled(state, s) for s in state.steps.values()):
        return False
    return all(
        v.passed or v.id in state.choices or _accepted(state, v.id)
        for said in state.verdicts.values()
        for v in said
    )


def _accepted(state: RunState, name: str) -> bool:
    return name in state.steps and state.steps[name].status == "accepted"


def verified(state: RunState) -> bool:
    """Complete, and every requirement proven; without requirements, every step that makes
    something. A choice is no proof."""
    if not complete(state):
        return False
    standings = [r.standing for r in requirement_states(state)]
    if standings:
        return all(s == "proven" for s in standings)
    makers = [s for s in state.program.steps if not s.evidence_for]
    return bool(makers) and all(is_proof(label_of(state, s)) for s in makers)


class Counts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many steps stand where. The parts always add up to ``total``."""

    total: int = 0
    done: int = 0
    accepted: int = 0
    needs_caller: int = 0
    blocked: int = 0
    pending: int = 0
    active: int = 0
    cancelled: int = 0


def counts(state: RunState) -> Counts:
    """The steps by where they stand, the kernel's own included."""
    names = {"running": "active", "checking": "active", "merging": "active", "fixing": "active"}
    found: dict[str, int] = {}
    for step in state.steps.values():
        key = names.get(step.status, step.status.replace("-", "_"))
        found[key] = found.get(key, 0) + 1
    return Counts(total=len(state.steps), **found)


def why_ended(state: RunState) -> str:
    """One sentence on the end, which names what stopped it."""
    if state.phase == "cancelled":
        return "cancelled by the caller"
    if state.stopped_by == "maxAttempts":
        return f"stopped by maxAttempts ({state.program.options.max_attempts})"
    if state.stopped_by == "costCapUsd":
        return f"stopped by costCapUsd ({state.program.options.cost_cap_usd:g})"
    needy = [n for n, s in state.steps.items() if s.status == "needs-caller"]
    if needy:
        return f"needs the caller: {', '.join(needy)}"
    failing = sorted({v.id for said in state.verdicts.values() for v in said if not v.passed})
    if state.phase == "partial" and failing:
        return f"a review fails {', '.join(failing)}"
    return "every step is done"
