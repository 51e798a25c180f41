"""What a run shows: its options where a step needs the caller, its result, its summary."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from bullswarm.workflow.commands import Choice
from bullswarm.workflow.completion import (
    complete,
    counts,
    label_of,
    requirement_states,
    verified,
    why_ended,
)
from bullswarm.workflow.defaults import paths_of, role_of, routing_of
from bullswarm.workflow.graph import dependents
from bullswarm.workflow.launch import tail_of
from bullswarm.workflow.program import Step, as_document
from bullswarm.workflow.state import ENDED, PASSED, RunState
from bullswarm.workflow.workspace import branch_of

RESULT_VERSION = 1


def waiting_for(state: RunState, name: str) -> tuple[str, ...]:
    """The steps that can't go on before this one does."""
    root = state.steps[name].root
    found = dict.fromkeys(dependents(state.deps, name))
    if root is not None:
        found |= dict.fromkeys((root, *dependents(state.deps, root)))
    return tuple(n for n in found if state.steps[n].status not in (*PASSED, "cancelled"))


def options_for(state: RunState, name: str) -> tuple[Choice, ...]:
    """What the caller can do about a step that needs a word, as exact commands."""
    found, run = state.steps[name], state.run_id
    verb = "bullswarm workflow"
    act = any(s.id == name and role_of(s) == "act" for s in state.all_steps)
    ran = any(a.started for a in found.attempts)
    label = "do it again (it may have acted already)" if act and ran else "do it again"
    made = [Choice(label=label, command=f"{verb} step rerun {run} {name} --reason WHY")]
    if found.failure_kind == "review":
        failing = [
            v
            for v in state.verdicts.get(name, ())
            if not v.passed and v.id not in state.choices and v.id not in state.steps
        ]
        made = [
            Choice(label="review again", command=f"{verb} step rerun {run} {name} --reason WHY"),
            *(
                Choice(
                    label=f"take {v.id} as it is (a choice, not proof)",
                    command=f"{verb} step accept {run} {v.id} --reason WHY",
                )
                for v in failing
            ),
        ]
        makers = dict.fromkeys(
            s.id for v in failing for s in state.program.steps if v.id in s.requirements
        )
        made += [
            Choice(
                label=f"do {m} again, then review",
                command=f"{verb} step rerun {run} {m} --reason WHY",
            )
            for m in makers
        ]
    if found.failure_kind == "merge-conflict":
        made.insert(
            0,
            Choice(
                label="merge it by hand, in the run's folder, then take the step",
                command=f"git merge {branch_of(run, name)}",
            ),
        )
    made += [
        Choice(
            label="take the step as it is (a choice, not proof)",
            command=f"{verb} step accept {run} {name} --reason WHY",
        ),
        Choice(
            label="change the plan",
            command=f"{verb} plan revise {run} FILE --base-revision {state.revision}",
        ),
        Choice(label="end the run", command=f"{verb} cancel {run}"),
    ]
    return tuple(made)


def result(state: RunState) -> dict[str, Any]:
    """The versioned result document. It can be asked for at any time; ``state`` says whether the
    run has ended. Everything in it is computed by the kernel."""
    document = {
        "resultVersion": RESULT_VERSION,
        "runId": state.run_id,
        "state": state.phase,
        "ended": state.phase in ENDED,
        "completed": state.phase == "completed" and complete(state),
        "verified": state.phase == "completed" and verified(state),
        "why": state.why or (why_ended(state) if state.phase in ENDED else ""),
        "limit": state.stopped_by,
        "revision": state.revision,
        "goal": state.program.goal,
        "createdAt": state.created_at,
        "endedAt": state.ended_at,
        "counts": counts(state),
        "requirements": requirement_states(state),
        "steps": [_step(state, s) for s in state.all_steps],
        "needsCaller": [n for n, s in state.steps.items() if s.status == "needs-caller"],
        "attempts": sum(len(s.attempts) for s in state.steps.values()),
        "costUsd": spent_usd(state),
    }
    made: dict[str, Any] = as_document(_whole(document))
    return made


