"""The values that pass between providers, the supervisor, the notice classifier and the judge."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

FailureKind = Literal[
    "quota",
    "throttle",
    "auth",
    "provider",
    "process",
    "stalled",
    "schema",
    "not-produced",
    "unavailable",
    "depth",
    "cancelled",
]
"""What decided a failed run. ``not-produced`` covers the answer too: an empty answer, an
announcement without substance or a refusal means that what was asked for was not produced."""

EventKind = Literal[
    "start", "text", "tool", "tool-result", "progress", "retry", "limit", "error", "usage", "final"
]


class Value(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of the immutable dispatch values."""


class Usage(Value, frozen=True, kw_only=True):
    """Tokens and money of an attempt; None is unknown and is never turned into 0."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None


class Event(Value, frozen=True, kw_only=True):
    """One provider event, in our words. A provider's reader turns a raw JSON object into these.

    kind ``start``: session and model known. ``text``: the assistant's words. ``tool`` and
    ``tool-result``: work being done. ``retry``: the CLI says it will try the provider again
    (``status``, ``attempt``, ``max_attempts``, ``retry_after_s``). ``limit``: a structured limit
    report (``limit_status`` "allowed" | "warning" | "rejected", ``window``, ``resets_at``,
    ``used_pct``). ``error``: an error on the provider's own channel. ``final``: the terminal
    event; ``is_error`` beats any subtype. ``delta``: the text goes on with that of the text event
    before it.
    """

    kind: EventKind
    text: str = ""
    session: str | None = None
    model: str | None = None
    tool: str | None = None
    status: int | None = None
    code: str | None = None
    headers: dict[str, str] = {}
    attempt: int | None = None
    max_attempts: int | None = None
    retry_after_s: float | None = None
    limit_status: str | None = None
    window: str | None = None
    resets_at: datetime | None = None
    used_pct: float | None = None
    is_error: bool = False
    turns: int | None = None
    usage: Usage | None = None
    delta: bool = False


NoticeKind = Literal["quota", "throttle", "auth", "overloaded", "auth-race", "login-damaged"]


class Notice(Value, frozen=True, kw_only=True):
    """A provider's "no", classified. ``certain`` ends the attempt at once.

    ``source``: ``event`` (structured), ``text`` (a line with a notice's shape). ``window`` is
    "five_hour" | "weekly" | "monthly" | "model" | "balance" | None; ``family`` the model family a
    limit binds, where it binds one. ``resets_at`` None means the provider named none that could be
    read: unknown, never a guess.
    """

    kind: NoticeKind
    text: str
    source: Literal["event", "text"]
    resets_at: datetime | None = None
    window: str | None = None
    family: str | None = None
    certain: bool = True
    status: int | None = None
    wait_s: float | None = None


EndedBy = Literal[
    "exit",  # the process ended by itself
    "final-grace",  # it said its final word and never exited
    "notice",  # killed on a certain notice
    "stalled",  # killed at a silence threshold
    "loop",  # killed by the loop guard
    "timeout",  # killed at the time limit
    "cancelled",  # the user or the caller ended it
    "lost",  # it ended while nobody watched and left no exit status
    "spawn-failed",  # never started
]


class Ended(Value, frozen=True, kw_only=True):
    """How one attempt ended: facts only, no judgement.

    ``exit_code`` is None where no status could be had; negative for a signal, as in ``subprocess``.
    ``answer`` is the final text (or the last assistant text where there was no final event).
    ``said`` is the end of all that the worker itself said, whatever its final event says.
    ``jumped``: the machine slept or its clock was set meanwhile.
    """

    ended_by: EndedBy
    exit_code: int | None = None
    final: Event | None = None
    answer: str = ""
    said: str = ""
    notices: tuple[Notice, ...] = ()
    session: str | None = None
    model: str | None = None
    usage: Usage = Usage()
    started_at: datetime | None = None
    ended_at: datetime | None = None
    wall_s: float = 0.0
    tools: int = 0
    last_kind: str | None = None
    lines: int = 0
    bad_lines: int = 0
    truncated_lines: int = 0
    stderr_tail: str = ""
    stdout_tail: str = ""
    notes: tuple[str, ...] = ()
    survivors: tuple[int, ...] = ()
    jumped: bool = False


class Launch(Value, frozen=True, kw_only=True):
    """What to start: a complete, shell-free command with its files.

    ``env`` is the whole environment. ``stdout`` is the raw capture that is promised to people;
    the other files live beside it. ``pid_file`` is claimed by the worker's own first breath, and
    can be claimed only once: an attempt never starts twice. ``attempt_id`` is put into the
    environment as BULLSWARM_ATTEMPT so that survivors in other sessions can be found.
    """

    attempt_id: str
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    stdout: str
    stderr: str
    exit_file: str
    pid_file: str
    stdin: str | None = None
    log_file: str | None = None


class Worker(Value, frozen=True, kw_only=True):
    """A started worker, findable by any process: group leader pid plus its process start time."""

    attempt_id: str
    pid: int
    started: float
    launch: Launch


class Limits(Value, frozen=True, kw_only=True):
    """Time limits in seconds of awake time. None never ends the attempt (``timeout_s`` only)."""

    timeout_s: float | None = None
    startup_silence_s: float = 120.0
    silence_s: float = 600.0
    final_grace_s: float = 5.0
    kill_grace_s: float = 5.0
    loop_repeats: int = 40


RawEvent = dict[str, Any]
