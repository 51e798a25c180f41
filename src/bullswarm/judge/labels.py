"""The evidence label of a finished step. A pure function of the step's facts.

What proves is a check that the kernel ran, or another agent's review of what the step had to meet.
A worker's own answer is a claim, however well formed; a caller's acceptance is a decision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

Label = Literal[
    "proven by command",
    "proven by schema",
    "answer checked",
    "proven by review",
    "review pending",
    "finished · unproven",
    "choice",
]

LABELS: tuple[Label, ...] = (
    "proven by command",
    "proven by schema",
    "proven by review",
    "answer checked",
    "review pending",
    "finished · unproven",
    "choice",
)

PROOF: frozenset[Label] = frozenset({"proven by command", "proven by schema", "proven by review"})
"""The labels that count as proven."""


class Facts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is known of a step.

    ``command`` and ``schema``: whether that evidence passed, None where none was declared.
    ``answer_schema``: whether the typed answer passed, None where none was asked for. ``reviews``:
    for each requirement that the step affects, whether a review passed it (None: not judged yet).
    ``review_covers``: a review step that is still to come covers them.
    """

    finished: bool = True
    accepted: bool = False
    command: bool | None = None
    schema: bool | None = None
    answer_schema: bool | None = None
    reviews: Mapping[str, bool | None] = {}
    review_covers: bool = False


def label(facts: Facts) -> Label | None:
    """The step's label; None for one that is neither finished nor accepted.

    Order: the caller's choice, then proof (command, schema, review), then the checked answer, then
    a pending review. A failed piece of evidence never leaves a step proven by another one.
    """
    if facts.accepted:
        return "choice"
    if not facts.finished:
        return None
    broken = facts.command is False or facts.schema is False
    if not broken:
        if facts.command:
            return "proven by command"
        if facts.schema:
            return "proven by schema"
        if facts.reviews and all(verdict is True for verdict in facts.reviews.values()):
            return "proven by review"
        if facts.answer_schema:
            return "answer checked"
    undecided = not facts.reviews or any(verdict is None for verdict in facts.reviews.values())
    if facts.review_covers and undecided and not broken:
        return "review pending"
    return "finished · unproven"


def is_proof(found: Label | None) -> bool:
    """Whether a label counts as proven."""
    return found in PROOF