def _whole(value: Any) -> Any:
    """A value with every field it has, those at their defaults too: who reads the document need not
    know the defaults."""
    if isinstance(value, msgspec.Struct):
        return {
            f.encode_name: _whole(getattr(value, f.name)) for f in msgspec.structs.fields(value)
        }
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return value


def spent_usd(state: RunState) -> float | None:
    """Reported dollars of all attempts; None where no attempt reported any."""
    known = [
        a.usage.cost_usd
        for s in state.steps.values()
        for a in s.attempts
        if a.usage.cost_usd is not None
    ]
    return sum(known) if known else None


def _step(state: RunState, step: Step) -> dict[str, Any]:
    found = state.steps[step.id]
    routing = routing_of(step)
    needy = found.status == "needs-caller"
    last = found.last
    return {
        "id": step.id,
        "purpose": step.purpose,
        "role": role_of(step),
        "lane": routing.lane,
        "effort": routing.effort,
        "status": found.status,
        "label": label_of(state, step),
        "why": found.why,
        "failureKind": found.failure_kind,
        "dependsOn": state.deps.get(step.id, ()),
        "deliverables": paths_of(step),
        "requirements": step.requirements,
        "evidenceFor": step.evidence_for,
        "generatedFor": found.root,
        "accepted": found.accepted,
        "answer": found.answer,
        "outFile": last.out_file if last is not None else None,
        "notBefore": found.not_before,
        "attempts": found.attempts,
        "tail": tail_of(last) if needy else "",
        "waiting": waiting_for(state, step.id) if needy else (),
        "options": options_for(state, step.id) if needy else (),
    }


def summary(state: RunState) -> tuple[str, ...]:
    """The result in lines for people."""
    count = counts(state)
    parts = [
        (count.done, "done"),
        (count.accepted, "accepted"),
        (count.active, "active"),
        (count.pending, "not started"),
        (count.needs_caller, "need the caller"),
        (count.blocked, "blocked"),
        (count.cancelled, "cancelled"),
    ]
    shown = ", ".join(f"{n} {word}" for n, word in parts if n)
    proof = " · verified" if state.phase == "completed" and verified(state) else ""
    lines = [f"{state.run_id} {state.phase}{proof}: {count.total} steps ({shown})"]
    if state.why:
        lines.append(f"  {state.why}")
    for requirement in requirement_states(state):
        first = requirement.text.splitlines()[0]
        lines.append(f"  {requirement.id} {requirement.standing}: {first}")
    for step in state.all_steps:
        lines += _lines(state, step)
    return tuple(lines)


def _lines(state: RunState, step: Step) -> list[str]:
    found = state.steps[step.id]
    label = label_of(state, step)
    last = found.last
    where = f" on {last.pool}" if last is not None and last.pool else ""
    until = f" until {_clock(found.not_before)}" if found.not_before is not None else ""
    lines = [f"  {step.id}: {label or found.status}{where}{until}"]
    if found.status == "needs-caller":
        lines += needs(state, step.id)
    elif found.status in ("blocked", "fixing", "accepted"):
        lines.append(f"    {found.why}")
    return lines


def needs(state: RunState, name: str) -> list[str]:
    """Why a step needs the caller, the end of its failed evidence, what waits on it, and the
    commands that are the options, in lines for people."""
    found = state.steps[name]
    lines = [f"    why: {found.why}"]
    lines += [f"    | {line}" for line in tail_of(found.last).splitlines()[-10:]]
    waiting = waiting_for(state, name)
    if waiting:
        lines.append(f"    waiting on it: {', '.join(waiting)}")
    lines += [f"    {c.label}: {c.command}" for c in options_for(state, name)]
    return lines


def _clock(at: datetime) -> str:
    return f"{at.astimezone():%a %H:%M}"
