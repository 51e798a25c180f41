"""What an author of programs gets: the schema, and an example for the goal at hand."""

from __future__ import annotations

from typing import Any

from bullswarm.workflow.program import (
    SCHEMA_VERSION,
    CommandCheck,
    Deliverable,
    Options,
    Program,
    Route,
    Step,
    as_document,
)
from bullswarm.workflow.requirements import clauses
from bullswarm.workflow.schema import program_schema

PLACEHOLDER = "1. Say here what must be true at the end.\n2. One numbered clause for each."


def contract(goal: str | None = None) -> dict[str, Any]:
    """``{"schemaVersion", "schema", "example"}``. The example is a valid program for ``goal``: its
    numbered clauses are the requirements. Without one it shows how a goal is written."""
    return {
        "schemaVersion": SCHEMA_VERSION,
        "schema": program_schema(),
        "example": as_document(example(goal)),
    }


def example(goal: str | None = None) -> Program:
    """Look, write, check, review: one step each."""
    text = goal if goal is not None and goal.strip() else PLACEHOLDER
    ids = tuple(r.id for r in clauses(text))
    return Program(
        schema_version=3,
        goal=text,
        options=Options(concurrency=4, verify_rounds=1),
        steps=(
            Step(
                id="look",
                purpose="know what is there",
                kind="io-read",
                prompt="Read what matters for the goal. Answer with a short report.",
                deliverable=Deliverable(type="report"),
            ),
            Step(
                id="write",
                purpose="do the work",
                kind="implement",
                depends_on=("look",),
                requirements=ids,
                prompt="Do the work.",
                deliverable=Deliverable(type="files", paths=("RESULT.md",)),
                evidence=(CommandCheck(command="test -s RESULT.md", timeout_s=60),),
                time_box=60,
            ),
            Step(
                id="review",
                purpose="judge the work by each requirement",
                kind="adversarial-acceptance",
                evidence_for=ids or ("write",),
                prompt="Try to show that the work does not do what was asked.",
                route=Route(independent_of=("write",)),
            ),
        ),
    )
