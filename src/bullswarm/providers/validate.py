"""Everything that is wrong with a connector, at once: where, and what would be right."""

# ruff: noqa: PTH119
# No pathlib where every pool of every `pools` goes through.
from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from bullswarm.errors import UsageError
from bullswarm.providers.streams import Reader
from bullswarm.providers.templates import GROUPS, PLACES, VALUES
from bullswarm.providers.types import Connector, Rule, Stream
from bullswarm.routing.types import LANES

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class Problem(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One fault: where in the connector, and what would be right."""

    path: str
    message: str


def validate_path(path: str, home_providers: Path) -> tuple[Problem, ...]:
    """The faults of a connector: a file, a provider's folder, or the name of a provider in the home
    or of a built-in one. () where there is none. Raises ``UsageError`` where it can't be found."""
    from bullswarm.providers.loading import connector_file, read_file

    target = _target(path, home_providers)
    folder = target if target.is_dir() else target.parent
    try:
        file = connector_file(target) if target.is_dir() else target
        raw = read_file(file)
    except UsageError as error:
        return (Problem(path=str(target), message=str(error)),)
    faults = list(connector_faults(raw, folder=folder))
    if (folder / "provider.py").exists() and not faults and file.parent == folder:
        faults += _code_faults(folder)
    return tuple(faults)


def connector_faults(raw: Mapping[str, Any], *, folder: Path | None = None) -> tuple[Problem, ...]:
    """The faults of a connector as it stands in its file. ``folder`` is the provider's, None where
    it has none."""
    faults = list(_shape(raw, Connector, ""))
    if faults:
        # Sound parts are still looked at: all faults are told at once.
        raw = {k: v for k, v in raw.items() if not any(_inside(f.path, k) for f in faults)}
        raw = {"name": "x", "command": "x", **raw}
    connector = msgspec.convert(raw, Connector)
    code = folder is not None and (folder / "provider.py").exists()
    faults += _sense(connector, raw, code=code, named={f.path for f in faults})
    return tuple(faults)


def _target(path: str, home_providers: Path) -> Path:
    given = Path(path).expanduser()
    if given.exists():
        return given
    if "/" not in path:
        if (home_providers / path).is_dir():
            return home_providers / path
        from bullswarm.providers.registry import BUILT_IN

        if path in BUILT_IN:
            return Path(__file__).parent / BUILT_IN[path][0]
    raise UsageError(
        f"{path}: there is no such file or folder, and no provider of that name in "
        f"{home_providers}; 'bullswarm provider scaffold {path}' makes one"
    )


def _shape(raw: Any, kind: type[msgspec.Struct], at: str) -> Iterator[Problem]:
    """Wrong types and unknown fields, field by field."""
    if not isinstance(raw, Mapping):
        yield Problem(path=at or "connector", message="must be a table of its fields")
        return
    hints = get_type_hints(kind)
    fields = {f.encode_name: f for f in msgspec.structs.fields(kind)}
    for key, value in raw.items():
        where = f"{at}.{key}" if at else str(key)
        if key not in fields:
            yield Problem(path=where, message=_unknown(str(key), fields))
            continue
        hint = hints[fields[key].name]
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            yield from _shape(value, hint, where)
        elif (item := _struct_item(hint)) is not None and isinstance(value, list | tuple):
            for i, one in enumerate(value):
                yield from _shape(one, item, f"{where}[{i}]")
        else:
            try:
                msgspec.convert(value, hint)
            except msgspec.ValidationError as error:
                yield Problem(path=where, message=_plain(str(error)))
    for name, field in fields.items():
        if field.required and name not in raw:
            where = f"{at}.{name}" if at else name
            yield Problem(path=where, message="is missing")


def _struct_item(hint: Any) -> type[msgspec.Struct] | None:
    if get_origin(hint) is tuple:
        first = get_args(hint)[0]
        if isinstance(first, type) and issubclass(first, msgspec.Struct):
            return first
    return None


def _unknown(key: str, fields: Mapping[str, Any]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(key.replace("_", ""), fields, n=1)
    if near:
        return f"there is no such field; did you mean {near[0]}?"
    return f"there is no such field; there are {', '.join(fields)}"


def _plain(message: str) -> str:
    text, _, at = message.partition(" - at `$")
    at = at.rstrip("`")
    text = text.replace("Expected", "must be", 1).replace(", got", ", not", 1)
    return f"{at.lstrip('.')}: {text}" if at else text


def _inside(path: str, key: str) -> bool:
    return path == key or path.startswith((f"{key}.", f"{key}["))


def _sense(
    c: Connector, raw: Mapping[str, Any], *, code: bool, named: set[str]
) -> Iterator[Problem]:
    def fault(path: str, message: str) -> Problem:
        return Problem(path=path, message=message)

    if not NAME.fullmatch(c.name) and "name" not in named:
        yield fault("name", f"{c.name!r} must be lower case letters, digits, dots and dashes")
    if not c.command.strip() and "command" not in named:
        yield fault("command", "must name the program to run")
    yield from _templates(c)
    for i, lane in enumerate(c.lanes):
        if lane not in LANES:
            yield fault(f"lanes[{i}]", f"{lane!r} is none of {', '.join(LANES)}")
    if not c.lanes:
        yield fault("lanes", f"must hold at least one of {', '.join(LANES)}")
    for lane in c.lane_args:
        if lane not in LANES:
            yield fault(f"laneArgs.{lane}", f"is none of {', '.join(LANES)}")
    if c.cost_rank < 0:
        yield fault("costRank", "must be 0 or more")
    if c.meter_ttl_s < 0:
        yield fault("meterTtlS", "must be 0 or more seconds")
    if c.meter is not None and not c.meter.startswith("file:") and not code and not _built_in(c):
        yield fault(
            "meter", 'must be "file:<path>" (with {home} or {folder}), or have a provider.py'
        )
    if c.home_glob is not None and "*" not in os.path.basename(c.home_glob):
        yield fault("homeGlob", "must have a * in its last part")
    if c.home_glob is not None and c.home_env is None:
        yield fault(
            "homeEnv", "must name the variable that selects a home, where there is homeGlob"
        )
    if c.default_model is not None and c.models:
        names = [m.name for m in c.models]
        if c.default_model not in names:
            yield fault("defaultModel", f"{c.default_model!r} is none of {', '.join(names)}")
    for kind in ("auth", "throttle", "overloaded", "other"):
        if getattr(c.early_kill, kind) < 1:
            yield fault(f"earlyKill.{kind}", "must be 1 or more retries")
    for name, path in (("startup_s", "startupS"), ("running_s", "runningS")):
        if getattr(c.silence, name) <= 0:
            yield fault(f"silence.{path}", "must be more than 0 seconds")
    if c.silence.final_grace_s < 0:
        yield fault("silence.finalGraceS", "must be 0 or more seconds")
    for kind in ("quota", "throttle", "auth", "overloaded"):
        for i, pattern in enumerate(getattr(c.phrases, kind)):
            try:
                re.compile(pattern, re.IGNORECASE)
            except re.error as error:
                yield fault(f"phrases.{kind}[{i}]", f"is no regular expression: {error}")
    yield from _stream(c.stream, code=code)


def _templates(c: Connector) -> Iterator[Problem]:
    known = set(VALUES)
    lists: dict[str, tuple[str, ...]] = {
        "args": c.args,
        "modelArgs": c.model_args,
        "effortArgs": c.effort_args,
        "resumeArgs": c.resume_args,
        "permissionArgs": c.permission_args,
        **{f"laneArgs.{lane}": args for lane, args in c.lane_args.items()},
    }
    for path, args in lists.items():
        for i, element in enumerate(args):
            for name in PLACES.findall(element):
                if name in GROUPS:
                    if path != "args":
                        message = f"{{{name}}} can stand in args only"
                    elif element != f"{{{name}}}":
                        message = f"{{{name}}} must be an element of its own"
                    else:
                        continue
                    yield Problem(path=f"{path}[{i}]", message=message)
                elif name not in known:
                    there = ", ".join(f"{{{v}}}" for v in (*VALUES, *GROUPS))
                    yield Problem(
                        path=f"{path}[{i}]", message=f"{{{name}}} is no place; there are {there}"
                    )
    for group, path, args in (
        ("model_args", "modelArgs", c.model_args),
        ("effort_args", "effortArgs", c.effort_args),
        ("resume_args", "resumeArgs", c.resume_args),
        ("permission_args", "permissionArgs", c.permission_args),
        ("lane_args", "laneArgs", tuple(c.lane_args)),
    ):
        if args and f"{{{group}}}" not in c.args:
            yield Problem(path=path, message=f'is never used: args has no "{{{group}}}"')
    for group, path, args, value in (
        ("model", "modelArgs", c.model_args, "{model}"),
        ("effort", "effortArgs", c.effort_args, "{effort}"),
        ("resume", "resumeArgs", c.resume_args, "{session}"),
        ("permission", "permissionArgs", c.permission_args, "{permission}"),
    ):
        if args and not any(value in element for element in args):
            yield Problem(path=path, message=f"must say where the {group} goes: {value}")
    told = any("{prompt}" in e or "{prompt_file}" in e for e in c.args)
    if c.prompt_via == "arg" and not told:
        yield Problem(
            path="args", message='must hold {prompt} or {prompt_file}, or promptVia be "stdin"'
        )
    if c.prompt_via == "stdin" and any("{prompt}" in e for e in c.args):
        yield Problem(path="args", message='must not hold {prompt}, where promptVia is "stdin"')


def _stream(stream: Stream, *, code: bool) -> Iterator[Problem]:
    if stream.format == "text":
        if stream.terminal:
            yield Problem(path="stream.terminal", message="must be false: text has no final event")
        if stream.rules:
            yield Problem(path="stream.rules", message="must be empty: text has no events")
        return
    for i, rule in enumerate(stream.rules):
        try:
            Reader(Stream(rules=(rule,)))
        except ValueError as error:
            yield Problem(path=f"stream.rules[{i}]", message=str(error))
    if not code and not _emits(stream.rules, "text", "final"):
        yield Problem(path="stream.rules", message="must have a rule that emits text, or final")
    if not code and stream.terminal and not _emits(stream.rules, "final"):
        yield Problem(
            path="stream.rules", message="must have a rule that emits final, or terminal be false"
        )


def _emits(rules: tuple[Rule, ...], *kinds: str) -> bool:
    return any(rule.emit in kinds for rule in rules)


def _built_in(c: Connector) -> bool:
    from bullswarm.providers.registry import BUILT_IN

    return c.name in BUILT_IN


def _code_faults(folder: Path) -> Iterator[Problem]:
    from bullswarm.providers.discover import load_folder

    try:
        load_folder(str(folder), os.environ)
    except Exception as error:
        words = str(error) if isinstance(error, UsageError) else f"{type(error).__name__}: {error}"
        yield Problem(path="provider.py", message=words)
