"""The program: what a workflow is to do, as its author writes it down (JSON or YAML).

The structs are the one source: the published JSON Schema is made from them, and a document is
checked against them. Every field's description is what an editor shows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bullswarm.errors import UsageError

SCHEMA_VERSION = 3

Role = Literal["investigate", "produce", "transform", "combine", "check", "act"]
ROLES: tuple[Role, ...] = ("investigate", "produce", "transform", "combine", "check", "act")

Kind = Literal[
    "implement",
    "check",
    "integration",
    "digest",
    "mechanical",
    "io-read",
    "architecture",
    "adversarial-acceptance",
]
DeliverableType = Literal["files", "report", "data", "media", "outward"]
Effort = Literal["minimal", "low", "medium", "high", "xhigh", "max"]
Workspace = Literal["shared", "own"]
OnLimit = Literal["reroute", "quarantine", "return", "wait"]

OUTPUT = "$output"
"""The source that stands for the worker's answer."""

ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
Id = Annotated[str, Meta(pattern=ID_PATTERN)]
Text = Annotated[str, Meta(min_length=1)]
JsonSchema = dict[str, Any] | bool


def _about(text: str) -> Meta:
    return Meta(description=text)


class Value(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """Base of the program's values: immutable, camelCase, unknown keys refused."""


class Requirement(Value, frozen=True, kw_only=True):
    """One thing that the goal asks for."""

    id: Annotated[Id, _about("How steps and reviews name it, for example R1.")]
    text: Annotated[Text, _about("What must be true at the end.")]


class Deliverable(Value, frozen=True, kw_only=True):
    """What a step leaves behind. A step whose declared paths are missing, empty or untouched has
    failed as not-produced."""

    type: Annotated[
        DeliverableType,
        _about(
            "files, a report, data or media at exact paths, or outward: an effect outside the "
            "folder, such as a sent message."
        ),
    ]
    paths: Annotated[
        tuple[Text, ...],
        _about("Exact paths, relative to the working folder. The step owns them."),
    ] = ()


class CommandCheck(Value, frozen=True, kw_only=True, tag_field="type", tag="command"):
    """A command that the kernel runs after the worker. Exit 0 passes; it may not change the
    deliverable."""

    command: Annotated[
        Text | Annotated[tuple[str, ...], Meta(min_length=1)],
        _about("A line for the shell, or a list of the program and its arguments."),
    ]
    timeout_s: Annotated[float, Meta(gt=0, le=86400), _about("Seconds until it is ended.")] = 300.0
    name: Annotated[str | None, _about("What it shows, in a few words.")] = None


class SchemaCheck(Value, frozen=True, kw_only=True, tag_field="type", tag="schema"):
    """A JSON Schema (draft 2020-12) over a file or over the worker's answer."""

    schema: Annotated[
        JsonSchema | Text,
        _about("The schema itself, or the path of its file relative to the working folder."),
    ]
    file: Annotated[
        Text,
        _about("The file to check (JSON, or YAML by its name), or $output for the answer."),
    ] = OUTPUT
    name: Annotated[str | None, _about("What it shows, in a few words.")] = None


Evidence = CommandCheck | SchemaCheck


class Route(Value, frozen=True, kw_only=True):
    """Where a step may run."""

    use: Annotated[
        tuple[Text, ...], _about("Pools or providers to choose among, and no others.")
    ] = ()
    avoid: Annotated[tuple[Text, ...], _about("Pools or providers never to choose.")] = ()
    independent_of: Annotated[
        tuple[Id, ...],
        _about("Steps whose providers must not run this one. It starts after them."),
    ] = ()


class Step(Value, frozen=True, kw_only=True):
    """One piece of work for one worker."""

    id: Annotated[Id, _about("Unique in the program: letters, digits, '-' and '_'.")]
    prompt: Annotated[Text, _about("What the worker is told.")]
    purpose: Annotated[str, _about("One line for people: why this step is there.")] = ""
    depends_on: Annotated[
        tuple[Id, ...], _about("Steps that must be done before this one starts.")
    ] = ()
    role: Annotated[
        Role | None, _about("What the step does. With the deliverable it sets lane and effort.")
    ] = None
    kind: Annotated[
        Kind | None, _about("A closer name for the work; it belongs to one role and sets the lane.")
    ] = None
    deliverable: Annotated[Deliverable | None, _about("What it must leave behind.")] = None
    requirements: Annotated[
        tuple[Id, ...], _about("Requirements that this step helps to meet.")
    ] = ()
    evidence: Annotated[
        tuple[Evidence, ...], _about("Checks that the kernel runs after the worker.")
    ] = ()
    evidence_for: Annotated[
        tuple[Id, ...],
        _about("Makes this step a review: the requirements or steps that it judges."),
    ] = ()
    route: Annotated[Route, _about("Where it may run.")] = Route()
    effort: Annotated[Effort | None, _about("How hard the model thinks; set by the role else.")] = (
        None
    )
    model: Annotated[str | None, _about("The exact model to use.")] = None
    time_box: Annotated[
        Annotated[float, Meta(gt=0)] | None, _about("Minutes until the worker is ended.")
    ] = None
    answer_schema: Annotated[
        JsonSchema | Text | None,
        _about("JSON Schema of the answer, or its path. A well-formed answer is not proof."),
    ] = None
    workspace: Annotated[
        Workspace,
        _about("shared: the run's folder. own: a git worktree, merged when the checks pass."),
    ] = "shared"


class Options(Value, frozen=True, kw_only=True):
    """How the run behaves. Each limit stops the run by its own name."""

    concurrency: Annotated[int, Meta(ge=1, le=256), _about("Steps that run at once, at most.")] = 4
    verify_rounds: Annotated[
        int, Meta(ge=0, le=3), _about("Fix and review again after a failed review, at most.")
    ] = 1
    on_limit: Annotated[
        OnLimit | None,
        _about(
            "After a usage limit: reroute (bench the pool, go elsewhere; also called quarantine), "
            "return (to the caller) or wait (for the reset). None: the home's limits.mode."
        ),
    ] = None
    max_attempts: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        _about("Loop guard: attempts in the whole run. None: no such limit."),
    ] = None
    max_step_attempts: Annotated[
        int, Meta(ge=1), _about("Loop guard: attempts of one step without a word of the caller.")
    ] = 20
    cost_cap_usd: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        _about("Cost cap: reported dollars in the whole run. None: no such limit."),
    ] = None


