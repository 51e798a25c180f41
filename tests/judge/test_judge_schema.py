"""The typed answer: where it is found, what is wrong with it, and schemas that are no schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bullswarm.errors import UsageError
from bullswarm.judge import check_schema, find_json, load_schema, make_schema, run_schema
from bullswarm.judge.schema import NotFound, answer_gate

REPORT = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
                "required": ["name"],
            },
        },
    },
    "required": ["title"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('  \n{"a": 1}\n', {"a": 1}),
        ("\ufeff[1]", [1]),
        ("42", 42),
        ('"yes"', "yes"),
        ("null", None),
        ('Here:\n```json\n{"a": 1}\n```\nDone.', {"a": 1}),
        ('```\n{"a": 1}\n```', {"a": 1}),
        ('~~~json\n{"a": 1}\n~~~', {"a": 1}),
        ('```json\n{"a": 1}\n```\nbetter:\n```json\n{"a": 2}\n```', {"a": 2}),
        ('```python\nx = 1\n```\n```json\n{"a": 1}\n```', {"a": 1}),
        ('The result is {"a": {"b": [1, 2]}} as asked.', {"a": {"b": [1, 2]}}),
        ('first {"a": 1} then {"a": 2}', {"a": 2}),
        ('a { broken and then {"a": 1}', {"a": 1}),
        ('{"text": "a } in a string"} end', {"text": "a } in a string"}),
        ('````json\n{"code": "```"}\n````', {"code": "```"}),
    ],
)
def test_the_answer_is_the_document_the_last_block_or_the_last_value(text: str, value: Any) -> None:
    assert find_json(text) == value


@pytest.mark.parametrize("text", ["", "no json here", "{", "[1,", "{'a': 1}", '{"a": NaN}'])
def test_no_json_is_found_where_there_is_none(text: str) -> None:
    with pytest.raises(NotFound):
        find_json(text)


def test_a_value_of_the_wanted_type_is_preferred() -> None:
    text = '{"a": 1} (see [1] and [2])'
    assert find_json(text) == [2]
    assert find_json(text, "object") == {"a": 1}
    gate, value = answer_gate(text, {"type": "object", "required": ["a"]})
    assert gate.ok and value == {"a": 1}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["object", "null"]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "required": ["a"]}}},
        {"oneOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}]},
        {"allOf": [{"type": "object"}], "required": ["a"]},
    ],
)
def test_a_footnote_is_no_answer_where_only_an_object_can_be(schema: dict[str, Any]) -> None:
    gate, value = answer_gate('The result is {"a": 1}. Sources: [1]', schema)
    assert gate.ok and value == {"a": 1}


def test_where_both_can_be_the_last_value_counts() -> None:
    schema = {"anyOf": [{"type": "object"}, {"type": "array", "minItems": 2}]}
    gate, _ = answer_gate('Maybe {"a": 1}; no: [1]', schema)
    assert not gate.ok


def test_the_last_answer_counts_though_an_earlier_one_would_pass() -> None:
    text = '```json\n{"title": "x"}\n```\n```json\n{"title": 3}\n```'
    gate, value = answer_gate(text, REPORT)
    assert (gate.ok, value) == (False, None)


@pytest.mark.parametrize(
    ("instance", "path"),
    [
        ({"title": "x", "items": [{"name": "a"}, {"n": "b"}]}, "$.items[1]"),
        ({"title": "x", "items": [{"name": 3}]}, "$.items[0].name"),
        ({"title": ""}, "$.title"),
        ({}, "$"),
        ({"title": "x", "more": 1}, "$"),
        ([], "$"),
    ],
)
def test_a_fault_names_its_path_in_the_answer(instance: Any, path: str) -> None:
    faults = check_schema(instance, REPORT)
    assert path in [fault.path for fault in faults]
    gate, _ = answer_gate(json.dumps(instance), REPORT)
    assert (gate.ok, gate.failure_kind) == (False, "schema")
    assert f"at {faults[0].path}: " in gate.why


def test_at_most_twenty_faults_are_listed() -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    assert len(check_schema(list(range(50)), schema)) == 20
    assert len(check_schema(list(range(50)), schema, limit=3)) == 3


def test_a_choice_names_its_closest_fault() -> None:
    schema = {
        "anyOf": [{"type": "object", "properties": {"a": {"type": "integer"}}}, {"type": "null"}]
    }
    assert "$.a" in str(check_schema({"a": "x"}, schema)[0])


def test_a_huge_value_does_not_make_a_huge_message() -> None:
    assert len(check_schema("x" * 100_000, {"type": "integer"})[0].message) < 400


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"prefixItems": [{"type": "integer"}], "items": False}, [1], [1, 2]),
        ({"unevaluatedProperties": False, "properties": {"a": {}}}, {"a": 1}, {"b": 1}),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1, "b": 2}, {"a": 1}),
        ({"$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n"}, 1, "1"),
        ({"$defs": {"n": {"$anchor": "n", "type": "integer"}}, "$ref": "#n"}, 1, "1"),
        ({"contains": {"const": 1}, "minContains": 2}, [1, 1], [1, 2]),
        ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, {"a": 1, "b": 1}, {"a": 1}),
        (
            {
                "$id": "https://example.com/tree",
                "$dynamicAnchor": "node",
                "type": "object",
                "properties": {"children": {"type": "array", "items": {"$dynamicRef": "#node"}}},
            },
            {"children": [{"children": []}]},
            {"children": [{"children": [3]}]},
        ),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, {"type": "string"}, {"type": 3}),
        (True, 1, None),
    ],
)
def test_the_draft_is_there_in_full(schema: Any, good: Any, bad: Any) -> None:
    assert check_schema(good, schema) == ()
    if schema is not True:
        assert check_schema(bad, schema)


def test_an_older_draft_that_says_so_is_honoured() -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "integer"}]}
    assert check_schema(["x"], schema)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("not json", "not valid JSON"),
        ("", "not valid JSON"),
        ('{"type": "strin"}', "$.type"),
        ('{"properties": {"a": {"minimum": "x"}}}', "$.properties.a.minimum"),
        ("[]", "not array"),
        ('"string"', "not string"),
        ('{"type": NaN}', "not valid JSON"),
        ('{"properties": {"a": {"$ref": "#/$defs/none"}}}', "$.properties.a.$ref"),
        ('{"$ref": "https://example.com/schema.json"}', "can't be resolved"),
        ('{"$ref": "missing.json"}', "can't be resolved"),
        ('{"$ref": "#"}', "refers to itself"),
        ('{"$schema": "https://example.com/none"}', "not a known JSON Schema draft"),
    ],
)
def test_a_bad_schema_file_is_an_error_before_anything_starts(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "schema.json"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_schema(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_schema_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read"):
        load_schema(tmp_path / "none.json")


def test_data_that_looks_like_a_reference_is_no_reference() -> None:
    assert check_schema({"$ref": "x"}, {"const": {"$ref": "x"}}) == ()


def test_a_schema_may_refer_to_a_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "item.json").write_text('{"type": "integer"}')
    (tmp_path / "list.json").write_text('\ufeff{"type": "array", "items": {"$ref": "item.json"}}')
    schema = load_schema(tmp_path / "list.json")
    assert check_schema([1], schema) == ()
    assert check_schema(["x"], schema)[0].path == "$[0]"


def test_a_schema_may_be_yaml(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("type: object\nrequired: [a]\n")
    assert check_schema({}, load_schema(tmp_path / "s.yaml"))


def test_a_recursive_schema_and_a_deep_answer_end() -> None:
    schema = make_schema({"$defs": {"n": {"items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"})
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    assert check_schema(deep, schema)[0].message.startswith("nested too deeply")
    gate, _ = answer_gate("[" * 100_000, schema)
    assert not gate.ok


def test_schema_evidence_reads_a_file_or_the_answer(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{"title": "x"}')
    (tmp_path / "r.yaml").write_text("title: 3\n")
    (tmp_path / "bad.json").write_text("{")
    assert run_schema("r.json", REPORT, cwd=tmp_path).ok
    wrong = run_schema("r.yaml", REPORT, cwd=tmp_path)
    assert not wrong.ok and wrong.faults[0].path == "$.title" and "r.yaml" in wrong.why
    assert run_schema("$output", REPORT, cwd=tmp_path, output='```\n{"title": "x"}\n```').ok
    assert not run_schema("$output", REPORT, cwd=tmp_path, output="no").ok
    assert run_schema("none.json", REPORT, cwd=tmp_path).why == "none.json is missing"
    assert "can't be parsed" in run_schema("bad.json", REPORT, cwd=tmp_path).why
    assert "can't be read" in run_schema(".", REPORT, cwd=tmp_path).why
