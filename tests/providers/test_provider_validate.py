"""Connectors: every fault at once, each with its path and what would be right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from providerkit import MINIMAL, write

from bullswarm.errors import UsageError
from bullswarm.providers.loading import load_connector
from bullswarm.providers.registry import BUILT_IN
from bullswarm.providers.scaffold import scaffold
from bullswarm.providers.validate import connector_faults, validate_path


def faults(**changes: Any) -> dict[str, str]:
    return {f.path: f.message for f in connector_faults({**MINIMAL, **changes})}


def test_a_minimal_connector_is_valid() -> None:
    assert faults() == {}


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_connector_is_valid(name: str, tmp_path: Path) -> None:
    assert validate_path(name, tmp_path) == ()


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"comand": "x"}, "comand", "did you mean command?"),
        ({"model_args": []}, "model_args", "did you mean modelArgs?"),
        ({"command": 3}, "command", "must be `str`, not `int`"),
        ({"command": " "}, "command", "must name the program"),
        ({"name": "My Agent"}, "name", "lower case"),
        ({"args": ["{prompt}", "{modle}"]}, "args[1]", "{modle} is no place"),
        ({"args": ["run"]}, "args", "must hold {prompt}"),
        ({"promptVia": "stdin"}, "args", "must not hold {prompt}"),
        ({"promptVia": "pipe"}, "promptVia", "pipe"),
        ({"args": ["{prompt}", "x{model_args}"]}, "args[1]", "an element of its own"),
        ({"modelArgs": ["-m", "{model}"]}, "modelArgs", "never used"),
        ({"modelArgs": ["-m"], "args": ["{prompt}", "{model_args}"]}, "modelArgs", "{model}"),
        ({"laneArgs": {"review": []}}, "laneArgs.review", "none of analyze, build, chore"),
        ({"lanes": ["biuld"]}, "lanes[0]", "none of analyze, build, chore"),
        ({"lanes": []}, "lanes", "at least one"),
        ({"costRank": -1}, "costRank", "0 or more"),
        ({"quotaWindow": "daily"}, "quotaWindow", "daily"),
        ({"meter": "http://x"}, "meter", "file:<path>"),
        ({"homeGlob": "~/.x", "homeEnv": "X"}, "homeGlob", "*"),
        ({"homeGlob": "~/.x-*"}, "homeEnv", "homeGlob"),
        ({"models": [{"nam": "a"}]}, "models[0].nam", "did you mean name?"),
        ({"models": [{"name": "a"}], "defaultModel": "b"}, "defaultModel", "none of a"),
        ({"earlyKill": {"auth": 0}}, "earlyKill.auth", "1 or more"),
        ({"silence": {"startupS": 0}}, "silence.startupS", "more than 0"),
        ({"phrases": {"quota": ["("]}}, "phrases.quota[0]", "no regular expression"),
        ({"stream": {"format": "text"}}, "stream.terminal", "must be false"),
        ({"stream": {"rules": []}}, "stream.rules", "emits final"),
        ({"stream": {"rules": [{"emit": "boo"}]}}, "stream.rules[0]", "'boo' is none of"),
        ({"stream": {"rules": [{"when": {}}]}}, "stream.rules[0].emit", "is missing"),
    ],
)
def test_a_fault_names_its_field_and_what_would_be_right(
    changes: dict[str, Any], path: str, words: str
) -> None:
    found = faults(**changes)
    assert path in found
    assert words in found[path]


def test_all_faults_are_told_at_once() -> None:
    found = faults(comand="x", costRank="cheap", lanes=["nope"], stream={"format": "xml"})
    assert set(found) >= {"comand", "costRank", "lanes[0]", "stream.format"}


def test_missing_fields_are_named() -> None:
    assert {f.path for f in connector_faults({})} >= {"name", "command"}


def test_plain_text_needs_no_rules() -> None:
    assert faults(stream={"format": "text", "terminal": False}) == {}


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("connector.json", "{", "is no JSON"),
        ("connector.toml", "name = ", "is no TOML"),
        ("connector.json", "[]", "a connector is a table"),
    ],
)
def test_a_damaged_file_is_named(file: str, text: str, words: str, tmp_path: Path) -> None:
    write(tmp_path / "mine" / file, text)
    (fault,) = validate_path("mine", tmp_path)
    assert words in fault.message
    assert file in fault.message


def test_a_folder_without_or_with_two_connectors_says_so(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert "there is no connector.json" in validate_path("mine", tmp_path)[0].message
    write(tmp_path / "mine" / "connector.json", MINIMAL)
    write(tmp_path / "mine" / "connector.toml", "")
    assert "keep one" in validate_path("mine", tmp_path)[0].message


def test_a_name_that_is_nowhere_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="scaffold ghost"):
        validate_path("ghost", tmp_path)


def test_json_and_toml_say_the_same(tmp_path: Path) -> None:
    write(tmp_path / "a" / "connector.json", MINIMAL)
    toml = 'name = "mine"\ncommand = "mine"\nargs = ["{prompt}"]\n[[stream.rules]]\n'
    toml += 'emit = "final"\nwhen = { type = "done" }\ntake = { text = "text" }\n'
    write(tmp_path / "b" / "connector.toml", toml)
    assert load_connector(tmp_path / "a") == load_connector(tmp_path / "b")


def test_broken_code_beside_a_connector_is_a_fault(tmp_path: Path) -> None:
    write(tmp_path / "mine" / "connector.json", MINIMAL)
    write(tmp_path / "mine" / "provider.py", "raise RuntimeError('no luck')")
    (fault,) = validate_path("mine", tmp_path)
    assert (fault.path, fault.message) == ("provider.py", "RuntimeError: no luck")


def test_what_scaffold_writes_is_valid_and_commented(tmp_path: Path) -> None:
    folder = scaffold(tmp_path, "my-agent")
    assert validate_path("my-agent", tmp_path) == ()
    connector = load_connector(folder)
    assert (connector.name, connector.command) == ("my-agent", "my-agent")
    assert (folder / "connector.toml").read_text().count("\n#") > 20
    assert "validate my-agent" in (folder / "README.md").read_text()


@pytest.mark.parametrize("name", ["My Agent", "", "../x", "a/b"])
def test_scaffold_refuses_what_is_no_name(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name:"):
        scaffold(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


def test_scaffold_overwrites_nothing(tmp_path: Path) -> None:
    scaffold(tmp_path, "mine")
    (tmp_path / "mine" / "connector.toml").write_text("kept")
    with pytest.raises(UsageError, match="there already"):
        scaffold(tmp_path, "mine")
    assert (tmp_path / "mine" / "connector.toml").read_text() == "kept"


def test_faults_are_json_for_programs() -> None:
    import msgspec

    (fault,) = connector_faults({**MINIMAL, "costRank": -1})
    assert json.loads(msgspec.json.encode(fault)) == {
        "path": "costRank",
        "message": "must be 0 or more",
    }
