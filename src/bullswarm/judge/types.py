"""What a run comes back with: gates, attempts, and the one verdict."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from bullswarm.dispatch.types import FailureKind, Notice, Usage


class Value(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of the judge's immutable values."""


class Gate(Value, frozen=True, kw_only=True):
    """One gate's answer. ``failure_kind`` is set when it failed."""

    name: str
    ok: bool
    why: str
    failure_kind: FailureKind | None = None


class Declared(Value, frozen=True, kw_only=True):
    """One declared deliverable: ``path`` as it was declared, and what became of it since the start.

    ``new``: was not there before. ``changed``: other content than before. The other three are
    reasons to call it not produced.
    """

    path: str
    state: Literal["new", "changed", "unchanged", "empty", "missing"]

    @property
    def ok(self) -> bool:
        """Whether it was produced: it is new, or changed."""
        return self.state in ("new", "changed")


class Changes(Value, frozen=True, kw_only=True):
    """What an attempt left in its working folder: paths relative to it, and new commits.

    ``kind`` is "git" or "hash". Files that were already changed before and were not touched again
    are not in it. A commit reads "1a2b3c4 its subject". ``declared`` holds the state of the
    deliverables that were named when the first look was taken. ``note`` says what could not be
    looked at.
    """

    kind: str = "git"
    created: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    note: str | None = None
    declared: tuple[Declared, ...] = ()

    @property
    def any(self) -> bool:
        """Whether anything was left at all."""
        return bool(self.created or self.modified or self.deleted or self.commits)


class Judgement(Value, frozen=True, kw_only=True):
    """What the gates say of one attempt.

    ``why`` is "verified" when ``ok``, else the first failed gate's reason. ``answer`` is the typed
    answer where a schema was given and met. ``notice`` is the provider's "no" that decided, where
    one did. ``gates`` are in the order they are judged; one that could not be judged is left out.
    """

    ok: bool
    why: str = "verified"
    failure_kind: FailureKind | None = None
    content_usable_despite_exit: bool = False
    gates: tuple[Gate, ...] = ()
    answer: Any = None
    notice: Notice | None = None
    notes: tuple[str, ...] = ()


class Pick(Value, frozen=True, kw_only=True):
    """Who ran it: the pool, the command (secrets never appear in argv), model and effort."""

    pool: str
    command: tuple[str, ...] = ()
    model: str | None = None
    effort: str | None = None


class Attempt(Value, frozen=True, kw_only=True):
    """One attempt of a run, with its cost in time and tokens. Unknown is null."""

    n: int
    pool: str
    ok: bool
    why: str
    failure_kind: FailureKind | None = None
    ended_by: str = "exit"
    exit_code: int | None = None
    wall_s: float = 0.0
    usage: Usage = Usage()
    session: str | None = None
    model: str | None = None
    out_file: str | None = None
    stream_file: str | None = None
    changes: Changes | None = None
    notes: tuple[str, ...] = ()
    reason: str = ""


class Verdict(Value, frozen=True, kw_only=True):
    """The one object a run ends with.

    ``ok`` true and ``keep_on_claude`` false: verified output, read ``out_file``. ``keep_on_claude``
    true: do it in the caller's own session; nothing ran. ``ok`` false: ``why`` names the failed
    gate. ``content_usable_despite_exit``: a non-zero exit but complete output, read before
    re-running.
    """

    ok: bool
    keep_on_claude: bool = False
    why: str = "verified"
    failure_kind: FailureKind | None = None
    pick: Pick | None = None
    content_usable_despite_exit: bool = False
    out_file: str | None = None
    task_file: str | None = None
    stream_file: str | None = None
    run_id: str | None = None
    short_id: str | None = None
    reason: str = ""
    gates: tuple[Gate, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    changes: Changes | None = None
    answer: Any = None
    exit_code: int | None = None
    wall_s: float = 0.0
    usage: Usage = Usage()
    retry_at: str | None = None
    notes: tuple[str, ...] = ()
