"""Everything that a run wants done. Each can be carried out twice without harm, by its ids."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from bullswarm.runs.after import LimitsMode
from bullswarm.workflow.faults import Fault
from bullswarm.workflow.program import Effort, Evidence, JsonSchema
from bullswarm.workflow.state import CheckResult, Limit, Resume, StepFailure, Value


class Wanted(
    Value,
    frozen=True,
    kw_only=True,
    tag_field="command",
    tag=lambda name: name,
):
    """Base of the commands."""


class Before(Value, frozen=True, kw_only=True):
    """The attempt before this one, for the prompt. ``kind`` ``failure``: the same worker is to put
    it right; ``hand-over``: another carries on. ``tail`` is the end of the failed evidence."""

    kind: Literal["failure", "hand-over"]
    attempt_id: str
    why: str
    tail: str = ""


class StartAttempt(Wanted, frozen=True, kw_only=True):
    """Start a worker for one attempt of a step, or find the one that was started.

    ``attempt_id`` is unique: it never has a second worker, however often it is asked for.
    ``reattach``: a worker is known to have started, so look for it and never start one. ``pool``:
    the same pool as before, where that is possible. ``resume``: the CLI session to go on with, if
    the pick is its pool. ``exclude``, ``exclude_groups``: pools and credential groups not to pick.
    ``not_providers``: who must not run it (``independentOf``); ``rather_not``: who had better not
    (it wrote what is judged, or will review what is fixed). ``answer_schema`` is the schema or its
    path; a review's is given.
    ``must_change`` as in ``judge.judge``. ``held_since`` counts a hold's patience.
    ``repeatable`` False: an outward action.
    """

    step: str
    attempt_id: str
    n: int
    reason: str
    prompt: str
    lane: str
    effort: Effort
    purpose: str = ""
    model: str | None = None
    use: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    not_providers: tuple[str, ...] = ()
    rather_not: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    exclude_groups: tuple[str, ...] = ()
    pool: str | None = None
    resume: Resume | None = None
    before: Before | None = None
    deliverables: tuple[str, ...] = ()
    must_change: bool | None = None
    answer_schema: JsonSchema | str | None = None
    time_box_s: float | None = None
    workspace: Literal["shared", "own"] = "shared"
    repeatable: bool = True
    reattach: bool = False
    relogin: bool = False
    limits_mode: LimitsMode = "quarantine"
    held_since: datetime | None = None


class RunEvidence(Wanted, frozen=True, kw_only=True):
    """Run these checks for an attempt, in order, and report all of them with ``EvidenceRan``.
    ``protect`` are the paths that no check may change."""

    step: str
    attempt_id: str
    evidence: tuple[Evidence, ...]
    protect: tuple[str, ...] = ()
    out_file: str | None = None
    workspace: Literal["shared", "own"] = "shared"


class StopWorker(Wanted, frozen=True, kw_only=True):
    """End the worker, or the checks, of an attempt and report its end. ``level`` 2 kills at
    once."""

    step: str
    attempt_id: str
    level: int = 1


class Merge(Wanted, frozen=True, kw_only=True):
    """Merge the step's worktree into the run's folder and report with ``Merged``. ``deliverables``
    come along though git ignores them."""

    step: str
    attempt_id: str
    deliverables: tuple[str, ...] = ()


class DropWorkspace(Wanted, frozen=True, kw_only=True):
    """The step's worktree was merged and may go. One with anything unmerged is kept and named."""

    step: str


class SetTimer(Wanted, frozen=True, kw_only=True):
    """Report ``TimerFired(timer)`` at ``at``. A timer of the same name is replaced."""

    timer: str
    at: datetime
    why: str = ""


class Choice(Value, frozen=True, kw_only=True):
    """One thing the caller can do: what it means, and the exact command line."""

    label: str
    command: str


class Notify(Wanted, frozen=True, kw_only=True):
    """A step needs the caller: why, the end of the failed evidence, what waits on it, and the
    commands that are the options."""

    step: str
    why: str
    failure_kind: StepFailure | None = None
    tail: str = ""
    waiting: tuple[str, ...] = ()
    choices: tuple[Choice, ...] = ()
    checks: tuple[CheckResult, ...] = ()


class Reply(Wanted, frozen=True, kw_only=True):
    """The answer to an event that a caller sent: taken (``ok``), or refused and why. A refused
    event changed nothing."""

    event_id: str
    ok: bool
    why: str = ""
    faults: tuple[Fault, ...] = ()
    revision: int = 1


class Finish(Wanted, frozen=True, kw_only=True):
    """The run has ended in this state. ``limit`` names the limit that stopped it, if one did."""

    state: Literal["completed", "partial", "cancelled"]
    verified: bool
    why: str
    limit: Limit | None = None


Command = (
    StartAttempt
    | RunEvidence
    | StopWorker
    | Merge
    | DropWorkspace
    | SetTimer
    | Notify
    | Reply
    | Finish
)
