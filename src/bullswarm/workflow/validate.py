"""Is a document a program that can run? Every fault at once, each with its path and a way out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from posixpath import normpath
from typing import Any

import msgspec

from bullswarm.errors import UsageError
from bullswarm.workflow.advice import advice_on
from bullswarm.workflow.defaults import KINDS, role_of
from bullswarm.workflow.faults import Advice, Fault, near
from bullswarm.workflow.graph import cycles, dependencies, named_deps, shared_paths
from bullswarm.workflow.program import OUTPUT, Program, SchemaCheck, Step
from bullswarm.workflow.requirements import requirements_of
from bullswarm.workflow.salvage import salvage
from bullswarm.workflow.shape import faults_of

Result = tuple[Program | None, tuple[Fault, ...], tuple[Advice, ...]]


def validate(document: Any, *, folder: str | Path | None = None) -> Result:
    """The program, or None with every fault; and advice, which is never a refusal.

    ``folder`` is the working folder: where it is given, schema files are read too. Nothing else is
    read and nothing is written. Never raises for what the document holds.
    """
    if not isinstance(document, dict):
        return None, (Fault("$", "a program is an object", "see plan contract"),), ()
    shape = faults_of(document, Program)
    if shape:
        rest = salvage(document, shape)
        more = check(rest, folder=folder) if rest is not None else ()
        return None, _sorted((*shape, *more)), ()
    program = msgspec.convert(document, Program)
    faults = check(program, folder=folder)
    return (None, _sorted(faults), ()) if faults else (program, (), advice_on(program))


def _sorted(faults: Sequence[Fault]) -> tuple[Fault, ...]:
    """Each once, in the order of the document's parts."""

    def place(fault: Fault) -> list[tuple[int, str]]:
        parts = re.split(r"(\d+)", fault.path)
        return [(int(p), "") if p.isdigit() else (-1, p) for p in parts]

    return tuple(sorted(dict.fromkeys(faults), key=place))


def check(program: Program, *, folder: str | Path | None = None) -> tuple[Fault, ...]:
    """Every fault of a well-formed program."""
    found = list(_ids(program))
    steps = {s.id: s for s in program.steps}
    known = {r.id for r in requirements_of(program)}
    for index, step in enumerate(program.steps):
        at = f"$.steps[{index}]"
        found += _names(step, at, steps.keys(), known)
        found += _sense(step, at)
        found += _review(step, at, steps)
        found += _paths(step, at)
        found += _schemas(step, at, folder)
    found += _order(program)
    return tuple(found)


def _ids(program: Program) -> Iterator[Fault]:
    yield from _twice([s.id for s in program.steps], "$.steps", "step")
    requirements = requirements_of(program)
    if program.requirements is not None:
        yield from _twice([r.id for r in requirements], "$.requirements", "requirement")
    taken = {r.id for r in requirements}
    for index, step in enumerate(program.steps):
        if step.id in taken:
            yield Fault(
                f"$.steps[{index}].id", f"{step.id!r} is a requirement's id too", "rename the step"
            )


def _twice(ids: Sequence[str], path: str, what: str) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for index, name in enumerate(ids):
        if name in first:
            yield Fault(
                f"{path}[{index}].id",
                f"the {what} id {name!r} is used twice",
                f"also at {path}[{first[name]}].id; ids are unique",
            )
        first.setdefault(name, index)


def _names(step: Step, at: str, steps: Any, requirements: set[str]) -> Iterator[Fault]:
    others = [s for s in steps if s != step.id and not s.startswith("\0")]
    for key, names, known, what in (
        ("dependsOn", step.depends_on, others, "step"),
        ("route.independentOf", step.route.independent_of, others, "step"),
        ("requirements", step.requirements, sorted(requirements), "requirement"),
        ("evidenceFor", step.evidence_for, [*others, *sorted(requirements)], "step or requirement"),
    ):
        for place, name in enumerate(names):
            path = f"{at}.{key}[{place}]"
            if name == step.id and what != "requirement":
                word = {"dependsOn": "depends on", "evidenceFor": "judges"}.get(
                    key, "is to be independent of"
                )
                yield Fault(path, f"the step {name!r} {word} itself", "take it out")
            elif name not in known:
                yield Fault(path, f"there is no {what} {name!r}", near(name, known))
            elif name in names[:place]:
                yield Fault(path, f"{name!r} is named twice", "take one out")


def _sense(step: Step, at: str) -> Iterator[Fault]:
    role = role_of(step)
    if step.kind is not None and step.role not in (None, KINDS[step.kind].role):
        yield Fault(
            f"{at}.kind",
            f"the kind {step.kind!r} belongs to the role {KINDS[step.kind].role!r}, "
            f"not to {step.role!r}",
            "leave the role out",
        )
    outward = step.deliverable is not None and step.deliverable.type == "outward"
    if outward and role != "act":
        yield Fault(
            f"{at}.deliverable.type",
            f"a step of the role {role!r} can't have outward effects",
            "give the step the role 'act', or another deliverable",
        )
    if role == "act" and step.workspace == "own":
        yield Fault(
            f"{at}.workspace",
            "an act step can't have a workspace of its own: it is never started twice, so a failed "
            "merge could not be put right",
            "workspace: shared",
        )
    both = sorted(set(step.route.use) & set(step.route.avoid))
    if both:
        yield Fault(f"{at}.route", f"{both[0]!r} is both to be used and to be avoided")
    for place, one in enumerate(step.evidence):
        command = getattr(one, "command", None)
        empty = isinstance(command, tuple) and not command[0].strip()
        if empty:
            yield Fault(f"{at}.evidence[{place}].command[0]", "must not be empty")


