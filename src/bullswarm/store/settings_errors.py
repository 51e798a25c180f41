"""What is wrong with a ``state.json``, in words: the setting's name and what would be right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from bullswarm.errors import BullswarmError, UsageError
from bullswarm.store.settings import Settings


def explain(data: bytes, path: Path, error: Exception) -> BullswarmError:
    """The error to raise for ``data``, which could not be read as settings."""
    try:
        raw = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as damage:
        return BullswarmError(
            f"{path} is damaged and was left as it is ({damage}); mend it by hand, or move it "
            "away to start with the defaults"
        )
    fault = _fault(raw, inspect.type_info(Settings), "")
    return UsageError(f"{path}: {fault or error}")


def _fault(value: Any, want: inspect.Type, at: str) -> str | None:
    """The first thing wrong with ``value``, or None."""
    if isinstance(want, inspect.UnionType):
        if value is None and want.includes_none:
            return None
        options = [t for t in want.types if not isinstance(t, inspect.NoneType)]
        return _fault(value, options[0], at) if len(options) == 1 else None
    if isinstance(want, inspect.StructType):
        return _struct_fault(value, want, at)
    if isinstance(want, inspect.DictType):
        if not isinstance(value, dict):
            return _wrong(at, want, value)
        for key, item in value.items():
            fault = _fault(item, want.value_type, f"{at}.{key}")
            if fault:
                return fault
        return None
    if isinstance(want, inspect.VarTupleType):
        if not isinstance(value, list):
            return _wrong(at, want, value)
        for n, item in enumerate(value):
            fault = _fault(item, want.item_type, f"{at}[{n}]")
            if fault:
                return fault
        return None
    return None if _fits(value, want) else _wrong(at, want, value)


def _struct_fault(value: Any, want: inspect.StructType, at: str) -> str | None:
    if not isinstance(value, dict):
        return _wrong(at, want, value)
    fields = {field.encode_name: field for field in want.fields}
    for key, item in value.items():
        here = f"{at}.{key}" if at else key
        if key not in fields:
            known = ", ".join(sorted(fields))
            return f"{here} is no setting; {at or 'the file'} knows {known}"
        fault = _fault(item, fields[key].type, here)
        if fault:
            return fault
    return None


def _wrong(at: str, want: inspect.Type, value: Any) -> str:
    shown = msgspec.json.encode(value).decode()
    if len(shown) > 60:
        shown = shown[:57] + "..."
    return f"{at or 'the file'} must be {_words(want)}, not {shown}"


def _fits(value: Any, want: inspect.Type) -> bool:
    if isinstance(want, inspect.AnyType):
        return True
    if isinstance(want, inspect.BoolType):
        return isinstance(value, bool)
    if isinstance(want, inspect.StrType):
        return isinstance(value, str)
    if isinstance(want, inspect.LiteralType):
        return value in want.values
    if isinstance(want, inspect.DateTimeType):
        try:
            return msgspec.convert(value, _moment()) is not None
        except msgspec.ValidationError:
            return False
    if isinstance(want, inspect.IntType | inspect.FloatType):
        kinds = int if isinstance(want, inspect.IntType) else int | float
        if isinstance(value, bool) or not isinstance(value, kinds):
            return False
        return not (
            (want.ge is not None and value < want.ge)
            or (want.gt is not None and value <= want.gt)
            or (want.le is not None and value > want.le)
        )
    return True


def _words(want: inspect.Type) -> str:
    if isinstance(want, inspect.LiteralType):
        return "one of " + ", ".join(str(value) for value in want.values)
    if isinstance(want, inspect.BoolType):
        return "true or false"
    if isinstance(want, inspect.StrType):
        return "a text"
    if isinstance(want, inspect.DateTimeType):
        return "a time with its zone, such as 2026-01-31T09:00:00Z"
    if isinstance(want, inspect.VarTupleType):
        return "a list"
    if isinstance(want, inspect.IntType | inspect.FloatType):
        kind = "a whole number" if isinstance(want, inspect.IntType) else "a number"
        low = f" from {want.ge:g}" if want.ge is not None else ""
        low = low or (f" above {want.gt:g}" if want.gt is not None else "")
        return kind + low + (f" to {want.le:g}" if want.le is not None else "")
    return "an object"


def _moment() -> Any:
    from bullswarm.store.settings import Moment

    return Moment
