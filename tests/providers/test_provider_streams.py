"""Declarative stream rules: what they match, what they take, and that nothing makes them raise."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullswarm.dispatch.types import Event, Usage
from bullswarm.providers.registry import Registry
from bullswarm.providers.streams import Reader
from bullswarm.providers.types import Rule, Stream


def read(raw: dict[str, Any], *rules: dict[str, Any]) -> tuple[Event, ...]:
    return Reader(Stream(rules=tuple(msgspec.convert(r, Rule) for r in rules))).read(raw)


@pytest.mark.parametrize(
    ("when", "raw", "matches"),
    [
        ({}, {}, True),
        ({"type": "a"}, {"type": "a"}, True),
        ({"type": "a"}, {"type": "b"}, False),
        ({"type": "a"}, {}, False),
        ({"type": ["a", "b"]}, {"type": "b"}, True),
        ({"a.b": 1}, {"a": {"b": 1}}, True),
        ({"a.b": 1}, {"a": {"b": True}}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": [1, True]}, {"a": True}, True),
        ({"a.0": "x"}, {"a": ["x"]}, True),
        ({"a.1": "x"}, {"a": ["x"]}, False),
        ({"a.b": "x"}, {"a": "x"}, False),
        ({"a": {"exists": True}}, {"a": 0}, True),
        ({"a": {"exists": True}}, {"a": None}, False),
        ({"a": {"exists": False}}, {}, True),
        ({"a": {"exists": False}}, {"a": 1}, False),
        ({"a": {"matches": "^no"}}, {"a": "NOPE"}, True),
        ({"a": {"matches": "^no"}}, {"a": 3}, False),
        ({"type": "a", "b": 1}, {"type": "a", "b": 2}, False),
    ],
)
def test_a_rule_matches_where_all_of_when_holds(
    when: dict[str, Any], raw: dict[str, Any], matches: bool
) -> None:
    assert bool(read(raw, {"emit": "progress", "when": when})) is matches


@pytest.mark.parametrize(
    ("field", "value", "target", "expected"),
    [
        ("text", "t", "text", "t"),
        ("text", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "text", "a\nb"),
        ("text", {"a": 1}, "text", '{"a":1}'),
        ("text", None, "text", ""),
        ("session", "s", "session", "s"),
        ("session", {"a": 1}, "session", None),
        ("status", 429, "status", 429),
        ("status", "429", "status", 429),
        ("status", "many", "status", None),
        ("status", True, "status", None),
        ("maxAttempts", 5.0, "max_attempts", 5),
        ("max_attempts", 5, "max_attempts", 5),
        ("retryAfterS", "1.5", "retry_after_s", 1.5),
        ("retryAfterMs", 1500, "retry_after_s", 1.5),
        ("usedPct", 41, "used_pct", 41.0),
        ("usedPct", None, "used_pct", None),
        ("usedFraction", 0.25, "used_pct", 25.0),
        ("resetsAt", 1796107596, "resets_at", datetime.fromtimestamp(1796107596, UTC)),
        ("resetsAt", "1796107596", "resets_at", datetime.fromtimestamp(1796107596, UTC)),
        ("resetsAt", "2026-12-01T00:00:00Z", "resets_at", datetime(2026, 12, 1, tzinfo=UTC)),
        ("resetsAt", "soon", "resets_at", None),
        ("isError", True, "is_error", True),
        ("isError", "yes", "is_error", False),
        ("headers", {"Retry-After": 3, "x": ["y"]}, "headers", {"retry-after": "3"}),
    ],
)
def test_take_reads_a_value_as_its_field_needs_it(
    field: str, value: Any, target: str, expected: Any
) -> None:
    (event,) = read({"v": value}, {"emit": "progress", "take": {field: "v"}})
    assert getattr(event, target) == expected


def test_take_reads_the_first_path_that_is_there() -> None:
    rule = {"emit": "text", "take": {"text": "a.b|c"}}
    assert read({"c": "last"}, rule)[0].text == "last"
    assert read({"a": {"b": "first"}, "c": "last"}, rule)[0].text == "first"


def test_usage_is_unknown_where_nothing_names_it() -> None:
    rule = {"emit": "final", "take": {"usage.inputTokens": "in", "usage.costUsd": "usd"}}
    assert read({}, rule)[0].usage is None
    assert read({"usd": 0}, rule)[0].usage == Usage(cost_usd=0.0)


def test_named_groups_of_a_match_fill_fields() -> None:
    rule = {"emit": "retry", "when": {"m": {"matches": r"(?P<attempt>\d)/(?P<max_attempts>\d)"}}}
    (event,) = read({"m": "again 2/5"}, rule)
    assert (event.attempt, event.max_attempts) == (2, 5)


def test_set_beats_take() -> None:
    rule = {"emit": "final", "take": {"isError": "e"}, "set": {"isError": True}}
    assert read({"e": False}, rule)[0].is_error


def test_the_first_rule_that_matches_decides() -> None:
    first = {"emit": "error", "when": {"type": "x"}}
    assert [e.kind for e in read({"type": "x"}, first, {"emit": "text"})] == ["error"]
    assert [e.kind for e in read({"type": "y"}, first, {"emit": "text"})] == ["text"]


def test_each_decides_every_object_of_a_list_by_itself() -> None:
    rules = [
        {"emit": "tool", "each": "c", "when": {"$.type": "m", "type": "t"}, "take": {"tool": "n"}},
        {"emit": "text", "each": "c", "when": {"$.type": "m"}, "take": {"text": "$.who"}},
    ]
    raw = {"type": "m", "who": "me", "c": [{"type": "t", "n": "ls"}, {"type": "u"}, 3]}
    assert [(e.kind, e.tool, e.text) for e in read(raw, *rules)] == [
        ("tool", "ls", ""),
        ("text", None, "me"),
    ]
    assert read({"type": "m", "c": "no list"}, *rules) == ()
    assert read({"type": "n", "c": [{"type": "t"}]}, *rules) == ()


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"emit": "shout"}, "'shout' is none of"),
        ({"emit": "text", "take": {"colour": "c"}}, "'colour' is no event field"),
        ({"emit": "text", "set": {"status": "many"}}, "set.status"),
        ({"emit": "text", "when": {"a": {"matches": "("}}}, "no regular expression"),
        ({"emit": "text", "when": {"a": {"is": 1}}}, "when.a"),
        ({"emit": "text", "when": {"a": {"matches": "(?P<colour>.)"}}}, "'colour'"),
    ],
)
def test_a_rule_that_makes_no_sense_names_what_is_wrong(rule: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        read({}, rule)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "message", "content", "error", "part", "item", "status"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
KNOWN = st.sampled_from(
    [
        *["system", "assistant", "user", "result", "error", "rate_limit_event", "final", "limit"],
        *["item.completed", "turn.failed", "step_finish", "tool_use", "message"],
    ]
)
PROVIDERS = Registry.load(None, {"echo": {"enabled": True}}, {}, entry_points=False)


@settings(max_examples=150, deadline=None)
@given(kind=KNOWN, body=st.dictionaries(st.text(max_size=8), JSON, max_size=3), rest=JSON)
def test_no_event_of_any_shape_makes_a_reader_raise(
    kind: str, body: dict[str, Any], rest: Any
) -> None:
    for provider in PROVIDERS.providers():
        for key in ("message", "error", "part", "item", "rate_limit_info", "usage", "status"):
            for event in provider.read_event({**body, "type": kind, key: rest}):
                assert isinstance(event, Event)
