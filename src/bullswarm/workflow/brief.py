"""What a worker is told: the step's own prompt, and what it can't know by itself."""

from __future__ import annotations

from collections.abc import Sequence

from bullswarm.workflow.defaults import paths_of, role_of
from bullswarm.workflow.graph import judged
from bullswarm.workflow.program import OUTPUT, CommandCheck, SchemaCheck, Step
from bullswarm.workflow.state import PASSED, RunState, Verdict, find_step


def brief(state: RunState, step: Step) -> str:
    """The whole prompt of a step, without the hand-over from an earlier attempt."""
    defs = {s.id: s for s in state.all_steps}
    parts = [step.prompt.rstrip()]
    ids = judged(step, defs) if step.evidence_for else step.requirements
    parts += _requirements(state, step, ids)
    parts += _inputs(state, step)
    parts += _leave(step)
    if step.evidence_for:
        parts += _review(ids)
    if role_of(step) == "act":
        parts.append("Do each outward action once. If you are not sure that it worked, say so.")
    return "\n\n".join(parts) + "\n"


def _requirements(state: RunState, step: Step, ids: Sequence[str]) -> list[str]:
    texts = {r.id: r.text for r in state.requirements}
    lines = [f"- {i}: {texts[i]}" for i in ids if i in texts]
    if not lines:
        return []
    head = "Judge these requirements:" if step.evidence_for else "This work is to meet:"
    return ["\n".join([head, *lines])]


def _inputs(state: RunState, step: Step) -> list[str]:
    lines = []
    for name in state.deps.get(step.id, ()):
        done = state.steps.get(name)
        if done is None or done.status not in PASSED:
            continue
        source = find_step(state, name)
        last = done.last
        line = f"- {name}" + (f" ({source.purpose})" if source.purpose else "")
        paths = paths_of(source)
        if paths:
            line += f": {', '.join(paths)}"
        if last is not None and last.out_file:
            line += f"; its answer is in {last.out_file}"
        lines.append(line)
    return ["\n".join(["Done before this, for you to build on:", *lines])] if lines else []


def _leave(step: Step) -> list[str]:
    parts = []
    paths = paths_of(step)
    if paths:
        parts.append("\n".join(["Leave behind exactly:", *(f"- {p}" for p in paths)]))
    checks = []
    for one in step.evidence:
        if isinstance(one, CommandCheck):
            line = one.command if isinstance(one.command, str) else " ".join(one.command)
            checks.append(f"- this command exits 0: {line}")
        elif isinstance(one, SchemaCheck):
            what = "your answer" if one.file == OUTPUT else one.file
            checks.append(f"- {what} fits its JSON Schema")
    if checks:
        parts.append("\n".join(["It will be checked that", *checks]))
    return parts


def _review(ids: Sequence[str]) -> list[str]:
    example = ", ".join(f'{{"id": "{i}", "pass": true, "reason": "..."}}' for i in ids[:2])
    return [
        "Judge only what is asked for above, by looking at the work itself. Change nothing. "
        f"Give a verdict for every one of: {', '.join(ids)}.\n"
        f'Answer with JSON alone: {{"requirements": [{example}]}}'
    ]


def fix_prompt(state: RunState, failing: Sequence[Verdict]) -> str:
    """The prompt of the step that puts right what a review found."""
    texts = {r.id: r.text for r in state.requirements}
    lines = ["A review found that these are not met. Put that right, and nothing else:"]
    for verdict in failing:
        text = texts.get(verdict.id, f"the work of the step {verdict.id}")
        lines += [f"- {verdict.id}: {text}", f"  The review says: {verdict.reason or 'no reason'}"]
    lines.append("Don't repeat any action outside the working folder.")
    return "\n".join(lines)


def again_prompt(prompt: str, failing: Sequence[Verdict]) -> str:
    """A review's prompt in its next round."""
    lines = [prompt.rstrip(), "", "An earlier review did not pass these; a fix was made since:"]
    lines += [f"- {v.id}: {v.reason or 'no reason'}" for v in failing]
    lines.append("Judge everything anew: a fix may have broken something else.")
    return "\n".join(lines)
