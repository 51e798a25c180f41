"""Lane and effort of a step: a table by role and deliverable, and one by kind.

Concepts: the role says what a step does, the deliverable what it leaves behind, and both set lane
and effort; a kind belongs to one role and keeps its own routing.
"""

from __future__ import annotations

from typing import get_args

import msgspec

from bullswarm.routing.types import Lane
from bullswarm.workflow.program import ROLES, DeliverableType, Effort, Kind, Role, Step


class Routing(msgspec.Struct, frozen=True):
    """Lane and effort."""

    lane: Lane
    effort: Effort


class KindRow(msgspec.Struct, frozen=True):
    """The role that a kind belongs to, and its own routing."""

    role: Role
    routing: Routing


DELIVERABLES: tuple[DeliverableType, ...] = get_args(DeliverableType)
DEFAULT_ROLE: Role = "produce"

_READ_LOW = Routing("analyze", "low")
_READ = Routing("analyze", "medium")
_READ_HIGH = Routing("analyze", "high")
_EDIT = Routing("build", "medium")
_EDIT_HIGH = Routing("build", "high")
_CHORE_LOW = Routing("chore", "low")
_CHORE = Routing("chore", "medium")

TABLE: dict[Role, dict[DeliverableType | None, Routing]] = {
    "investigate": {
        None: _READ,
        "files": _EDIT,
        "report": _READ,
        "data": _READ,
        "media": _EDIT,
    },
    "produce": {
        None: _EDIT_HIGH,
        "files": _EDIT_HIGH,
        "report": _READ_HIGH,
        "data": _EDIT,
        "media": _EDIT,
    },
    "transform": {
        None: _EDIT,
        "files": _EDIT,
        "report": _READ,
        "data": _CHORE,
        "media": _CHORE,
    },
    "combine": {
        None: _EDIT_HIGH,
        "files": _EDIT_HIGH,
        "report": _READ,
        "data": _EDIT,
        "media": _EDIT,
    },
    "check": {
        None: _READ_HIGH,
        "files": _EDIT,
        "report": _READ_HIGH,
        "data": _READ,
        "media": _EDIT,
    },
    "act": {
        None: _CHORE,
        "files": _CHORE,
        "report": _CHORE,
        "data": _CHORE,
        "media": _CHORE,
        "outward": _CHORE,
    },
}
"""By role and deliverable type; None is a step that declares no deliverable. Only ``act`` may have
outward effects, so no other role has that column."""

KINDS: dict[Kind, KindRow] = {
    "implement": KindRow("produce", _EDIT_HIGH),
    "check": KindRow("check", _READ),
    "integration": KindRow("combine", _EDIT_HIGH),
    "digest": KindRow("combine", _READ_LOW),
    "mechanical": KindRow("transform", _CHORE_LOW),
    "io-read": KindRow("investigate", _READ_LOW),
    "architecture": KindRow("investigate", _READ_HIGH),
    "adversarial-acceptance": KindRow("check", _READ_HIGH),
}


def role_of(step: Step) -> Role:
    """The step's role: its own, its kind's, ``check`` for a review, ``act`` for an outward
    deliverable, else ``produce``."""
    if step.role is not None:
        return step.role
    if step.kind is not None:
        return KINDS[step.kind].role
    if step.evidence_for:
        return "check"
    if step.deliverable is not None and step.deliverable.type == "outward":
        return "act"
    return DEFAULT_ROLE


def routing_of(step: Step) -> Routing:
    """Lane and effort of a step.

    A kind's own routing comes first, then the table. A step that has to leave paths behind can't
    run on a lane that only reads: ``analyze`` becomes ``build``. An effort in the step wins.
    """
    found = table_routing(step)
    lane: Lane = found.lane
    if lane == "analyze" and paths_of(step):
        lane = "build"
    return Routing(lane, step.effort or found.effort)


def table_routing(step: Step) -> Routing:
    """What the tables say, before the step's own words."""
    if step.kind is not None:
        return KINDS[step.kind].routing
    row = TABLE[role_of(step)]
    return row.get(step.deliverable.type if step.deliverable else None, row[None])


def paths_of(step: Step) -> tuple[str, ...]:
    """The paths that a step owns."""
    return step.deliverable.paths if step.deliverable is not None else ()


def must_change(step: Step) -> bool | None:
    """Whether the worker has to leave a change in the folder: never for an outward action, else
    what the lane says (None)."""
    return False if role_of(step) == "act" and not paths_of(step) else None


def tables() -> str:
    """Both tables in Markdown, for the documentation."""
    head = ["role", "(none)", *DELIVERABLES]
    rows = [head, ["---"] * len(head)]
    for role in ROLES:
        cells = [TABLE[role].get(kind) for kind in (None, *DELIVERABLES)]
        rows.append([role, *(f"{c.lane}, {c.effort}" if c else "-" for c in cells)])
    kinds = [["kind", "role", "lane", "effort"], ["---"] * 4]
    for kind, row in KINDS.items():
        kinds.append([kind, row.role, row.routing.lane, row.routing.effort])
    return "\n\n".join(
        "\n".join(f"| {' | '.join(cells)} |" for cells in table) for table in (rows, kinds)
    )
