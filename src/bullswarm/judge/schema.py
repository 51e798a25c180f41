"""JSON Schema: load one, check an instance, find the typed answer in a worker's words.

Draft 2020-12 in full, through the ``jsonschema`` library, which is imported on first use. Nothing
is ever fetched over a network. ``format`` is an annotation, as the draft has it by default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from bullswarm.errors import UsageError
from bullswarm.judge.types import Gate

NAME = "schema"
MAX_FAULTS = 20
MAX_MESSAGE = 300
MAX_PARSE_TRIES = 5000


class Schema(msgspec.Struct, frozen=True):
    """A schema that was found valid. ``folder`` is where relative ``$ref`` files are read from."""

    document: Any
    folder: str | None = None


class Fault(msgspec.Struct, frozen=True, rename="camel"):
    """One fault: ``path`` in the instance (``$.items[3].name``) and what is wrong there."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"at {self.path}: {self.message}"


class NotFound(Exception):
    """No JSON value could be found in the text."""


def load_schema(path: str | Path) -> Schema:
    """Read a JSON Schema file (JSON; YAML where the name says so).

    Raises ``UsageError`` naming the file, and the place in it, when it can't be read, isn't JSON,
    isn't a valid schema, or refers to what can't be had. So nothing starts with a bad schema.
    """
    where = Path(path)
    try:
        text = where.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"answer schema {where}: can't be read ({error})") from error
    try:
        document = _parse_file(where, text)
    except ValueError as error:
        raise UsageError(f"answer schema {where}: not valid {_format(where)} ({error})") from error
    return make_schema(document, name=str(where), folder=str(where.resolve().parent))


def make_schema(document: Any, *, name: str = "schema", folder: str | None = None) -> Schema:
    """A ``Schema`` of a parsed document. Raises ``UsageError`` when it isn't a valid schema."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for

    if not isinstance(document, dict | bool):
        raise UsageError(
            f"{name}: a JSON Schema is an object (or true or false), not {_type(document)}"
        )
    declared = document.get("$schema") if isinstance(document, dict) else None
    cls = validator_for(document, default=Draft202012Validator)
    if declared is not None and not isinstance(declared, str):
        raise UsageError(f"{name}: at $.$schema: must be a string, not {_type(declared)}")
    if declared and cls is Draft202012Validator and "2020-12" not in declared:
        raise UsageError(f"{name}: at $.$schema: {declared!r} is not a known JSON Schema draft")
    try:
        cls.check_schema(document)  # type: ignore[arg-type]
    except SchemaError as error:
        raise UsageError(f"{name}: at {error.json_path}: {_cut(error.message)}") from error
    except RecursionError as error:
        raise UsageError(f"{name}: nested too deeply") from error
    schema = Schema(document, folder)
    _probe(schema, name)
    return schema


def check_schema(
    instance: Any, schema: Schema | dict[str, Any] | bool, *, limit: int = MAX_FAULTS
) -> tuple[Fault, ...]:
    """Every fault of ``instance``, by place, at most ``limit``. None: it is valid.

    Raises ``UsageError`` when a plain dict is no valid schema.
    """
    known = schema if isinstance(schema, Schema) else make_schema(schema)
    try:
        validator = _validator(known)
        errors = sorted(validator.iter_errors(instance), key=lambda e: [str(p) for p in e.path])
        return tuple(_fault(e) for e in errors[:limit])
    except RecursionError:
        return (Fault("$", "nested too deeply to be checked"),)
    except Exception as error:
        if type(error).__name__ in ("_WrappedReferencingError", "Unresolvable", "NoSuchResource"):
            return (Fault("$", f"the schema refers to what can't be had: {_cut(str(error))}"),)
        raise


def find_json(text: str, prefer: str | None = None) -> Any:
    """The JSON value a worker means: the whole text, else the last fenced block that is JSON, else
    the last object or array in the text. ``prefer`` ("object", "array") passes over values of
    another type. Raises ``NotFound``."""
    body = text.strip().removeprefix("\ufeff")
    try:
        return _loads(body)
    except (ValueError, RecursionError):
        pass
    fenced = [v for block in _fences(body) for v in _parsed(block)]
    for pool in (fenced, list(_values(body))):
        fitting = [v for v in pool if prefer is None or _type(v) == prefer]
        if fitting or pool:
            return (fitting or pool)[-1]
    raise NotFound("no JSON value in the answer")


def answer_gate(answer: str, schema: Schema | dict[str, Any] | bool) -> tuple[Gate, Any]:
    """Judge the typed answer; the gate, and the parsed answer where it passed (else None)."""
    known = schema if isinstance(schema, Schema) else make_schema(schema)
    try:
        value = find_json(answer, container_of(known))
    except NotFound:
        return _no("the answer holds no JSON value"), None
    faults = check_schema(value, known)
    if not faults:
        return Gate(name=NAME, ok=True, why="the answer matches its schema"), value
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return _no(f"the answer does not match its schema {faults[0]}{more}"), None


def parse_strict(text: str) -> Any:
    """Parse one JSON document. ``NaN`` and ``Infinity`` are not JSON. Raises ``ValueError``."""
    try:
        return _loads(text.strip().removeprefix("\ufeff"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def container_of(schema: Schema) -> str | None:
    """The one of "object" and "array" that the schema can take, whether it says so itself, in a
    reference or in every branch; None where it can take both or neither. A footnote behind an
    object ("see [1]") is no answer then."""
    validator = _validator(schema)
    fits = [
        kind
        for kind, empty in (("object", {}), ("array", []))
        if not _refused(validator.iter_errors(empty))
    ]
    return fits[0] if len(fits) == 1 else None


def _refused(errors: Iterable[Any]) -> bool:
    """Whether some of these errors of an empty value are about its type alone."""
    for error in errors:
        if error.path:
            continue
        if error.validator == "type":
            return True
        if error.validator in ("anyOf", "oneOf") and error.context:
            branches: dict[Any, list[Any]] = {}
            for inner in error.context:
                branches.setdefault(inner.schema_path[0], []).append(inner)
            if all(_refused(branch) for branch in branches.values()):
                return True
    return False


def _no(why: str) -> Gate:
    return Gate(name=NAME, ok=False, why=why, failure_kind="schema")


def _reject(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_reject)


def _loads(text: str) -> Any:
    return _DECODER.decode(text)


def _parsed(block: str) -> Iterator[Any]:
    try:
        yield _loads(block.strip())
    except (ValueError, RecursionError):
        return


_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n`]*\n(.*?)^[ \t]*\1[ \t]*$", re.M | re.S)


def _fences(text: str) -> list[str]:
    if "```" not in text and "~~~" not in text:
        return []
    return [m[2] for m in _FENCE.finditer(text)]


_OPEN = re.compile(r"[{\[]")


def _values(text: str) -> Iterator[Any]:
    """Top-level objects and arrays in running text, in order."""
    at = 0
    for _ in range(MAX_PARSE_TRIES):
        match = _OPEN.search(text, at)
        if match is None:
            return
        try:
            value, at = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            at = match.start() + 1
        else:
            yield value


def _validator(schema: Schema) -> Any:
    from jsonschema.validators import Draft202012Validator, validator_for

    cls = validator_for(schema.document, default=Draft202012Validator)
    return cls(schema.document, registry=_registry(schema.folder))


def _registry(folder: str | None) -> Any:
    """The published drafts, and files beside the schema; never the network."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
    from referencing import Registry, Resource
    from referencing.exceptions import NoSuchResource
    from referencing.jsonschema import DRAFT202012

    def retrieve(uri: str) -> Resource[Any]:
        parts = urlsplit(uri)
        if parts.scheme not in ("", "file") or folder is None:
            raise NoSuchResource(uri)
        path = Path(folder, unquote(parts.path))
        try:
            document = _parse_file(path, path.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError) as error:
            raise NoSuchResource(uri) from error
        return Resource.from_contents(document, default_specification=DRAFT202012)

    registry: Any = Registry(retrieve=retrieve)  # type: ignore[call-arg]
    return registry.with_resources([(uri, REGISTRY[uri]) for uri in REGISTRY])


