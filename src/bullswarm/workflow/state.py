"""The state of a run: one immutable value, JSON in and out, and a function of its events alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from bullswarm.dispatch.types import FailureKind, Notice, Usage
from bullswarm.judge.types import Changes
from bullswarm.runs.after import LimitsMode
from bullswarm.workflow.program import Program, Requirement, Step

Phase = Literal["running", "paused", "cancelling", "completed", "partial", "cancelled"]
"""``partial`` is an end that stays steerable: nothing can go on without the caller, and a rerun, an
acceptance or a revision opens the run again. ``completed`` opens the same way. ``cancelled`` is
final."""

ENDED: frozenset[Phase] = frozenset({"completed", "partial", "cancelled"})

Status = Literal[
    "pending",  # waits for its inputs, a slot or a time
    "running",  # a worker was asked for, or works
    "checking",  # the kernel's evidence runs
    "merging",  # its own worktree is being merged
    "fixing",  # a failed review waits for its fix and its next round
    "done",
    "accepted",  # the caller's choice
    "needs-caller",
    "blocked",  # something it waits for needs the caller
    "cancelled",
]
ACTIVE: frozenset[Status] = frozenset({"running", "checking", "merging"})
PASSED: frozenset[Status] = frozenset({"done", "accepted"})

StepFailure = (
    FailureKind | Literal["evidence", "merge-conflict", "review", "lost", "guard", "stopped"]
)
"""``evidence``: a check failed. ``review``: its rounds are used up. ``lost``: an outward action
that nobody saw end. ``guard``: the loop guard of one step."""

Limit = Literal["maxAttempts", "costCapUsd"]
"""What can stop a whole run. ``maxStepAttempts`` stops one step and is named in its ``why``."""


class Value(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of the kernel's values."""


class CheckResult(Value, frozen=True, kw_only=True):
    """What one piece of evidence showed. ``index`` is its place in the step's list. ``tail`` is
    the end of a command's output; for a schema, its faults as lines."""

    index: int
    type: Literal["command", "schema"]
    ok: bool
    why: str = "passed"
    tail: str = ""
    wall_s: float | None = None


class AttemptState(Value, frozen=True, kw_only=True):
    """One attempt. ``reason`` says why there is one; ``by_caller`` that a person or an agent asked
    for it. ``asked`` and ``held`` come before ``running``; ``stopping`` is the level of a stop that
    was asked for. ``spent`` is False where the attempt says nothing about the work: a pause."""

    id: str
    n: int
    reason: str
    asked_at: datetime
    by_caller: bool = False
    state: Literal["asked", "held", "running", "ended"] = "asked"
    pool: str | None = None
    provider: str | None = None
    group: str | None = None
    model: str | None = None
    session: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    started: bool = False
    ok: bool | None = None
    failure_kind: StepFailure | None = None
    why: str = ""
    notice: Notice | None = None
    changes: Changes | None = None
    usage: Usage = Usage()
    out_file: str | None = None
    stopping: int = 0
    spent: bool = True
    held_until: datetime | None = None
    held_why: str = ""
    checks: tuple[CheckResult, ...] = ()


class Resume(Value, frozen=True, kw_only=True):
    """A CLI session that was broken off, and the only pool that can go on with it."""

    pool: str
    session: str


class Again(Value, frozen=True, kw_only=True):
    """What the next attempt of a step has to mind; see ``commands.StartAttempt``."""

    reason: str
    by_caller: bool = False
    pool: str | None = None
    resume: Resume | None = None
    exclude: tuple[str, ...] = ()
    exclude_groups: tuple[str, ...] = ()
    attach: Literal["failure", "hand-over"] | None = None
    relogin: bool = False


class Verdict(Value, frozen=True, kw_only=True):
    """What a review says of one requirement (or of one step that affects none).

    ``review`` is the step that said it, ``provider`` who ran it, and ``also_wrote`` whether that
    provider also wrote what was judged (None: not known).
    """

    id: str
    passed: bool
    reason: str
    review: str
    attempt_id: str
    at: datetime
    pool: str | None = None
    provider: str | None = None
    also_wrote: bool | None = None


class Round(Value, frozen=True, kw_only=True):
    """One round after a failed review: the fix step and the review that follows it."""

    n: int
    fix: str
    review: str


class StepState(Value, frozen=True, kw_only=True):
    """Where one step stands.

    ``cycle`` is the number of attempts that are no longer counted: those before the last word of
    the caller. ``again`` shapes the next attempt; ``not_before`` delays it. ``root`` is the review
    that a generated step belongs to. ``rounds`` are a review's rounds of the present cycle.
    ``owns`` are the paths it writes.
    """

    id: str
    status: Status = "pending"
    attempts: tuple[AttemptState, ...] = ()
    cycle: int = 0
    again: Again | None = None
    not_before: datetime | None = None
    why: str = ""
    failure_kind: StepFailure | None = None
    answer: Any = None
    accepted: str | None = None
    rounds: tuple[Round, ...] = ()
    root: str | None = None
    owns: tuple[str, ...] = ()
    done_at: datetime | None = None

    @property
    def last(self) -> AttemptState | None:
        return self.attempts[-1] if self.attempts else None


class RunState(Value, frozen=True, kw_only=True):
    """A run. ``revision`` counts the plan's revisions from 1. ``generated`` are the steps that the
    kernel made; ``deps`` is what every step waits for. ``verdicts`` are, by review, its last ones;
    a next round's replace the first's. ``choices`` is what the caller accepted though a review
    fails it, with the reason. ``stopped_by`` is the limit that keeps new work from starting.
    ``seen`` are the ids of the events taken in, each with its number.
    """

    run_id: str
    program: Program
    limits_mode: LimitsMode
    created_at: datetime
    at: datetime
    requirements: tuple[Requirement, ...] = ()
    revision: int = 1
    phase: Phase = "running"
    steps: Mapping[str, StepState] = {}
    generated: tuple[Step, ...] = ()
    deps: Mapping[str, tuple[str, ...]] = {}
    verdicts: Mapping[str, tuple[Verdict, ...]] = {}
    choices: Mapping[str, str] = {}
    stopped_by: Limit | None = None
    why: str = ""
    ended_at: datetime | None = None
    seen: Mapping[str, int] = {}

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """The program's steps, then the generated ones."""
        return (*self.program.steps, *self.generated)


def find_step(state: RunState, name: str) -> Step:
    """A step by its id. Raises ``KeyError``."""
    for step in state.all_steps:
        if step.id == name:
            return step
    raise KeyError(name)


def encode(state: RunState) -> bytes:
    """The state as JSON; ``decode`` gives an equal one back."""
    return msgspec.json.encode(state)


def decode(data: bytes | str) -> RunState:
    """Raises ``msgspec.DecodeError`` for what is no state."""
    return msgspec.json.decode(data, type=RunState)
