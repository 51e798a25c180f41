"""The evidence labels, word for word."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullswarm.judge import LABELS, PROOF, Facts, is_proof, label


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"command": True}, "proven by command"),
        ({"command": True, "schema": True}, "proven by command"),
        ({"command": True, "answer_schema": True}, "proven by command"),
        ({"command": True, "review_covers": True}, "proven by command"),
        ({"schema": True}, "proven by schema"),
        ({"schema": True, "answer_schema": True}, "proven by schema"),
        ({"schema": True, "reviews": {"r1": True}}, "proven by schema"),
        ({"answer_schema": True}, "answer checked"),
        ({"answer_schema": True, "review_covers": True}, "answer checked"),
        ({"answer_schema": True, "reviews": {"r1": True}}, "proven by review"),
        ({"answer_schema": False}, "finished · unproven"),
        ({"reviews": {"r1": True}}, "proven by review"),
        ({"reviews": {"r1": True, "r2": True}}, "proven by review"),
        ({"reviews": {"r1": True, "r2": None}, "review_covers": True}, "review pending"),
        ({"reviews": {"r1": True, "r2": None}}, "finished · unproven"),
        ({"reviews": {"r1": True, "r2": False}}, "finished · unproven"),
        ({"reviews": {"r1": False}, "review_covers": True}, "finished · unproven"),
        ({"review_covers": True}, "review pending"),
        ({"reviews": {}}, "finished · unproven"),
        ({}, "finished · unproven"),
        ({"command": False, "reviews": {"r1": True}}, "finished · unproven"),
        ({"command": False, "schema": True}, "finished · unproven"),
        ({"command": True, "schema": False}, "finished · unproven"),
        ({"accepted": True}, "choice"),
        ({"accepted": True, "command": True}, "choice"),
        ({"accepted": True, "finished": False}, "choice"),
        ({"finished": False}, None),
        ({"finished": False, "command": True}, None),
    ],
)
def test_the_label_follows_from_the_facts(facts: dict[str, Any], expected: str | None) -> None:
    assert label(Facts(**facts)) == expected


def test_the_words_are_exactly_these() -> None:
    assert set(LABELS) == {
        "proven by command",
        "proven by schema",
        "answer checked",
        "proven by review",
        "review pending",
        "finished · unproven",
        "choice",
    }
    assert (
        {name for name in LABELS if is_proof(name)}
        == PROOF
        == {"proven by command", "proven by schema", "proven by review"}
    )


MAYBE = st.sampled_from([None, True, False])


@given(
    st.booleans(),
    MAYBE,
    MAYBE,
    MAYBE,
    st.dictionaries(st.text(max_size=2), MAYBE, max_size=3),
    st.booleans(),
)
def test_acceptance_and_failed_evidence_never_prove(
    accepted: bool,
    command: bool | None,
    schema: bool | None,
    typed: bool | None,
    reviews: dict[str, bool | None],
    covers: bool,
) -> None:
    found = label(
        Facts(
            accepted=accepted,
            command=command,
            schema=schema,
            answer_schema=typed,
            reviews=reviews,
            review_covers=covers,
        )
    )
    if accepted or command is False or schema is False:
        assert not is_proof(found)
