"""The plan at the start, and its revisions while it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bullswarm.runs.after import LimitsMode
from bullswarm.workflow.defaults import paths_of
from bullswarm.workflow.draft import Draft
from bullswarm.workflow.events import PlanRevised
from bullswarm.workflow.faults import Fault
from bullswarm.workflow.graph import dependencies
from bullswarm.workflow.program import OnLimit, Program, Step, as_document
from bullswarm.workflow.requirements import requirements_of
from bullswarm.workflow.state import ACTIVE, PASSED, RunState, StepState
from bullswarm.workflow.steer import apply_rerun, reopen, rerun_refusal, reset

_MODES: dict[OnLimit, LimitsMode] = {
    "reroute": "quarantine",
    "quarantine": "quarantine",
    "return": "return",
    "wait": "wait",
}


def first_state(program: Program, run_id: str, now: datetime, mode: LimitsMode) -> RunState:
    """A run in which nothing has happened. ``mode`` counts where the program names none."""
    return RunState(
        run_id=run_id,
        program=program,
        limits_mode=mode_of(program, mode),
        created_at=now,
        at=now,
        requirements=requirements_of(program),
        steps={s.id: StepState(id=s.id, owns=paths_of(s)) for s in program.steps},
        deps=dependencies(program.steps),
    )


def mode_of(program: Program, default: LimitsMode) -> LimitsMode:
    """What follows a usage limit in this run."""
    wanted = program.options.on_limit
    return default if wanted is None else _MODES[wanted]


def revise(draft: Draft, event: PlanRevised) -> None:
    """Change the plan, wholly or not at all."""
    faults = _refusals(draft, event)
    if faults:
        draft.reply(event.id, faults[0].message, faults)
        return
    program, faults = revised(draft.base.program, event)
    if program is None:
        draft.reply(event.id, "the revised program is not valid", faults)
        return
    taken = {s.id for s in draft.base.generated} & {s.id for s in program.steps}
    if taken:
        name = sorted(taken)[0]
        fault = Fault("$.add", f"{name!r} is a step that the kernel made", "choose another id")
        draft.reply(event.id, fault.message, (fault,))
        return
    busy = _judging(draft, event, program)
    if busy:
        draft.reply(event.id, busy[0].message, busy)
        return
    _apply(draft, event, program)
    draft.reply(event.id)


def _judging(draft: Draft, event: PlanRevised, program: Program) -> tuple[Fault, ...]:
    """Work may not be added under a review that is judging it now."""
    deps = dependencies(program.steps)
    return tuple(
        Fault(f"$.add[{place}]", f"{review} judges this and is {draft.steps[review].status}")
        for place, one in enumerate(event.add)
        for review in _new_under(draft, deps, str(one["id"]))
        if draft.steps[review].status in (*ACTIVE, "fixing")
    )


def _new_under(draft: Draft, deps: Mapping[str, Sequence[str]], name: str) -> list[str]:
    """The reviews in the plan so far that wait for a new step."""
    return [
        other
        for other, needs in deps.items()
        if name in needs and other in draft.steps and draft.defs[other].evidence_for
    ]


def revised(program: Program, event: PlanRevised) -> tuple[Program | None, tuple[Fault, ...]]:
    """The program with the edits, or every fault of it. Paths are those of the whole new program,
    as ``plan export`` would show it."""
    from bullswarm.workflow.validate import validate

    document: dict[str, Any] = as_document(program)
    changes = {one.get("id"): one for one in event.amend}
    kept = [s for s in document["steps"] if s["id"] not in event.remove]
    document["steps"] = [_merged(s, changes.get(s["id"])) for s in kept] + list(event.add)
    if event.options:
        document["options"] = {**document.get("options", {}), **event.options}
    if event.goal is not None:
        document["goal"] = event.goal
    made, faults, _ = validate(document)
    return made, faults


def _merged(step: dict[str, Any], change: dict[str, Any] | None) -> dict[str, Any]:
    """A key that is set to null goes back to its default."""
    if change is None:
        return step
    return {k: v for k, v in {**step, **change}.items() if v is not None}


def _refusals(draft: Draft, event: PlanRevised) -> tuple[Fault, ...]:
    state = draft.base
    if state.phase in ("cancelling", "cancelled"):
        return (Fault("$", f"the run is {state.phase}"),)
    if event.base_revision != state.revision:
        return (
            Fault(
                "$.baseRevision",
                f"the plan is at revision {state.revision}, the edits were made on "
                f"{event.base_revision}",
                "look at plan export and try again",
            ),
        )
    found: list[Fault] = []
    own = {s.id for s in state.program.steps}
    for key, names in (
        ("amend", [str(one.get("id", "")) for one in event.amend]),
        ("remove", event.remove),
        ("rerun", event.rerun),
    ):
        for place, name in enumerate(names):
            fault = _refusal(draft, key, name, own, event)
            if fault:
                found.append(Fault(f"$.{key}[{place}]", fault))
    if not (event.add or event.amend or event.remove or event.rerun or event.options) and (
        event.goal is None
    ):
        found.append(Fault("$", "nothing is to be changed", "add, amend, remove, rerun, options"))
    return tuple(found)


def _refusal(draft: Draft, key: str, name: str, own: set[str], event: PlanRevised) -> str:
    if name not in own:
        made = name in draft.steps and key != "rerun"
        return f"{name!r} is a step that the kernel made" if made else f"there is no step {name!r}"
    found = draft.steps[name]
    if key == "rerun":
        return "it is to be removed" if name in event.remove else rerun_refusal(draft, name)
    if found.status in (*ACTIVE, "fixing"):
        return f"{name} is {found.status}; pause the run with --now first"
    if key == "amend" and name in event.remove:
        return f"{name} is to be removed"
    if key == "amend" and found.status in PASSED and name not in event.rerun:
        return f"{name} is {found.status}; an amendment needs it in rerun too"
    if key == "remove" and any(a.started for a in found.attempts) and draft.is_act(name):
        return f"{name} may have acted already; it stays in the record"
    return ""


def _apply(draft: Draft, event: PlanRevised, program: Program) -> None:
    old = draft.defs
    for name in event.remove:
        # A review's rounds go with it.
        for other in [n for n, s in draft.steps.items() if s.root == name]:
            del draft.steps[other]
        del draft.steps[name]
    generated = tuple(s for s in draft.base.generated if s.id in draft.steps)
    deps = {s.id: draft.base.deps[s.id] for s in generated}
    gone = set(event.remove)
    deps = {name: tuple(n for n in needs if n not in gone) for name, needs in deps.items()}
    draft.change(
        program=program,
        requirements=requirements_of(program),
        revision=draft.base.revision + 1,
        generated=generated,
        limits_mode=mode_of(program, draft.base.limits_mode),
        deps={**dependencies(program.steps), **deps},
        verdicts={k: v for k, v in draft.base.verdicts.items() if k not in gone},
        stopped_by=None,
    )
    for step in program.steps:
        _settle_step(draft, step, old.get(step.id))
    reason = event.reason or "the plan was revised"
    for name in event.rerun:
        if draft.steps[name].status != "pending":
            apply_rerun(draft, name, reason)
    for one in event.add:
        for review in _new_under(draft, draft.base.deps, str(one["id"])):
            if draft.steps[review].status in (*PASSED, "needs-caller") and not (
                draft.steps[review].root
            ):
                reset(draft, review, f"rerun: {one['id']} is new")
    for one in event.amend:
        name = str(one["id"])
        if draft.steps[name].status in ("needs-caller", "blocked") and name not in event.rerun:
            reset(draft, name, f"amended: {reason}")
    reopen(draft)


def _settle_step(draft: Draft, step: Step, before: Step | None) -> None:
    if step.id not in draft.steps:
        draft.steps[step.id] = StepState(id=step.id, owns=paths_of(step))
    elif step != before:
        draft.put(step.id, owns=paths_of(step))
