"""Raw JSON events in our words, by the declarative rules of a connector.

An object is decided by the first rule that matches it. Rules with ``each`` decide the objects in
that list one by one; the other rules decide the event as a whole, and come first. Whatever a
provider sends, nothing here raises: a value of the wrong kind is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, get_args

import msgspec

from bullswarm.dispatch.types import Event, EventKind, Usage
from bullswarm.meters.windows import instant, percent
from bullswarm.providers.types import Rule, Stream

KINDS: tuple[str, ...] = get_args(EventKind)
LONGEST = 20_000
"""Characters kept of a tool's input or output: people see it, nothing is decided by it."""

_USAGE = ("input_tokens", "output_tokens", "cached_tokens", "cost_usd")
_MISSING: Any = object()

Check = Callable[[Any, dict[str, Any], dict[str, Any]], bool]


def _string(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return str(value)
    return None


def _integer(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        return int(value.strip()[:18])
    return None


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if not isinstance(value, int | float) or value != value or abs(value) > 1e15:
        return None
    return float(value)


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    """A string, a list of text blocks, or anything else as compact JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        blocks = [b.get("text") if isinstance(b, dict) else b for b in value]
        if all(isinstance(b, str) for b in blocks if b is not None):
            return "\n".join(b for b in blocks if b)
    if value is None:
        return None
    return msgspec.json.encode(value).decode("utf-8", "replace")[:LONGEST]


def _headers(value: Any) -> dict[str, str] | None:
    if not isinstance(value, dict):
        return None
    return {str(k).lower(): str(v) for k, v in value.items() if isinstance(v, str | int | float)}


def _time(value: Any) -> datetime | None:
    if isinstance(value, str) and value.strip().isdigit():
        value = int(value.strip()[:18])
    return instant(value)


def _scaled(factor: float) -> Callable[[Any], float | None]:
    def read(value: Any) -> float | None:
        number = _number(value)
        return None if number is None else number * factor

    return read


FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "text": ("text", _text),
    "session": ("session", _string),
    "model": ("model", _string),
    "tool": ("tool", _string),
    "status": ("status", _integer),
    "code": ("code", _string),
    "headers": ("headers", _headers),
    "attempt": ("attempt", _integer),
    "max_attempts": ("max_attempts", _integer),
    "retry_after_s": ("retry_after_s", _number),
    "retry_after_ms": ("retry_after_s", _scaled(0.001)),
    "limit_status": ("limit_status", _string),
    "window": ("window", _string),
    "resets_at": ("resets_at", _time),
    "used_pct": ("used_pct", percent),
    "used_fraction": ("used_pct", lambda v: percent(_scaled(100.0)(v))),
    "is_error": ("is_error", _boolean),
    "delta": ("delta", _boolean),
    "turns": ("turns", _integer),
    "usage.input_tokens": ("usage.input_tokens", _integer),
    "usage.output_tokens": ("usage.output_tokens", _integer),
    "usage.cached_tokens": ("usage.cached_tokens", _integer),
    "usage.cost_usd": ("usage.cost_usd", _number),
}
"""What a rule may ``take`` or ``set``: the ``Event`` field it fills and how its value is read.
``retry_after_ms`` and ``used_fraction`` are other units of ``retry_after_s`` and ``used_pct``."""


def field_name(name: str) -> str:
    """Our name of a field as a connector may write it (``maxAttempts``, ``usage.inputTokens``)."""
    return re.sub(r"(?<=[a-z])([A-Z])", lambda m: "_" + m[1].lower(), name)


class Reader:
    """The compiled rules of one stream. Raises ``ValueError`` for a rule that makes no sense."""

    def __init__(self, stream: Stream) -> None:
        self._whole: list[_Compiled] = []
        self._each: dict[tuple[str, ...], list[_Compiled]] = {}
        for rule in stream.rules:
            compiled = _Compiled(rule)
            if rule.each is None:
                self._whole.append(compiled)
            else:
                self._each.setdefault(_path(rule.each), []).append(compiled)

    def read(self, raw: dict[str, Any]) -> tuple[Event, ...]:
        """The events in one raw event, () where no rule matches."""
        events: list[Event] = []
        event = _first(self._whole, raw, raw)
        if event is not None:
            events.append(event)
        for path, rules in self._each.items():
            if not any(rule.may_match(raw) for rule in rules):
                continue
            listed = _get(raw, path)
            if isinstance(listed, list):
                for one in listed:
                    if isinstance(one, dict):
                        event = _first(rules, one, raw)
                        if event is not None:
                            events.append(event)
        return tuple(events)


class _Compiled:
    def __init__(self, rule: Rule) -> None:
        if rule.emit not in KINDS:
            raise ValueError(f"emit: {rule.emit!r} is none of {', '.join(KINDS)}")
        self.emit: Any = rule.emit
        self.each = rule.each is not None
        self.type: frozenset[Any] | None = None
        self.checks: list[tuple[tuple[str, ...], Check]] = []
        type_path = "$.type" if self.each else "type"
        for path, wanted in rule.when.items():
            if path == type_path and _literals(wanted) is not None:
                self.type = frozenset(_literals(wanted) or ())
            else:
                self.checks.append((_path(path), _check(path, wanted)))
        self.take: list[tuple[str, Callable[[Any], Any], list[tuple[str, ...]]]] = []
        for name, paths in rule.take.items():
            target, read = _field(name)
            self.take.append((target, read, [_path(p) for p in paths.split("|")]))
        self.set: dict[str, Any] = {}
        for name, value in rule.set.items():
            target, read = _field(name)
            self.set[target] = read(value)
            if self.set[target] is None:
                raise ValueError(f"set.{name}: {value!r} is no value for it")

    def may_match(self, raw: dict[str, Any]) -> bool:
        if self.type is None:
            return True
        kind = raw.get("type")
        return isinstance(kind, str) and kind in self.type

    def event(self, one: dict[str, Any], raw: dict[str, Any]) -> Event | None:
        if not self.may_match(raw):
            return None
        found: dict[str, Any] = {}
        for path, check in self.checks:
            if not check(_from(path, one, raw), found, raw):
                return None
        for target, read, paths in self.take:
            for path in paths:
                value = _from(path, one, raw)
                value = read(value) if value is not _MISSING and value is not None else None
                if value is not None:
                    found[target] = value
                    break
        found.update(self.set)
        usage = {name: found.pop(f"usage.{name}") for name in _USAGE if f"usage.{name}" in found}
        if usage:
            found["usage"] = Usage(**usage)
        return Event(kind=self.emit, **found)


def _first(rules: list[_Compiled], one: dict[str, Any], raw: dict[str, Any]) -> Event | None:
    for rule in rules:
        event = rule.event(one, raw)
        if event is not None:
            return event
    return None


def _field(name: str) -> tuple[str, Callable[[Any], Any]]:
    try:
        return FIELDS[field_name(name)]
    except KeyError:
        raise ValueError(f"{name!r} is no event field; there are: {', '.join(FIELDS)}") from None


def _path(path: str) -> tuple[str, ...]:
    return tuple(path.strip().split("."))


def _from(path: tuple[str, ...], one: Any, raw: Any) -> Any:
    return _get(raw, path[1:]) if path[0] == "$" else _get(one, path)


def _get(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        if isinstance(value, dict):
            value = value.get(key, _MISSING)
        elif isinstance(value, list) and key.isdigit():
            index = int(key)
            value = value[index] if index < len(value) else _MISSING
        else:
            return _MISSING
    return value


def _literals(wanted: Any) -> list[Any] | None:
    if isinstance(wanted, list):
        return wanted if all(isinstance(w, str) for w in wanted) else None
    return [wanted] if isinstance(wanted, str) else None


def _check(path: str, wanted: Any) -> Check:
    if isinstance(wanted, Mapping):
        if wanted.keys() == {"exists"} and isinstance(wanted["exists"], bool):
            expected = wanted["exists"]
            return lambda value, _f, _r: (value is not _MISSING and value is not None) == expected
        if wanted.keys() == {"matches"} and isinstance(wanted["matches"], str):
            return _matching(path, wanted["matches"])
        raise ValueError(
            f'when.{path}: a literal, a list, {{"exists": true}} or {{"matches": "..."}}'
        )
    options = list(wanted) if isinstance(wanted, list | tuple) else [wanted]

    def equal(value: Any, _found: dict[str, Any], _raw: dict[str, Any]) -> bool:
        # True is not 1 here: a flag and a count are different facts.
        return any(
            value == option and isinstance(value, bool) == isinstance(option, bool)
            for option in options
        )

    return equal


def _matching(path: str, pattern: str) -> Check:
    try:
        compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL)
    except re.error as error:
        raise ValueError(f"when.{path}: {pattern!r} is no regular expression ({error})") from None
    readers = {name: _field(name) for name in compiled.groupindex}

    def match(value: Any, found: dict[str, Any], _raw: dict[str, Any]) -> bool:
        if not isinstance(value, str):
            return False
        hit = compiled.search(value[:LONGEST])
        if hit is None:
            return False
        for name, (target, read) in readers.items():
            value = hit[name]
            value = read(value) if value is not None else None
            if value is not None:
                found[target] = value
        return True

    return match