def _probe(schema: Schema, name: str) -> None:
    """Follow every reference once, so that a dangling or endless one is known before a start."""
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    document = schema.document
    if not isinstance(document, dict):
        return
    try:
        root = DRAFT202012.create_resource(document)
        base = root.id() or ""
        resolver = _registry(schema.folder).with_resource(base, root).resolver(base)
        for path, ref, at in _references(document, resolver, "$", DRAFT202012):
            try:
                at.lookup(ref)
            except Unresolvable as error:
                raise UsageError(f"{name}: at {path}.$ref: {ref!r} can't be resolved") from error
        list(_validator(schema).iter_errors(None))
    except RecursionError as error:
        raise UsageError(
            f"{name}: refers to itself without end, or is nested too deeply"
        ) from error


def _references(node: Any, resolver: Any, path: str, spec: Any) -> Iterator[tuple[str, str, Any]]:
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from _references(item, resolver, f"{path}[{index}]", spec)
    if not isinstance(node, dict):
        return
    if isinstance(node.get("$id"), str) and path != "$":
        resolver = resolver.in_subresource(spec.create_resource(node))
    if isinstance(node.get("$ref"), str):
        yield path, node["$ref"], resolver
    for key, item in node.items():
        # Their contents are data, not schemas.
        if key not in ("const", "enum", "default", "examples", "example"):
            yield from _references(item, resolver, f"{path}.{key}", spec)


def _fault(error: Any) -> Fault:
    message = _cut(error.message)
    if error.context:
        from jsonschema.exceptions import best_match

        deepest = best_match(iter([error]))
        if deepest is not None and deepest is not error:
            message += f" (closest: at {deepest.json_path}: {_cut(deepest.message)})"
    return Fault(error.json_path, message)


def _cut(message: str) -> str:
    if len(message) <= MAX_MESSAGE:
        return message
    half = MAX_MESSAGE // 2
    return f"{message[:half]} ... {message[-half:]}"


def _format(path: Path) -> str:
    return "YAML" if path.suffix in (".yaml", ".yml") else "JSON"


def _parse_file(path: Path, text: str) -> Any:
    if _format(path) == "JSON":
        return parse_strict(text)
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def parse_file(path: Path) -> Any:
    """The value in a JSON (or, by its name, YAML) file. Raises ``OSError`` or ``ValueError``."""
    return _parse_file(path, path.read_text(encoding="utf-8-sig"))


def _type(value: Any) -> str:
    names: dict[type, str] = {
        bool: "boolean",
        dict: "object",
        list: "array",
        str: "string",
        type(None): "null",
    }
    return names.get(type(value), "number")