def _review(step: Step, at: str, steps: dict[str, Step]) -> Iterator[Fault]:
    if not step.evidence_for:
        return
    if role_of(step) != "check":
        yield Fault(f"{at}.role", f"a review is a check, not {role_of(step)!r}", "role: check")
    if step.workspace == "own":
        yield Fault(
            f"{at}.workspace",
            "a review looks at the work where it is and has nothing to merge",
            "workspace: shared",
        )
    if step.answer_schema is not None:
        yield Fault(
            f"{at}.answerSchema",
            "a review answers with a verdict for each requirement; its schema is given",
            "take it out",
        )
    for place, name in enumerate(step.evidence_for):
        if name in step.requirements:
            yield Fault(
                f"{at}.evidenceFor[{place}]",
                f"the step affects {name!r} and can't judge itself",
                "take it out of the step's requirements",
            )
        elif name in steps and steps[name].evidence_for:
            yield Fault(
                f"{at}.evidenceFor[{place}]",
                f"{name!r} is a review, which has nothing to judge",
                "name the steps or requirements that it reviews",
            )


def _paths(step: Step, at: str) -> Iterator[Fault]:
    named = [
        (f"{at}.deliverable.paths[{i}]", p)
        for i, p in enumerate(step.deliverable.paths if step.deliverable else ())
    ]
    seen: set[str] = set()
    for path, name in named:
        yield from _inside(path, name)
        if normpath(name) in seen:
            yield Fault(path, f"{name!r} is named twice", "take one out")
        seen.add(normpath(name))
    for place, one in enumerate(step.evidence):
        if isinstance(one, SchemaCheck):
            if one.file != OUTPUT:
                yield from _inside(f"{at}.evidence[{place}].file", one.file)
            if isinstance(one.schema, str):
                yield from _inside(f"{at}.evidence[{place}].schema", one.schema)
    if isinstance(step.answer_schema, str):
        yield from _inside(f"{at}.answerSchema", step.answer_schema)


def _inside(path: str, name: str) -> Iterator[Fault]:
    plain = normpath(name)
    if "\0" in name or "\n" in name:
        yield Fault(path, "a path can't hold a line break or a null", "a plain relative path")
    elif name.startswith(("/", "~")) or name[1:3] in (":\\", ":/"):
        yield Fault(path, f"{name!r} is absolute", "relative to the working folder")
    elif plain == ".." or plain.startswith("../"):
        yield Fault(path, f"{name!r} leaves the working folder", "a path inside it")
    elif plain == ".":
        yield Fault(path, f"{name!r} is the whole working folder", "a file or folder inside it")


def _schemas(step: Step, at: str, folder: str | Path | None) -> Iterator[Fault]:
    named = [
        (f"{at}.evidence[{i}].schema", one.schema)
        for i, one in enumerate(step.evidence)
        if isinstance(one, SchemaCheck)
    ]
    if step.answer_schema is not None:
        named.append((f"{at}.answerSchema", step.answer_schema))
    for path, schema in named:
        yield from _schema(path, schema, folder)


def _schema(path: str, schema: Any, folder: str | Path | None) -> Iterator[Fault]:
    if isinstance(schema, str) and folder is None:
        return
    from bullswarm.judge.schema import load_schema, make_schema

    try:
        if isinstance(schema, str):
            load_schema(Path(folder or ".", schema))
        else:
            make_schema(schema)
    except UsageError as error:
        yield Fault(path, str(error), "a JSON Schema, draft 2020-12")


def _order(program: Program) -> Iterator[Fault]:
    """Faults of the graph as a whole, as far as its names are known."""
    steps = {s.id: s for s in program.steps}
    place = {s.id: i for i, s in enumerate(program.steps)}
    named = {s.id: tuple(n for n in named_deps(s, steps) if n != s.id) for s in program.steps}
    knots = cycles(named)
    for cycle in knots:
        yield Fault(
            f"$.steps[{place[cycle[0]]}].dependsOn",
            f"a cycle: {' -> '.join(cycle)}",
            "no step may wait for itself; take one of these out",
        )
    if knots or len(steps) < len(program.steps):
        return
    for one, other, path in shared_paths(program.steps, dependencies(program.steps)):
        yield Fault(
            f"$.steps[{place[other]}].deliverable.paths",
            f"{one!r} and {other!r} both own {path!r} and could run at once",
            f"let one depend on the other: dependsOn: [{one}]",
        )
