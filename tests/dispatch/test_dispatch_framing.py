"""Bytes to objects: whatever comes, however it is cut."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullswarm.dispatch.framing import Lines, Objects

NOODLES = "麺 é 🍜"

stream = st.lists(
    st.one_of(
        st.dictionaries(st.text(max_size=4), st.text(max_size=8), max_size=3).map(
            lambda d: json.dumps(d, ensure_ascii=False).encode("utf-8", "surrogatepass")
        ),
        st.binary(max_size=12),
    ),
    max_size=6,
).map(b"\n".join)


def read(chunks: list[bytes], max_line: int = 64) -> tuple[list[dict[str, Any]], int, int]:
    lines, objects = Lines(max_line), Objects()
    found = [o for chunk in chunks for line in lines.feed(chunk) for o in objects.of(line)]
    rest = lines.rest()
    if rest:
        found += objects.of(rest)
    objects.finish()
    return found, objects.bad, lines.truncated


def objects_of(*lines: bytes) -> tuple[list[dict[str, Any]], int]:
    objects = Objects()
    found = [o for line in lines for o in objects.of(line)]
    objects.finish()
    return found, objects.bad


@settings(max_examples=150, deadline=None)
@given(stream, st.lists(st.integers(0, 120), max_size=8))
def test_any_chunking_gives_the_same_result(data: bytes, cuts: list[int]) -> None:
    at = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    chunks = [data[a:b] for a, b in pairwise(at)]
    assert repr(read(chunks)) == repr(read([data]))


def test_a_character_cut_anywhere_stays_whole() -> None:
    data = json.dumps({"text": NOODLES}, ensure_ascii=False).encode() + b"\n"
    for at in range(len(data) + 1):
        assert read([data[:at], data[at:]]) == ([{"text": NOODLES}], 0, 0)


@pytest.mark.parametrize(
    ("lines", "found", "bad"),
    [
        ([b'{"a":1}{"b":2}'], [{"a": 1}, {"b": 2}], 0),
        ([b'{"a":1} {"b":2}, {"c":3}'], [{"a": 1}, {"b": 2}, {"c": 3}], 0),
        ([b'{"a":', b"1}"], [{"a": 1}], 0),
        ([b'{"a":"x', b'y"}'], [{"a": "xy"}], 0),
        ([b"{", b'"a": 1', b"}"], [{"a": 1}], 0),
        ([b'{"a":1}{"b":', b"2}"], [{"a": 1}, {"b": 2}], 0),
        ([b'{"a":1}oops'], [{"a": 1}], 1),
        ([b"oops", b'{"a":1}'], [{"a": 1}], 1),
        ([b'{"a":', b'{"b":2}'], [{"b": 2}], 1),
        ([b'{"a":'], [], 1),
        ([b"[1]", b"7", b"null", b'"x"'], [], 4),
        ([b"", b"  \r", b"\0\0"], [], 0),
        ([b'\0\0{"a":1}\0'], [{"a": 1}], 0),
        ([b'{"a":"x\0y"}'], [{"a": "xy"}], 0),
        ([b'{"a":"\xff"}'], [{"a": "\ufffd"}], 0),
        ([b'\xef\xbb\xbf{"a":1}'], [{"a": 1}], 0),
        ([b'{"a":1}\r'], [{"a": 1}], 0),
        ([b"[" * 100_000], [], 1),
        ([b'{"a":' * 100_000], [], 1),
    ],
)
def test_lines_become_objects(lines: list[bytes], found: list[dict[str, Any]], bad: int) -> None:
    assert objects_of(*lines) == (found, bad)


def test_half_a_surrogate_becomes_text_that_can_be_written_again() -> None:
    ((found,), bad) = objects_of(b'{"a":"x\\ud83d","\\udc00":["\\ud83d\\ude00"]}')
    assert bad == 0
    assert json.dumps(found, ensure_ascii=False).encode("utf-8")
    assert found["a"].startswith("x")
    assert ["\U0001f600"] in found.values()


def test_a_line_over_the_bound_is_dropped_and_the_next_is_found() -> None:
    found, bad, truncated = read([b"x" * 40, b"x" * 40, b'\n{"a":1}\n'])
    assert (found, bad, truncated) == ([{"a": 1}], 0, 1)


def test_a_line_of_the_bound_itself_is_kept() -> None:
    line = b'{"a":"' + b"x" * 56 + b'"}'
    assert len(line) == 64
    assert read([line[:30], line[30:] + b"\n"])[0] == [{"a": "x" * 56}]


def test_an_object_over_thousands_of_lines_takes_no_quadratic_time() -> None:
    pretty = json.dumps({"rows": [{"n": n, "t": "{"} for n in range(4000)]}, indent=1)
    lines = pretty.encode().split(b"\n")
    tries = 0
    objects = Objects()
    found = []
    for line in lines:
        found += objects.of(line)
        tries = max(tries, objects.tries)
    assert tries <= 200
    assert len(found) <= 1
