"""What the library takes and gives back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from bullswarm.dispatch.types import Event, FailureKind, Usage
from bullswarm.judge.types import Verdict
from bullswarm.routing.types import Lane, LatencyClass, Strategy


class RunTask(msgspec.Struct, frozen=True):
    """One task. Only ``prompt`` is needed.

    ``account`` pins an account ("codex:work") or a vendor ("codex"). ``cwd`` None is the current
    folder. ``lane``: ``analyze`` reads, ``build`` edits, ``chore`` makes small mechanical edits.
    ``domain`` picks a list of ``Policy.domains``. ``permission_mode`` is passed on as it is, in the
    vendor's own vocabulary; without an ``account`` it is refused unless only one vendor can be
    picked. ``model`` and ``effort`` are the CLI's own words. ``capabilities`` must all be declared
    by the account. ``deliverables`` are paths, relative to ``cwd``, that must be new or changed.
    ``answer_schema`` is the path of a JSON Schema that the answer must meet. ``timeout_s`` is in
    seconds of awake time. Of held work, higher ``priority`` goes first. ``policy`` is this task's
    own and wins over the one given to ``run``.
    """

    prompt: str
    account: str | None = None
    cwd: str | os.PathLike[str] | None = None
    lane: Lane = "build"
    domain: str | None = None
    permission_mode: str | None = None
    model: str | None = None
    effort: str | None = None
    capabilities: tuple[str, ...] = ()
    deliverables: tuple[str, ...] = ()
    answer_schema: str | os.PathLike[str] | None = None
    timeout_s: float | None = None
    priority: int = 0
    policy: Policy | None = None


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How to choose. ``prefer`` names accounts or vendors, best first; one that is not on this
    machine is passed over. ``quota_ceiling`` is the used% (0..100) above which an account is
    skipped. ``domains`` maps a task's domain to a list that stands in for ``prefer``. ``latency``
    asks for fast models or tolerates slow ones.

    Strategies: ``prefer-order`` (default) takes the first of ``prefer`` that passes the ceiling,
    ``most-quota`` the one with the most headroom, ``lowest-latency`` the fastest, ``pace`` the one
    furthest behind its subscription's pace (it has no ceiling, and no preference).
    """

    prefer: tuple[str, ...] | list[str] = ()
    quota_ceiling: float = 80.0
    strategy: Strategy = "prefer-order"
    domains: Mapping[str, tuple[str, ...] | list[str]] = {}
    latency: LatencyClass | None = None


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came back. ``ok`` is the judge's word, not the exit code's; an adapter of your own is
    its own judge, except for the deliverables and the answer schema that a task asks for. ``text``
    is the answer, ``answer`` the typed one where a schema was given.
    ``why`` says in one line what failed ("verified" where nothing did). ``session`` is the CLI's
    own session id. ``wall_s`` is in seconds, waiting included. ``verdict`` holds everything: the
    attempts, the files that changed, where the capture lies. An adapter of your own leaves it out;
    the fleet fills it in."""

    ok: bool
    text: str
    account: str | None = None
    why: str = "verified"
    failure_kind: FailureKind | None = None
    answer: Any = None
    session: str | None = None
    usage: Usage = Usage()
    wall_s: float = 0.0
    verdict: Verdict | None = None


class FleetEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of ``Fleet.stream``.

    ``kind``: ``waiting``, ``held``, ``routed``, ``started``, ``event`` (one of the agent's own, in
    ``event``), ``notice``, ``ended``, ``benched``, ``retrying``, and at last ``result`` with
    ``result`` set. ``text`` is a line for people.
    """

    kind: str
    text: str = ""
    account: str | None = None
    event: Event | None = None
    result: RunResult | None = None
