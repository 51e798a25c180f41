"""What could be better in a program that is valid. Never a refusal."""

from __future__ import annotations

from collections.abc import Iterator

from bullswarm.workflow.defaults import paths_of, role_of
from bullswarm.workflow.faults import Advice
from bullswarm.workflow.graph import ancestors, dependencies, judged, order
from bullswarm.workflow.program import Program, Step
from bullswarm.workflow.requirements import requirements_of

LONG_CHAIN = 8
"""Steps in a row from which a chain is worth a word."""


def advice_on(program: Program) -> tuple[Advice, ...]:
    """Advice on a valid program, in the order of its parts."""
    return (
        *_requirements(program),
        *_proof(program),
        *_reviews(program),
        *_worktrees(program),
        *_chain(program),
    )


def _requirements(program: Program) -> Iterator[Advice]:
    affected = {r for s in program.steps for r in s.requirements}
    steps = {s.id: s for s in program.steps}
    reviewed = {r for s in program.steps for r in judged(s, steps)}
    for requirement in requirements_of(program):
        if requirement.id not in affected:
            first = requirement.text.splitlines()[0][:60]
            yield Advice(
                "$.requirements" if program.requirements is not None else "$.goal",
                f"no step affects {requirement.id} ({first}), so nothing can prove it",
            )
        elif requirement.id not in reviewed and not any(
            s.evidence for s in program.steps if requirement.id in s.requirements
        ):
            yield Advice("$.steps", f"nothing checks {requirement.id}: no evidence and no review")


def _proof(program: Program) -> Iterator[Advice]:
    steps = {s.id: s for s in program.steps}
    reviewed = {r for s in program.steps for r in judged(s, steps)}
    for index, step in enumerate(program.steps):
        covered = reviewed & {step.id, *step.requirements}
        if role_of(step) in ("check", "investigate") or step.evidence or covered:
            continue
        yield Advice(
            f"$.steps[{index}]",
            f"{step.id} has neither evidence nor a review, so it can only end unproven",
        )


def _reviews(program: Program) -> Iterator[Advice]:
    deps = dependencies(program.steps)
    steps = {s.id: s for s in program.steps}
    for index, step in enumerate(program.steps):
        if role_of(step) != "check":
            continue
        written = [n for n in ancestors(deps, step.id) if _writes(steps[n])]
        if written and not step.route.independent_of and not step.route.use:
            yield Advice(
                f"$.steps[{index}].route",
                f"{step.id} may run on the provider that wrote what it checks; "
                f"independentOf: [{', '.join(written[:4])}] keeps it off",
            )


def _writes(step: Step) -> bool:
    return role_of(step) in ("produce", "transform", "combine") or bool(paths_of(step))


def _worktrees(program: Program) -> Iterator[Advice]:
    deps = dependencies(program.steps)
    steps = {s.id: s for s in program.steps}
    for index, step in enumerate(program.steps):
        if step.workspace != "own":
            continue
        unseen = [
            n
            for n in ancestors(deps, step.id)
            if steps[n].workspace == "shared" and paths_of(steps[n])
        ]
        if unseen:
            yield Advice(
                f"$.steps[{index}].workspace",
                f"{step.id} starts from the last commit and does not see what "
                f"{', '.join(unseen[:4])} left uncommitted; workspace: own there, too, or shared "
                "here",
            )


def _chain(program: Program) -> Iterator[Advice]:
    deps = dependencies(program.steps)
    long: dict[str, tuple[str, ...]] = {}
    for name in order(deps):
        longest = max((long[n] for n in deps[name]), key=len, default=())
        long[name] = (*longest, name)
    chain = max(long.values(), key=len)
    if len(chain) >= LONG_CHAIN:
        yield Advice(
            "$.steps",
            f"{len(chain)} steps wait for one another in a row ({chain[0]} ... {chain[-1]}); "
            "what does not need the step before it could run at the same time",
        )
