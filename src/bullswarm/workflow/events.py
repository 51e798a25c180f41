"""Everything that can happen to a run. One that was taken in before (by its id) changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from bullswarm.dispatch.types import FailureKind, Notice, Usage
from bullswarm.judge.types import Changes
from bullswarm.workflow.state import CheckResult, Value


class Happened(
    Value,
    frozen=True,
    kw_only=True,
    tag_field="event",
    tag=lambda name: name,
    forbid_unknown_fields=False,
):
    """Base: ``id`` is unique in the run and the same however often the event is delivered; ``at``
    is when it happened."""

    id: str
    at: datetime


class Outcome(Value, frozen=True, kw_only=True):
    """How an attempt ended and what the gates say.

    ``started`` is False where no worker ever started. ``answer`` is the typed answer where a schema
    was asked for (a review's always is). ``checks`` None: the kernel is to ask for the evidence;
    else it was run already. ``merge_conflict`` likewise: set where the engine merged and failed.
    ``retry_at`` is when a pool will have room again, where that is known.
    """

    ok: bool
    why: str = "verified"
    failure_kind: FailureKind | None = None
    started: bool = True
    pool: str | None = None
    provider: str | None = None
    group: str | None = None
    model: str | None = None
    session: str | None = None
    notice: Notice | None = None
    changes: Changes | None = None
    answer: Any = None
    usage: Usage = Usage()
    out_file: str | None = None
    checks: tuple[CheckResult, ...] | None = None
    merge_conflict: str | None = None
    retry_at: datetime | None = None


class AttemptStarted(Happened, frozen=True, kw_only=True):
    """The worker of an attempt lives, or is about to be spawned for certain."""

    step: str
    attempt_id: str
    pool: str
    provider: str
    group: str | None = None
    model: str | None = None


class AttemptEnded(Happened, frozen=True, kw_only=True):
    """The worker of an attempt is gone, or never came."""

    step: str
    attempt_id: str
    outcome: Outcome


class Held(Happened, frozen=True, kw_only=True):
    """No pool has room for the attempt now; nothing started. It will be asked for again, by the
    same id, at ``until`` or on ``Released``."""

    step: str
    attempt_id: str
    why: str
    until: datetime | None = None


class Released(Happened, frozen=True, kw_only=True):
    """There may be room for a held attempt again. ``step`` None: for any."""

    step: str | None = None


class EvidenceRan(Happened, frozen=True, kw_only=True):
    """The evidence of an attempt was run, all of it or up to the first failure."""

    step: str
    attempt_id: str
    checks: tuple[CheckResult, ...]


class Merged(Happened, frozen=True, kw_only=True):
    """The step's worktree was merged, or was not: then ``why`` and ``tail`` say what is in the
    way, and the worktree is still there."""

    step: str
    attempt_id: str
    ok: bool
    why: str = ""
    tail: str = ""


class TimerFired(Happened, frozen=True, kw_only=True):
    """A time that ``SetTimer`` asked for has come: a pause after a throttle, a limit's reset."""

    timer: str


class Paused(Happened, frozen=True, kw_only=True):
    """No new starts. ``now`` also ends the workers, but for those of an ``act`` step: they are
    run again on resume, and no retry is spent."""

    now: bool = False


class Resumed(Happened, frozen=True, kw_only=True):
    """Go on after a pause."""


class CancelRequested(Happened, frozen=True, kw_only=True):
    """End the workers, then the run. ``level`` 2 kills at once."""

    level: int = 1


class StepRerun(Happened, frozen=True, kw_only=True):
    """The caller wants a step done again; ``dependents`` also what was built on it. The reviews
    that judge it, and what failed on its results, follow in any case; an ``act`` step that may
    have acted never does."""

    step: str
    reason: str
    dependents: bool = False


class StepAccepted(Happened, frozen=True, kw_only=True):
    """The caller takes a failed step, or a failing requirement, as it is: a choice, not proof."""

    target: str
    reason: str


class PlanRevised(Happened, frozen=True, kw_only=True):
    """Change the plan while it runs. ``base_revision`` is the revision that the author looked at.

    ``add``: whole steps. ``amend``: objects with ``id`` and the keys to change. ``remove``: ids.
    ``rerun``: ids of steps to do again. ``options`` and ``goal`` as in the program.
    """

    base_revision: int
    reason: str = ""
    add: tuple[dict[str, Any], ...] = ()
    amend: tuple[dict[str, Any], ...] = ()
    remove: tuple[str, ...] = ()
    rerun: tuple[str, ...] = ()
    options: Mapping[str, Any] = {}
    goal: str | None = None


class KernelRestarted(Happened, frozen=True, kw_only=True):
    """A new process carries the run on. ``live`` are the attempts whose worker it knows to be
    watched again; everything else that is outstanding is asked for once more."""

    live: tuple[str, ...] = ()


Event = (
    AttemptStarted
    | AttemptEnded
    | Held
    | Released
    | EvidenceRan
    | Merged
    | TimerFired
    | Paused
    | Resumed
    | CancelRequested
    | StepRerun
    | StepAccepted
    | PlanRevised
    | KernelRestarted
)


def encode_event(event: Event) -> bytes:
    """The event as JSON; ``decode_event`` gives an equal one back."""
    return msgspec.json.encode(event)


def decode_event(data: bytes | str) -> Event:
    """Raises ``msgspec.DecodeError`` for what is no event."""
    return msgspec.json.decode(data, type=Event)
