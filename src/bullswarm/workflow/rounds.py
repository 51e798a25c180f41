"""After a review: its verdicts, and one fix with one review more for each round."""

from __future__ import annotations

import msgspec

from bullswarm.workflow.brief import again_prompt, fix_prompt
from bullswarm.workflow.draft import Draft
from bullswarm.workflow.launch import wrote
from bullswarm.workflow.program import OUTPUT, Evidence, Route, SchemaCheck, Step
from bullswarm.workflow.reviews import read_review
from bullswarm.workflow.state import PASSED, Round, StepState, Verdict


def review_done(draft: Draft, name: str) -> list[tuple[str, str]]:
    """Take in a review's verdicts. Returns the review that now needs the caller, and why."""
    root = draft.steps[name].root or name
    said = _verdicts(draft, name, root)
    draft.change(verdicts={**draft.base.verdicts, root: said})
    failing = open_failures(draft, root)
    if not failing:
        if root != name:
            draft.put(root, status="done", why="verified", failure_kind=None, done_at=draft.at)
        return []
    rounds = draft.steps[root].rounds
    if len(rounds) < draft.options.verify_rounds and _fixable(draft, failing):
        _next_round(draft, root, failing)
        return []
    return [(root, failure_text(failing))]


def open_failures(draft: Draft, root: str) -> tuple[Verdict, ...]:
    """The failing verdicts of a review that the caller has not accepted."""
    return tuple(
        v
        for v in draft.base.verdicts.get(root, ())
        if not v.passed
        and v.id not in draft.base.choices
        and not (v.id in draft.steps and draft.steps[v.id].status == "accepted")
    )


def failure_text(failing: tuple[Verdict, ...]) -> str:
    said = "; ".join(f"{v.id}: {v.reason or 'no reason given'}" for v in failing)
    return f"the review fails {said}"


def drop_rounds(draft: Draft, root: str) -> None:
    """What was made for a review's rounds and has not passed is no longer needed."""
    for name, step in list(draft.steps.items()):
        if step.root == root and step.status not in PASSED:
            draft.put(name, status="cancelled", why="no longer needed", not_before=None)


def _verdicts(draft: Draft, name: str, root: str) -> tuple[Verdict, ...]:
    found = draft.steps[name]
    attempt = found.attempts[-1]
    ids = draft.judged(root)
    said, _ = read_review(found.answer, ids)
    state = draft.state()
    made = []
    for one in said:
        # A fix worked on what is judged now, whatever it was called.
        fixes = tuple(r.fix for r in draft.steps[root].rounds)
        authors = (*wrote(state, (one.id,)), *wrote(state, fixes))
        known = attempt.provider is not None and bool(authors)
        made.append(
            Verdict(
                id=one.id,
                passed=one.passed,
                reason=one.reason,
                review=name,
                attempt_id=attempt.id,
                at=draft.at,
                pool=attempt.pool,
                provider=attempt.provider,
                also_wrote=attempt.provider in authors if known else None,
            )
        )
    return tuple(made)


def _fixable(draft: Draft, failing: tuple[Verdict, ...]) -> bool:
    """A fix changes files; where all of the work was outward there is nothing it could change."""
    names = {w for v in failing for w in draft.writers(v.id)}
    return any(not draft.is_act(n) for n in names) or not names


def _next_round(draft: Draft, root: str, failing: tuple[Verdict, ...]) -> None:
    review = draft.defs[root]
    n = len(draft.steps[root].rounds) + 1
    free = n
    while f"{root}-fix-{free}" in draft.steps or f"{root}-review-{free + 1}" in draft.steps:
        free += 1
    fix_id, review_id = f"{root}-fix-{free}", f"{root}-review-{free + 1}"
    judged = [v.id for v in failing]
    # The fixes of earlier rounds own nothing of their own, and work that only comes after the
    # review was not judged.
    authors = [
        w
        for w in dict.fromkeys(w for item in judged for w in draft.writers(item))
        if draft.steps[w].status in PASSED and not draft.steps[w].root and not draft.is_act(w)
    ]
    known = {r.id for r in draft.base.requirements}
    fix = Step(
        id=fix_id,
        purpose=f"put right what {root} found",
        prompt=fix_prompt(draft.base, failing),
        kind="implement",
        depends_on=tuple(authors),
        requirements=tuple(i for i in judged if i in known),
        evidence=_evidence(draft, authors),
        route=draft.defs[authors[0]].route if authors else Route(),
    )
    again = msgspec.structs.replace(
        review,
        id=review_id,
        purpose=f"{review.purpose or root}, round {n + 1}",
        prompt=again_prompt(review.prompt, failing),
        depends_on=(fix_id,),
        evidence_for=draft.judged(root),
    )
    owns = tuple(dict.fromkeys(p for w in authors for p in draft.steps[w].owns))
    draft.steps[fix_id] = StepState(id=fix_id, root=root, owns=owns)
    draft.steps[review_id] = StepState(id=review_id, root=root, owns=draft.steps[root].owns)
    draft.change(
        generated=(*draft.base.generated, fix, again),
        deps={**draft.base.deps, fix_id: tuple(authors), review_id: (fix_id,)},
    )
    draft.put(
        root,
        status="fixing",
        why=f"{failure_text(failing)}; {fix_id} puts it right",
        failure_kind="review",
        rounds=(*draft.steps[root].rounds, Round(n=n, fix=fix_id, review=review_id)),
    )


def _evidence(draft: Draft, authors: list[str]) -> tuple[Evidence, ...]:
    """The fix must pass again what the writers' work passed, but for checks of their answers."""
    found: list[Evidence] = []
    for name in authors:
        for one in draft.defs[name].evidence:
            if one not in found and not (isinstance(one, SchemaCheck) and one.file == OUTPUT):
                found.append(one)
    return tuple(found)
