"""Validation: every fault at once, each with its path and a way out; advice is no refusal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from workflow_rig import command_check, document, review, step

from bullswarm.errors import UsageError
from bullswarm.workflow.program import export, parse, read
from bullswarm.workflow.validate import validate

GOAL = "1. one\n2. two"


def files(*paths: str) -> dict[str, Any]:
    return {"type": "files", "paths": list(paths)}


def found(value: Any, **more: Any) -> list[tuple[str, str]]:
    program, faults, _ = validate(value, **more)
    assert (program is None) == bool(faults)
    return [(f.path, f.message + " " + f.fix) for f in faults]


CASES: list[tuple[str, Any, str, str]] = [
    ("not an object", [], "$", "an object"),
    ("no version", {"steps": [step("a")]}, "$", "schemaVersion is missing"),
    ("another version", {"schemaVersion": 2, "steps": [step("a")]}, "$.schemaVersion", "3"),
    ("a bool version", {"schemaVersion": True, "steps": [step("a")]}, "$.schemaVersion", "3"),
    ("no steps", document(), "$.steps", "empty"),
    ("a step that is no object", document(3), "$.steps[0]", "object"),
    ("no prompt", document({"id": "a"}), "$.steps[0]", "prompt is missing"),
    ("an empty prompt", document(step("a", prompt=" \n")), "$.steps[0].prompt", "empty"),
    ("an unknown key", document(step("a", dependson=[])), "$.steps[0].dependson", "'dependsOn'"),
    ("snake case", document(step("a", time_box=3)), "$.steps[0].time_box", "'timeBox'"),
    ("an unknown role", document(step("a", role="act ")), "$.steps[0].role", "'act'"),
    ("an unknown kind", document(step("a", kind="implment")), "$.steps[0].kind", "'implement'"),
    ("a bad id", document(step("a b")), "$.steps[0].id", "not an id"),
    ("an id with a line break", document(step("a\n")), "$.steps[0].id", "not an id"),
    ("a string for a list", document(step("a", dependsOn="b")), "$.steps[0].dependsOn", "[b]"),
    ("a time box of 0", document(step("a", timeBox=0)), "$.steps[0].timeBox", "over 0"),
    ("an endless time box", document(step("a", timeBox=float("inf"))), "$.steps[0].timeBox", "out"),
    ("rounds over 3", document(step("a"), options={"verifyRounds": 4}), "$.options.verifyRounds",
     "from 0 to 3"),
    ("rounds below 0", document(step("a"), options={"verifyRounds": -1}), "$.options.verifyRounds",
     "from 0 to 3"),
    ("half a round", document(step("a"), options={"verifyRounds": 1.5}), "$.options.verifyRounds",
     "whole number"),
    ("no concurrency", document(step("a"), options={"concurrency": 0}), "$.options.concurrency",
     "from 1"),
    ("an id twice", document(step("a"), step("a")), "$.steps[1].id", "used twice"),
    ("unknown input", document(step("alpha"), step("b", "alhpa")), "$.steps[1].dependsOn[0]",
     "'alpha'"),
    ("itself as input", document(step("a", "a")), "$.steps[0].dependsOn[0]", "itself"),
    ("an input twice", document(step("a"), step("b", "a", "a")), "$.steps[1].dependsOn[1]",
     "twice"),
    ("a cycle", document(step("a", "c"), step("b", "a"), step("c", "b")), "$.steps[0].dependsOn",
     "a -> c -> b -> a"),
    ("a cycle through a review", document(step("a", "r"), review("r", "a")),
     "$.steps[0].dependsOn", "a -> r -> a"),
    ("a cycle through independence",
     document(step("a", "b"), step("b", route={"independentOf": ["a"]})),
     "$.steps[0].dependsOn", "a -> b -> a"),
    ("an unknown requirement", document(step("a", requirements=["R9"]), goal=GOAL),
     "$.steps[0].requirements[0]", "R1, R2"),
    ("a step as a requirement", document(step("a"), step("b", requirements=["a"])),
     "$.steps[1].requirements[0]", "no requirement"),
    ("an unknown thing to judge", document(step("a"), review("r", "R3"), goal=GOAL),
     "$.steps[1].evidenceFor[0]", "R1"),
    ("a review of itself", document(review("r", "r")), "$.steps[0].evidenceFor[0]", "itself"),
    ("a review of its own work", document(review("r", "R1", requirements=["R1"]), goal=GOAL),
     "$.steps[0].evidenceFor[0]", "itself"),
    ("a review of a review", document(step("a"), review("r", "a"), review("q", "r")),
     "$.steps[2].evidenceFor[0]", "is a review"),
    ("a review that produces", document(step("a"), review("r", "a", role="produce")),
     "$.steps[1].role", "check"),
    ("a review with its own answer", document(step("a"), review("r", "a", answerSchema={})),
     "$.steps[1].answerSchema", "given"),
    ("a review in its own tree", document(step("a"), review("r", "a", workspace="own")),
     "$.steps[1].workspace", "shared"),
    ("unknown independence", document(step("a", route={"independentOf": ["zz"]})),
     "$.steps[0].route.independentOf[0]", "no step"),
    ("used and avoided", document(step("a", route={"use": ["x"], "avoid": ["x"]})),
     "$.steps[0].route", "both"),
    ("a kind of another role", document(step("a", role="check", kind="implement")),
     "$.steps[0].kind", "'produce'"),
    ("outward without act", document(step("a", role="produce", deliverable={"type": "outward"})),
     "$.steps[0].deliverable.type", "'act'"),
    ("act in its own tree", document(step("a", role="act", workspace="own")),
     "$.steps[0].workspace", "never started twice"),
    ("a path outside", document(step("a", deliverable=files("../x"))),
     "$.steps[0].deliverable.paths[0]", "leaves"),
    ("a path outside by a detour", document(step("a", deliverable=files("a/../../x"))),
     "$.steps[0].deliverable.paths[0]", "leaves"),
    ("an absolute path", document(step("a", deliverable=files("/etc/passwd"))),
     "$.steps[0].deliverable.paths[0]", "absolute"),
    ("the folder itself", document(step("a", deliverable=files("x/.."))),
     "$.steps[0].deliverable.paths[0]", "whole"),
    ("the same path twice", document(step("a", deliverable=files("x", "./x"))),
     "$.steps[0].deliverable.paths[1]", "twice"),
    ("two owners", document(step("a", deliverable=files("x")), step("b", deliverable=files("./x"))),
     "$.steps[1].deliverable.paths", "dependsOn: [a]"),
    ("an owner of the folder", document(step("a", deliverable=files("d/x")),
     step("b", deliverable=files("d"))), "$.steps[1].deliverable.paths", "'d/x'"),
    ("evidence of no type", document(step("a", evidence=[{"command": "x"}])),
     "$.steps[0].evidence[0]", "type is missing"),
    ("evidence of an odd type", document(step("a", evidence=[{"type": "comand"}])),
     "$.steps[0].evidence[0].type", "'command'"),
    ("an empty command", document(step("a", evidence=[command_check(" ")])),
     "$.steps[0].evidence[0].command", "empty"),
    ("an empty command list", document(step("a", evidence=[{"type": "command", "command": []}])),
     "$.steps[0].evidence[0].command", "empty"),
    ("a number in a command",
     document(step("a", evidence=[{"type": "command", "command": ["x", 3]}])),
     "$.steps[0].evidence[0].command[1]", "string"),
    ("no time for a command",
     document(step("a", evidence=[{"type": "command", "command": "x", "timeoutS": 0}])),
     "$.steps[0].evidence[0].timeoutS", "over 0"),
    ("a schema that is none",
     document(step("a", evidence=[{"type": "schema", "schema": {"type": "strin"}}])),
     "$.steps[0].evidence[0].schema", "2020-12"),
    ("an answer schema that is none", document(step("a", answerSchema={"minLength": "x"})),
     "$.steps[0].answerSchema", "2020-12"),
    ("a schema outside", document(step("a", evidence=[{"type": "schema", "schema": "/s.json"}])),
     "$.steps[0].evidence[0].schema", "absolute"),
    ("a checked file outside",
     document(step("a", evidence=[{"type": "schema", "schema": {}, "file": "../f"}])),
     "$.steps[0].evidence[0].file", "leaves"),
    ("a requirement twice",
     document(step("a"), requirements=[{"id": "Q", "text": "x"}, {"id": "Q", "text": "y"}]),
     "$.requirements[1].id", "twice"),
    ("a step named like a requirement", document(step("R1"), goal=GOAL), "$.steps[0].id",
     "requirement's id"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "path", "words"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_a_fault_is_named_with_its_path_and_a_way_out(value: Any, path: str, words: str) -> None:
    faults = found(value)
    assert any(p == path and words in text for p, text in faults), faults


def test_every_fault_of_every_sort_comes_in_one_pass() -> None:
    faults = dict(
        found(
            document(
                step("a", "c", deliverable=files("../x")),
                step("b", "zz", prompt="", evidence=[{"type": "schema", "schema": {"type": "no"}}]),
                step("c", "a", efort="low"),
                step("a"),
                options={"verifyRounds": 9},
            )
        )
    )
    assert set(faults) == {
        "$.options.verifyRounds",
        "$.steps[0].deliverable.paths[0]",
        "$.steps[1].dependsOn[0]",
        "$.steps[1].evidence[0].schema",
        "$.steps[1].prompt",
        "$.steps[2].efort",
        "$.steps[3].id",
    }


def test_a_cycle_is_found_beside_other_faults() -> None:
    faults = found(document(step("a", "b"), step("b", "a"), step("c", "nope", extra=1)))
    assert [p for p, _ in faults] == [
        "$.steps[0].dependsOn",
        "$.steps[2].dependsOn[0]",
        "$.steps[2].extra",
    ]


def test_faults_come_in_the_order_of_the_document() -> None:
    faults = found(document(*(step(f"s{i}", bad=1) for i in range(12))))
    assert [p for p, _ in faults] == [f"$.steps[{i}].bad" for i in range(12)]


def test_every_knot_is_named_once() -> None:
    faults = found(document(step("a", "b"), step("b", "a"), step("c", "d"), step("d", "c")))
    assert len(faults) == 2


@pytest.mark.parametrize("needs", [("a",), ("m",)], ids=["directly", "over another step"])
def test_one_path_may_have_two_owners_in_a_row(needs: tuple[str, ...]) -> None:
    first, middle = step("a", deliverable=files("x")), step("m", "a")
    assert not found(document(first, middle, step("b", *needs, deliverable=files("x"))))


def test_schema_files_are_read_where_the_folder_is_known(tmp_path: Path) -> None:
    value = document(step("a", answerSchema="s.json"))
    assert not found(value)
    assert found(value, folder=tmp_path)[0][0] == "$.steps[0].answerSchema"
    (tmp_path / "s.json").write_text('{"type": "object"}')
    assert not found(value, folder=tmp_path)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (document(step("a", requirements=["R1"]), goal=GOAL), "no step affects R2"),
        (document(step("a", requirements=["R1", "R2"]), goal=GOAL), "nothing checks R1"),
        (document(step("a")), "neither evidence nor a review"),
        (document(step("a"), review("r", "a")), "independentOf: [a]"),
        (
            document(
                step("a", deliverable={"type": "files", "paths": ["a"]}),
                step("b", "a", workspace="own"),
            ),
            "b starts from the last commit and does not see what a left",
        ),
        (document(step("s0"), *(step(f"s{i}", f"s{i - 1}") for i in range(1, 9))), "9 steps wait"),
    ],
)
def test_advice_is_given_and_refuses_nothing(value: Any, words: str) -> None:
    program, faults, advice = validate(value)
    assert program is not None and not faults
    assert any(words in a.message for a in advice), advice


def test_a_program_with_nothing_to_better_gets_no_advice() -> None:
    value = document(
        step("a", requirements=["R1"], evidence=[command_check()]),
        review("r", "R1", route={"independentOf": ["a"]}),
        goal="1. one",
    )
    assert validate(value)[2] == ()


def test_json_and_yaml_say_the_same(tmp_path: Path) -> None:
    program = validate(document(step("a", evidence=[command_check()]), step("b", "a"), goal=GOAL))[
        0
    ]
    assert program is not None
    for name, text in (("p.json", export(program)), ("p.yaml", export(program, yaml=True))):
        (tmp_path / name).write_text(text)
        assert validate(read(tmp_path / name))[0] == program


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.json", '{"a": }'),
        ("p.yaml", "a: [1\nb: 2"),
        ("p.json", '{"steps": [{"id": "a", "id": "b"}]}'),
        ("p.yaml", "steps:\n- id: a\n  id: b\n"),
        ("p.json", "[" * 100_000),
        ("p.yaml", "- " * 3_000 + "a"),
    ],
    ids=["json", "yaml", "json-twice", "yaml-twice", "json-deep", "yaml-deep"],
)
def test_a_slip_in_the_text_is_a_usage_error(name: str, text: str) -> None:
    with pytest.raises(UsageError, match=name):
        parse(text, name=name)


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read"):
        read(tmp_path / "none.json")
