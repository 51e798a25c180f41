"""Every fault in a document's shape at once, read off the structs themselves.

``msgspec.convert`` stops at the first fault; an author wants all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from bullswarm.workflow.faults import Fault, near


def faults_of(value: Any, kind: type, path: str = "$") -> tuple[Fault, ...]:
    """All faults of ``value`` against a struct type, in the document's order."""
    return tuple(_walk(value, _info(kind), path))


@cache
def _info(kind: type) -> inspect.Type:
    return inspect.type_info(kind)


def _walk(value: Any, kind: inspect.Type, path: str) -> Iterator[Fault]:
    if isinstance(kind, inspect.Metadata):
        yield from _walk(value, kind.type, path)
    elif isinstance(kind, inspect.UnionType):
        yield from _union(value, kind, path)
    elif isinstance(kind, inspect.StructType):
        yield from _struct(value, kind, path)
    elif isinstance(kind, inspect.VarTupleType):
        yield from _list(value, kind, path)
    elif isinstance(kind, inspect.LiteralType):
        if value not in kind.values or isinstance(value, bool):
            words = [str(v) for v in kind.values]
            shown = ", ".join(words)
            fix = near(value, words) if isinstance(value, str) else f"one of: {shown}"
            if value in words and value not in kind.values:
                fix = "a number: take the quotes off"
            yield Fault(path, f"{_show(value)} is none of: {shown}", fix)
    elif isinstance(kind, inspect.StrType):
        yield from _text(value, kind, path)
    elif isinstance(kind, inspect.IntType | inspect.FloatType):
        yield from _number(value, kind, path)
    elif not _fits(value, kind):
        yield Fault(path, f"must be {_name(kind)}, not {_type(value)}")
    elif isinstance(kind, inspect.DictType):
        for key in value:
            if not isinstance(key, str):
                yield Fault(path, f"the key {key!r} must be a string", "put it in quotes")


def _struct(value: Any, kind: inspect.StructType, path: str) -> Iterator[Fault]:
    if not isinstance(value, dict):
        yield Fault(path, f"must be an object, not {_type(value)}")
        return
    known = {f.encode_name: f for f in kind.fields}
    names = [*known, *([kind.tag_field] if kind.tag_field else [])]
    for key, item in value.items():
        if key in known:
            yield from _walk(item, known[key].type, _at(path, key))
        elif key not in names:
            yield Fault(_at(path, str(key)), "unknown key", near(str(key), names))
    for name, field in known.items():
        if field.required and name not in value:
            yield Fault(path, f"{name} is missing", f"add {name}: {_name(field.type)}")


def _list(value: Any, kind: inspect.VarTupleType, path: str) -> Iterator[Fault]:
    if not isinstance(value, list | tuple):
        fix = f"write it as a list: [{value}]" if isinstance(value, str) else ""
        yield Fault(path, f"must be a list, not {_type(value)}", fix)
        return
    if kind.min_length is not None and len(value) < kind.min_length:
        yield Fault(path, "must not be empty", f"at least {kind.min_length}")
    for index, item in enumerate(value):
        yield from _walk(item, kind.item_type, f"{path}[{index}]")


def _union(value: Any, kind: inspect.UnionType, path: str) -> Iterator[Fault]:
    options = [_bare(t) for t in kind.types]
    tagged = [t for t in options if isinstance(t, inspect.StructType) and t.tag_field]
    if tagged and isinstance(value, dict):
        field = tagged[0].tag_field or "type"
        found = [t for t in tagged if t.tag == value.get(field)]
        if found:
            yield from _struct(value, found[0], path)
        elif field not in value:
            words = " or ".join(str(t.tag) for t in tagged)
            yield Fault(path, f"{field} is missing", f"add {field}: {words}")
        else:
            words = ", ".join(str(t.tag) for t in tagged)
            given = value[field]
            fix = near(given, [str(t.tag) for t in tagged]) if isinstance(given, str) else ""
            yield Fault(_at(path, field), f"{_show(given)} is none of: {words}", fix)
        return
    fitting = [t for t in options if _fits(value, t)]
    if fitting:
        yield from _walk(value, fitting[0], path)
        return
    words = " or ".join(_name(t) for t in options if not isinstance(t, inspect.NoneType))
    yield Fault(path, f"must be {words}, not {_type(value)}")


def _text(value: Any, kind: inspect.StrType, path: str) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield Fault(path, f"must be a string, not {_type(value)}", "put it in quotes")
    elif kind.min_length and not value.strip():
        yield Fault(path, "must not be empty")
    elif kind.pattern and not re.fullmatch(kind.pattern, value):
        yield Fault(
            path,
            f"{_show(value)} is not an id",
            "1 to 64 letters, digits, '-' and '_', a letter or digit first",
        )


def _number(value: Any, kind: inspect.IntType | inspect.FloatType, path: str) -> Iterator[Fault]:
    whole = isinstance(kind, inspect.IntType)
    right = int if whole else (int, float)
    if not isinstance(value, right) or isinstance(value, bool):
        yield Fault(path, f"must be {_name(kind)}, not {_type(value)}")
        return
    low = value < kind.ge if kind.ge is not None else kind.gt is not None and value <= kind.gt
    high = kind.le is not None and value > kind.le
    # A comparison with NaN is never true, so it would pass for any range.
    if low or high or value != value or value in (float("inf"), float("-inf")):
        yield Fault(path, f"{value} is out of range", _range(kind))


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    if kind.ge is not None and kind.le is not None:
        return f"from {kind.ge:g} to {kind.le:g}"
    low = f"over {kind.gt:g}" if kind.gt is not None else f"at least {kind.ge or 0:g}"
    return f"{low}, at most {kind.le:g}" if kind.le is not None else low


def _bare(kind: inspect.Type) -> inspect.Type:
    while isinstance(kind, inspect.Metadata):
        kind = kind.type
    return kind


def _fits(value: Any, kind: inspect.Type) -> bool:
    """Whether a value is of the right sort; what is inside is looked at later."""
    table: dict[type[inspect.Type], Any] = {
        inspect.StrType: str,
        inspect.LiteralType: str,
        inspect.BoolType: bool,
        inspect.NoneType: type(None),
        inspect.VarTupleType: (list, tuple),
        inspect.DictType: dict,
        inspect.StructType: dict,
    }
    if isinstance(kind, inspect.AnyType):
        return True
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, table[type(kind)])


def _name(kind: inspect.Type) -> str:
    kind = _bare(kind)
    if isinstance(kind, inspect.UnionType):
        return " or ".join(_name(t) for t in kind.types)
    table: dict[type[inspect.Type], str] = {
        inspect.StrType: "a string",
        inspect.LiteralType: "one of the known words",
        inspect.BoolType: "true or false",
        inspect.NoneType: "null",
        inspect.VarTupleType: "a list",
        inspect.DictType: "an object",
        inspect.StructType: "an object",
        inspect.IntType: "a whole number",
        inspect.FloatType: "a number",
    }
    if isinstance(kind, inspect.LiteralType) and len(kind.values) == 1:
        return str(kind.values[0])
    return table.get(type(kind), "a value")


def _type(value: Any) -> str:
    names = {bool: "true or false", dict: "an object", list: "a list", str: "a string"}
    if value is None:
        return "null"
    return names.get(type(value), "a number" if isinstance(value, int | float) else "a value")


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _at(path: str, key: str) -> str:
    plain = re.fullmatch(r"[$A-Za-z_][\w-]*", key)
    return f"{path}.{key}" if plain else f"{path}[{msgspec.json.encode(key).decode()}]"
