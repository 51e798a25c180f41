"""What is wrong with a document a person wrote: the first field that does not fit its type, by its
path and with what would be right."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, inspect

_LONGEST = 60


class Shape:
    """A type to hold documents to. ``noun`` is what a field is called in an error, ``whole`` what
    the document is."""

    def __init__(self, kind: Any, noun: str = "field", whole: str = "the file") -> None:
        self._kind, self._noun, self._whole = inspect.type_info(kind), noun, whole

    def fault(self, value: Any) -> str | None:
        """The first thing wrong with ``value``, in words; None where nothing is."""
        return self._fault(value, self._kind, "")

    def _fault(self, value: Any, want: inspect.Type, at: str) -> str | None:
        if isinstance(want, inspect.UnionType):
            if value is None and want.includes_none:
                return None
            options = _options(want)
            return self._fault(value, options[0], at) if len(options) == 1 else None
        if isinstance(want, inspect.StructType):
            return self._struct(value, want, at)
        if isinstance(want, inspect.DictType):
            return self._table(value, want, at)
        if isinstance(want, inspect.VarTupleType | inspect.TupleType):
            return self._list(value, want, at)
        return None if _fits(value, want) else self._wrong(at, want, value)

    def _struct(self, value: Any, want: inspect.StructType, at: str) -> str | None:
        if not isinstance(value, dict):
            return self._wrong(at, want, value)
        fields = {field.encode_name: field for field in want.fields}
        for key, item in value.items():
            here = _under(at, key)
            if key not in fields:
                return self._unknown(here, at, str(key), fields)
            wrong = self._fault(item, fields[key].type, here)
            if wrong:
                return wrong
        for key, field in fields.items():
            if field.required and key not in value:
                return f"{_under(at, key)} is missing; it must be {_words(field.type)}"
        return None

    def _unknown(self, here: str, at: str, key: str, fields: dict[str, Any]) -> str:
        from difflib import get_close_matches

        near = get_close_matches(key, fields, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        known = ", ".join(sorted(fields))
        return f"{here} is no {self._noun}; {hint}{at or self._whole} knows {known}"

    def _table(self, value: Any, want: inspect.DictType, at: str) -> str | None:
        if not isinstance(value, dict):
            return self._wrong(at, want, value)
        for key, item in value.items():
            if not _fits(key, want.key_type):
                return self._wrong(f"{at}'s key", want.key_type, key)
            wrong = self._fault(item, want.value_type, f"{at}.{key}")
            if wrong:
                return wrong
        return None

    def _list(
        self, value: Any, want: inspect.VarTupleType | inspect.TupleType, at: str
    ) -> str | None:
        if not isinstance(value, list):
            return self._wrong(at, want, value)
        if isinstance(want, inspect.TupleType):
            if len(value) != len(want.item_types):
                return self._wrong(at, want, value)
            kinds = list(want.item_types)
        else:
            if want.min_length is not None and len(value) < want.min_length:
                return self._wrong(at, want, value)
            kinds = [want.item_type] * len(value)
        for n, (item, kind) in enumerate(zip(value, kinds, strict=True)):
            wrong = self._fault(item, kind, f"{at}[{n}]")
            if wrong:
                return wrong
        return None

    def _wrong(self, at: str, want: inspect.Type, value: Any) -> str:
        return f"{at or self._whole} must be {_words(want)}, not {_shown(value)}"


def _under(at: str, key: Any) -> str:
    return f"{at}.{key}" if at else str(key)


def _options(want: inspect.UnionType) -> list[inspect.Type]:
    return [t for t in want.types if not isinstance(t, inspect.NoneType)]


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, float):
        return str(value)
    try:
        shown = msgspec.json.encode(value).decode()
    except (TypeError, ValueError):
        shown = str(value)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 3] + "..."


def _fits(value: Any, want: inspect.Type) -> bool:
    if isinstance(want, inspect.BoolType):
        return isinstance(value, bool)
    if isinstance(want, inspect.StrType):
        if not isinstance(value, str) or len(value) < (want.min_length or 0):
            return False
        return want.max_length is None or len(value) <= want.max_length
    if isinstance(want, inspect.LiteralType):
        return value in want.values
    if isinstance(want, inspect.DateTimeType):
        try:
            return msgspec.convert(value, Annotated[datetime, Meta(tz=True)]) is not None
        except msgspec.ValidationError:
            return False
    if isinstance(want, inspect.IntType | inspect.FloatType):
        kinds = int if isinstance(want, inspect.IntType) else int | float
        if isinstance(value, bool) or not isinstance(value, kinds):
            return False
        if value != value or abs(value) == float("inf"):
            return False
        return not (
            (want.ge is not None and value < want.ge)
            or (want.gt is not None and value <= want.gt)
            or (want.le is not None and value > want.le)
        )
    return True


def _words(want: inspect.Type) -> str:
    if isinstance(want, inspect.UnionType):
        return _words(_options(want)[0])
    if isinstance(want, inspect.LiteralType):
        return "one of " + ", ".join(str(value) for value in want.values)
    if isinstance(want, inspect.BoolType):
        return "true or false"
    if isinstance(want, inspect.StrType):
        return "a text" if not want.max_length else f"a text of 1 to {want.max_length} characters"
    if isinstance(want, inspect.DateTimeType):
        return "a time with its zone, such as 2026-01-31T09:00:00Z"
    if isinstance(want, inspect.TupleType):
        return f"a list of {len(want.item_types)}: {_words(want.item_types[0])} each"
    if isinstance(want, inspect.VarTupleType):
        return "a list with at least one entry" if want.min_length else "a list"
    if isinstance(want, inspect.IntType | inspect.FloatType):
        kind = "a whole number" if isinstance(want, inspect.IntType) else "a number"
        low = f" from {want.ge:g}" if want.ge is not None else ""
        low = low or (f" above {want.gt:g}" if want.gt is not None else "")
        return kind + low + (f" to {want.le:g}" if want.le is not None else "")
    return "an object"
