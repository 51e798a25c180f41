"""Requirements, defaults, the published schema and the contract."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workflow_rig import command_check, document, program, review, step

from bullswarm.judge.schema import check_schema, make_schema
from bullswarm.workflow import schema
from bullswarm.workflow.contract import contract
from bullswarm.workflow.defaults import (
    DELIVERABLES,
    KINDS,
    TABLE,
    must_change,
    role_of,
    routing_of,
    tables,
)
from bullswarm.workflow.graph import cycles, dependencies, heights, judged, order
from bullswarm.workflow.program import ROLES, Kind, Program, Step
from bullswarm.workflow.requirements import clauses, requirements_of
from bullswarm.workflow.shape import faults_of
from bullswarm.workflow.validate import validate


@pytest.mark.parametrize(
    ("goal", "texts"),
    [
        ("", []),
        ("Do it well, in 3. attempts", []),
        ("1. one\n2. two", ["one", "two"]),
        ("Intro:\n\n1) one\n2) two\n\nThe end.", ["one", "two"]),
        ("1. one\n   goes on\n2. two", ["one\ngoes on", "two"]),
        ("1. one\n   - a\n   - b\n2. two", ["one\n- a\n- b", "two"]),
        ("1. one\n   1. inner\n   2. inner too\n2. two", ["one\n1. inner\n2. inner too", "two"]),
        ("1. one\n\n   more of it\n\nno more", ["one\n\nmore of it"]),
        ("  1. one\n  2. two", ["one", "two"]),
        ("3. three\n7. seven", ["three", "seven"]),
        ("1.5 litres\n2020 was a year", []),
        ("1. one\n```\n2. code\n```\n2. two", ["one\n```\n2. code\n```", "two"]),
        ("1. eins\r\n2. zwei", ["eins", "zwei"]),
    ],
)  # fmt: skip
def test_the_goals_numbered_clauses_become_requirements(goal: str, texts: list[str]) -> None:
    found = clauses(goal)
    assert [r.text for r in found] == texts
    assert [r.id for r in found] == [f"R{i + 1}" for i in range(len(texts))]


def test_a_list_of_requirements_beats_the_goals_clauses() -> None:
    made = program(step("a"), goal="1. one", requirements=[{"id": "Q", "text": "other"}])
    assert [r.id for r in requirements_of(made)] == ["Q"]


def test_every_role_and_kind_has_its_routing() -> None:
    assert set(TABLE) == set(ROLES)
    assert set(KINDS) == set(get_args(Kind))
    for role, row in TABLE.items():
        assert set(row) - {None} == set(DELIVERABLES) - ({"outward"} if role != "act" else set())
    text = tables()
    assert all(f"| {kind} |" in text for kind in KINDS)
    assert all(f"| {role} |" in text for role in ROLES)


@pytest.mark.parametrize(
    ("more", "role", "lane", "effort"),
    [
        ({}, "produce", "build", "high"),
        ({"role": "investigate"}, "investigate", "analyze", "medium"),
        ({"kind": "mechanical"}, "transform", "chore", "low"),
        ({"kind": "architecture"}, "investigate", "analyze", "high"),
        ({"kind": "io-read"}, "investigate", "analyze", "low"),
        ({"role": "check"}, "check", "analyze", "high"),
        ({"kind": "check"}, "check", "analyze", "medium"),
        ({"deliverable": {"type": "outward"}}, "act", "chore", "medium"),
        ({"role": "produce", "deliverable": {"type": "report"}}, "produce", "analyze", "high"),
        ({"kind": "implement", "effort": "low"}, "produce", "build", "low"),
    ],
)
def test_role_and_deliverable_set_lane_and_effort(
    more: dict[str, Any], role: str, lane: str, effort: str
) -> None:
    one = program(step("a", **more)).steps[0]
    found = routing_of(one)
    assert (role_of(one), found.lane, found.effort) == (role, lane, effort)


def test_a_step_that_has_to_write_never_runs_on_a_lane_that_only_reads() -> None:
    report = {"type": "report", "paths": ["r.md"]}
    one = program(step("a", role="investigate", deliverable=report)).steps[0]
    assert routing_of(one).lane == "build"


def test_an_outward_action_need_not_change_a_file() -> None:
    acts, makes = program(step("a", role="act"), step("b")).steps
    assert must_change(acts) is False and must_change(makes) is None


def test_the_published_schema_is_in_step_with_the_structs() -> None:
    assert schema.FILE.read_text(encoding="utf-8") == schema.text()


def test_every_field_of_the_published_schema_has_a_description() -> None:
    made = schema.program_schema()
    for part in (made, *made["$defs"].values()):
        for name, field in part["properties"].items():
            assert field.get("description") or name == "type", name


SHAPES: list[tuple[Any, bool]] = [
    (document(step("a")), True),
    (document(step("a", evidence=[command_check(), {"type": "schema", "schema": True}])), True),
    (document(step("a", evidence=[{"type": "command", "command": ["ls", ""]}])), True),
    (document(step("a", role=None, answerSchema={"type": "object"}, timeBox=5)), True),
    ({**document(step("a")), "$schema": "x"}, True),
    (document(), False),
    (document(step("a", nope=1)), False),
    (document(step("a b")), False),
    (document(step("a", prompt="")), False),
    (document(step("a", role="do")), False),
    (document(step("a", evidence=[{"type": "x"}])), False),
    (document(step("a", evidence=[{"command": "x"}])), False),
    (document(step("a", evidence=[{"type": "command"}])), False),
    (document(step("a", timeBox=0)), False),
    (document(step("a", timeBox="5")), False),
    (document(step("a"), options={"verifyRounds": 4}), False),
    (document(step("a"), options={"concurrency": 2.5}), False),
    (document(step("a"), requirements=[{"id": "x"}]), False),
    ({"schemaVersion": 2, "steps": [step("a")]}, False),
]


@pytest.mark.parametrize(("value", "good"), SHAPES)
def test_the_schema_and_the_validator_agree_on_shapes(value: Any, good: bool) -> None:
    known = make_schema(schema.program_schema())
    assert (not check_schema(value, known)) is good
    assert (not faults_of(value, Program)) is good
    try:
        msgspec.convert(value, Program)
        taken = True
    except msgspec.ValidationError:
        taken = False
    assert taken is good


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 400) | st.text("aR1 $.", max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "type", "command", "paths", "x"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
STEP_KEYS = [f.encode_name for f in msgspec.structs.fields(Step)]


@settings(max_examples=150, deadline=None)
@given(
    steps=st.lists(st.dictionaries(st.sampled_from(STEP_KEYS), JUNK, max_size=4), max_size=3),
    top=st.dictionaries(st.sampled_from(["goal", "options", "requirements", "x"]), JUNK),
)
def test_no_document_breaks_the_validator(steps: list[Any], top: dict[str, Any]) -> None:
    value = {"schemaVersion": 3, "steps": [{"id": "a", "prompt": "p", **s} for s in steps], **top}
    made, faults, _ = validate(value)
    assert (made is None) == bool(faults)
    assert all(f.path.startswith("$") and f.message for f in faults)
    if made is not None:
        assert msgspec.convert(value, Program) == made


@pytest.mark.parametrize("goal", [None, "", "Make it so", "1. one\n2. two\n   deeper"])
def test_the_contract_holds_a_valid_example_for_the_goal(goal: str | None) -> None:
    made = contract(goal)
    assert json.loads(json.dumps(made)) == made
    found, faults, _ = validate(made["example"])
    assert found is not None, faults
    assert not check_schema(made["example"], make_schema(made["schema"]))
    if goal:
        assert found.goal == goal
        ids = [r.id for r in clauses(goal)]
        assert list(found.steps[1].requirements) == ids
        assert list(found.steps[2].evidence_for) == (ids or ["write"])


def test_a_review_waits_for_the_work_it_judges() -> None:
    steps = program(
        step("a", requirements=["R1"]),
        step("b", requirements=["R1"]),
        review("r", "R1"),
        step("polish", "r", requirements=["R1"]),
        goal="1. one",
    ).steps
    deps = dependencies(steps)
    assert deps["r"] == ("a", "b")
    assert deps["polish"] == ("r",)
    assert order(deps)[-1] == "polish"
    assert heights(deps) == {"a": 2, "b": 2, "r": 1, "polish": 0}


def test_two_reviews_that_wait_for_each_others_work_make_no_cycle() -> None:
    steps = program(
        review("r1", "R1"),
        review("r2", "R2"),
        step("a", "r2", requirements=["R1"]),
        step("b", "r1", requirements=["R2"]),
        goal="1. one\n2. two",
    ).steps
    assert cycles(dependencies(steps)) == ()


def test_a_judged_step_stands_for_its_requirements() -> None:
    made = program(
        step("a", requirements=["R1", "R2"]), step("b"), review("r", "a", "b"), goal="1. x\n2. y"
    )
    assert judged(made.steps[2], {s.id: s for s in made.steps}) == ("R1", "R2", "b")