class Program(Value, frozen=True, kw_only=True):
    """A workflow program."""

    schema_version: Annotated[Literal[3], _about("The version of this format.")]
    steps: Annotated[tuple[Step, ...], Meta(min_length=1), _about("The steps, in any order.")]
    goal: Annotated[
        str, _about("What the run is for. Its numbered clauses become requirements R1, R2, ...")
    ] = ""
    requirements: Annotated[
        tuple[Requirement, ...] | None,
        _about("The requirements, where the goal's numbered clauses are not to be used."),
    ] = None
    options: Annotated[Options, _about("How the run behaves.")] = Options()
    schema_uri: Annotated[
        str | None, _about("Where an editor finds the JSON Schema of this format.")
    ] = msgspec.field(name="$schema", default=None)


def read(path: str | Path) -> Any:
    """The document in a JSON or YAML file, not yet validated. Raises ``UsageError``."""
    where = Path(path)
    try:
        text = where.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"program {where}: can't be read ({error})") from error
    return parse(text, name=str(where))


def parse(text: str, *, name: str = "program") -> Any:
    """The document in a text: JSON, else YAML. Raises ``UsageError`` with the place of the slip,
    and for a key that stands twice in one object, of which one would be lost."""
    import json

    try:
        document = msgspec.json.decode(text)
        json.loads(text, object_pairs_hook=lambda pairs: _once(pairs, name))
        return document
    except RecursionError as error:
        raise UsageError(f"{name}: nested too deeply") from error
    except msgspec.DecodeError as error:
        if text.lstrip().startswith("{") and name.endswith(".json"):
            raise UsageError(f"{name}: not valid JSON ({error})") from error
    import yaml

    class Loader(yaml.SafeLoader):
        """Safe, and a key stands once."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            _once([(key, None) for key in keys if key != "<<"], name)
            return super().construct_mapping(node, deep=deep)

    try:
        return yaml.load(text, Loader)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"{name}: neither JSON nor YAML ({error})") from error


def _once(pairs: list[tuple[Any, Any]], name: str) -> dict[Any, Any]:
    seen = set()
    for key, _ in pairs:
        if isinstance(key, str) and key in seen:
            raise UsageError(f"{name}: the key {key!r} stands twice in one object")
        seen.add(key if isinstance(key, str) else None)
    return {}


def as_document(value: Any) -> Any:
    """A value as JSON has it: objects, lists, strings and numbers."""
    return msgspec.json.decode(msgspec.json.encode(value))


def export(program: Program, *, yaml: bool = False) -> str:
    """The program as a document that ``read`` takes, without what stands at its default."""
    if not yaml:
        return msgspec.json.format(msgspec.json.encode(program), indent=2).decode() + "\n"
    import yaml as library

    return library.safe_dump(as_document(program), sort_keys=False, allow_unicode=True, width=100)
