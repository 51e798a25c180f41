#!/usr/bin/env python3
"""Write docs/api.md from the docstrings of the library. ``--check`` only says whether it is up to
date."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, get_args

import msgspec

PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
WIDTH = 96

HEAD = """# API reference

Made from the docstrings by `tools/api_reference.py`. How to use it all is in [fleet.md](fleet.md).
Everything under "The library" is imported from `bullswarm`. Percentages are 0 to 100, times are
aware `datetime`s, and None is unknown: it never stands for 0.
"""


def sections() -> list[tuple[str, list[type]]]:
    """What is on the page, in its order."""
    import bullswarm as b
    from bullswarm.dispatch import types as dispatch
    from bullswarm.fleet import ProviderAdapter
    from bullswarm.fleet.fleet import Routed
    from bullswarm.judge import types as judge
    from bullswarm.routing import types as routing

    library: list[type] = [b.Fleet, b.RunTask, b.Policy, b.RunResult, b.RouteDecision, b.FleetEvent]
    own: list[type] = [b.Adapter, b.Quota, b.Model, ProviderAdapter, Routed]
    errors: list[type] = [b.BullswarmError, b.UsageError, b.NoAccount]
    missing = {getattr(b, name) for name in b.__all__} - {*library, *own, *errors}
    assert not missing, f"public, and not on the page: {missing}"
    inside: list[type] = [
        routing.Candidate,
        routing.Decision,
        routing.Hold,
        routing.Window,
        judge.Verdict,
        judge.Attempt,
        judge.Changes,
        judge.Declared,
        judge.Gate,
        judge.Pick,
        dispatch.Event,
        dispatch.Usage,
    ]
    return [
        ("The library", library),
        ("Adapters", own),
        ("Errors", errors),
        ("Values inside results, decisions and events", inside),
    ]


def words() -> list[tuple[str, tuple[str, ...]]]:
    """The types that are a choice of words."""
    from bullswarm.dispatch import types as dispatch
    from bullswarm.routing import types as routing

    names = [(routing, n) for n in ("Lane", "Strategy", "LatencyClass", "WindowKind", "Tier")]
    names += [(routing, n) for n in ("Source", "ChargeBasis", "EstimateSource")]
    names += [(dispatch, "FailureKind"), (dispatch, "EventKind")]
    return [(name, get_args(getattr(module, name))) for module, name in names]


def rendered() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, classes in sections():
        parts.append(f"## {title}\n")
        for cls in classes:
            parts += entry(cls)
    parts.append("## Words\n\n| type | one of |\n|---|---|")
    for name, values in words():
        parts.append(f"| `{name}` | {', '.join(f'`{value}`' for value in values)} |")
    return "\n".join(parts).rstrip() + "\n"


def entry(cls: type) -> Iterator[str]:
    """One class: how it is made, what it says of itself, its attributes and methods."""
    yield f"### {cls.__name__}\n"
    if issubclass(cls, msgspec.Struct):
        yield code(call(cls.__name__, list(fields(cls)), star=keyword_only(cls)))
    elif cls.__name__ == "Fleet":  # the one class that people make themselves
        yield code(call(cls.__name__, *parameters(vars(cls)["__init__"])))
    yield prose(cls.__doc__) + "\n"
    for name, text in attributes(cls):
        yield f"- `{name}`: {prose(text)}"
    if any(attributes(cls)):
        yield ""
    for name, member in vars(cls).items():
        if not name.startswith("_"):
            yield from method(cls, name, member)


def method(cls: type, name: str, member: Any) -> Iterator[str]:
    """A method, a static method or a property; nothing for anything else."""
    if isinstance(member, property):
        gives = member.fget.__annotations__.get("return", "Any") if member.fget else "Any"
        signature = f"{cls.__name__}.{name}: {gives}"
    else:
        function = member.__func__ if isinstance(member, staticmethod) else member
        if not isinstance(function, FunctionType):
            return
        listed, star = parameters(function)
        head = "async " if inspect.iscoroutinefunction(function) else ""
        gives = function.__annotations__.get("return", "Any")
        signature = call(f"{head}{cls.__name__}.{name}", listed, star=star) + f" -> {gives}"
    assert member.__doc__, f"{cls.__name__}.{name} has no docstring"
    yield f"#### {cls.__name__}.{name}\n"
    yield code(signature)
    yield prose(member.__doc__) + "\n"


def fields(cls: type[msgspec.Struct]) -> Iterator[str]:
    """The fields of a value, with type and default."""
    told: dict[str, str] = {}
    for base in cls.__mro__:
        if base.__module__.startswith("bullswarm"):
            told |= written(base)
    names, defaults = cls.__struct_fields__, cls.__struct_defaults__
    padded = (msgspec.NODEFAULT,) * (len(names) - len(defaults)) + defaults
    for name, value in zip(names, padded, strict=True):
        text = f"{name}: {told[name]}"
        if value is not msgspec.NODEFAULT:
            # A default that can change is made anew for each value.
            text += f" = {default(value.factory() if hasattr(value, 'factory') else value)}"
        yield text


def written(cls: type) -> dict[str, str]:
    """The types of a class's fields, as they are written."""
    source = textwrap.dedent(inspect.getsource(cls))
    [tree] = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    return {
        node.target.id: ast.get_source_segment(source, node.annotation) or "Any"
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def keyword_only(cls: type[msgspec.Struct]) -> int | None:
    """Where the star stands: at the start, or nowhere."""
    kinds = {p.kind for p in inspect.signature(cls).parameters.values()}
    return 0 if inspect.Parameter.KEYWORD_ONLY in kinds else None


def parameters(function: FunctionType) -> tuple[list[str], int | None]:
    """The parameters without ``self``, and where those that need their name begin."""
    listed: list[str] = []
    star = None
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and star is None:
            star = len(listed)
        text = f"{name}: {parameter.annotation}"
        if parameter.default is not parameter.empty:
            text += f" = {default(parameter.default)}"
        listed.append(text)
    return listed, star


def default(value: Any) -> str:
    """A default, short: an empty value of ours is written as its call."""
    if isinstance(value, msgspec.Struct):
        return f"{type(value).__name__}()"
    return '"' + value + '"' if isinstance(value, str) else repr(value)


def call(name: str, listed: list[str], star: int | None = None) -> str:
    """A signature, on one line where it fits."""
    if star is not None:
        listed = [*listed[:star], "*", *listed[star:]]
    line = f"{name}({', '.join(listed)})"
    if len(line) <= WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {one},\n" for one in listed) + ")"


def attributes(cls: type) -> list[tuple[str, str]]:
    """Public attributes that are set in ``__init__`` and have a text below them."""
    source = vars(cls).get("__init__")
    if not isinstance(source, FunctionType) or getattr(cls, "_is_protocol", False):
        return []
    tree = ast.parse(textwrap.dedent(inspect.getsource(source)))
    [function] = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    found = []
    for node, after in zip(function.body, function.body[1:], strict=False):
        target: ast.expr | None = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(node, ast.Assign):
            target = node.targets[0]
        if not (isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)):
            continue
        if isinstance(target, ast.Attribute) and isinstance(after.value.value, str):
            found.append((target.attr, after.value.value))
    return found


def prose(doc: str | None) -> str:
    """A docstring as Markdown."""
    assert doc, "a public name without a docstring"
    return inspect.cleandoc(doc).replace("``", "`")


def code(text: str) -> str:
    return f"```python\n{text}\n```\n"


def main() -> int:
    new = rendered()
    if "--check" in sys.argv:
        return 0 if PAGE.exists() and PAGE.read_text(encoding="utf-8") == new else 1
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
