"""What the application layer is asked, and what one attempt needs to be started or found again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec

from bullswarm.dispatch.types import Event, Notice
from bullswarm.routing.types import Policy
from bullswarm.runs.after import LimitsMode


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work, as the command line, the library or a workflow step asks for it.

    ``pool`` is a strict pin. ``policy`` None means the home's configured policy. ``on_limit`` None
    means ``limits.mode``. ``hold`` None means ``admission.mode``. ``timeout_s`` counts awake
    seconds; ``patience_minutes`` bounds a hold. ``answer_schema`` is the path of a JSON Schema.
    ``deliverables`` are paths, relative to ``cwd``, that must be new or changed and not empty.
    """

    prompt: str
    lane: str
    cwd: str
    pool: str | None = None
    use: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    model: str | None = None
    effort: str | None = None
    capabilities: tuple[str, ...] = ()
    domain: str | None = None
    caller: str | None = None
    policy: Policy | None = None
    on_limit: LimitsMode | None = None
    hold: bool | None = None
    patience_minutes: float | None = None
    priority: int = 0
    timeout_s: float | None = None
    silence_s: float | None = None
    retries: int = 1
    answer_schema: str | None = None
    deliverables: tuple[str, ...] = ()
    permission_mode: str | None = None
    resume_session: str | None = None


class AttemptSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One attempt, complete: written down before the worker starts, so that whoever comes after a
    crash starts nothing twice and finds what is there.

    ``folder`` and ``stamp`` name the files (``task-<stamp>.md`` and so on).
    """

    attempt_id: str
    run_id: str
    n: int
    pool: str
    provider: str
    lane: str
    cwd: str
    folder: str
    stamp: str
    stream_format: str = "jsonl"
    step_id: str | None = None
    model: str | None = None
    effort: str | None = None
    permission_mode: str | None = None
    resume_session: str | None = None
    timeout_s: float | None = None
    silence_s: float | None = None
    purpose: str = ""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """One thing worth telling a person who watches.

    ``kind``: ``routed``, ``waiting``, ``held``, ``started``, ``event``, ``notice``, ``ended``,
    ``benched``, ``retrying``, ``tick``.
    """

    kind: str
    text: str = ""
    pool: str | None = None
    event: Event | None = None
    notice: Notice | None = None
    elapsed_s: float = 0.0
    until: datetime | None = None


OnProgress = Callable[[Progress], None]
Cancelled = Callable[[], int]
"""0: go on; 1: end the work and record it; 2 or more: kill it at once."""
