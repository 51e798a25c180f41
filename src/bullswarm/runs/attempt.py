"""One attempt, from its written spec to what it left: start or find the worker, watch it, judge it.

Everything that is needed stands in the spec and in the files beside it, so a process that comes
after a crash carries on: it finds a worker that still runs, reads the end of one that ended, and
never starts one twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec

from bullswarm.dispatch import (
    AlreadyStarted,
    SpawnError,
    Watch,
    find,
    next_depth,
    start,
    supervise,
    worker_env,
)
from bullswarm.dispatch.notices import Classifier, classify, phrases_of
from bullswarm.dispatch.types import Ended, Event, Launch, Limits, Notice, Worker
from bullswarm.judge import Before, compare, judge, take
from bullswarm.judge.deliverable import dump, restore
from bullswarm.judge.schema import Schema
from bullswarm.judge.types import Attempt, Changes, Judgement
from bullswarm.providers.types import Account, Ask, CommandLine, Provider
from bullswarm.runs.app import App
from bullswarm.runs.company import company_note
from bullswarm.runs.files import AttemptFiles
from bullswarm.runs.types import AttemptSpec, Cancelled, OnProgress, Progress
from bullswarm.store import me
from bullswarm.store.files import atomic_write

TICK_S = 1.0


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt came to: how it ended, what the gates say, what it changed, and the record
    for the verdict. ``limits`` are the structured limit reports of its stream."""

    spec: AttemptSpec
    command: tuple[str, ...]
    ended: Ended
    judgement: Judgement
    changes: Changes | None
    attempt: Attempt
    notice: Notice | None = None
    limits: tuple[Event, ...] = ()


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt must meet beside an honest end: see ``judge.judge``."""

    prompt: str
    schema: Schema | None = None
    deliverables: tuple[str, ...] = ()
    must_change: bool | None = None


class RunAttempt(Protocol):
    """What runs one attempt to its end: ``run_attempt`` for a worker that is a process."""

    def __call__(
        self,
        app: App,
        spec: AttemptSpec,
        provider: Provider,
        account: Account,
        terms: Terms,
        before: Before,
        *,
        reason: str = "",
        on_progress: OnProgress,
        cancelled: Cancelled,
    ) -> Outcome: ...


def files_of(spec: AttemptSpec) -> AttemptFiles:
    return AttemptFiles(Path(spec.folder), spec.stamp, spec.stream_format)


def first_look(spec: AttemptSpec, before_file: Path, deliverables: tuple[str, ...]) -> Before:
    """How the folder was before the run's first attempt; kept on disk for who comes after us."""
    try:
        return restore(before_file.read_bytes())
    except (OSError, ValueError):
        before = take(spec.cwd, deliverables=deliverables)
        atomic_write(before_file, dump(before))
        return before


def run_attempt(
    app: App,
    spec: AttemptSpec,
    provider: Provider,
    account: Account,
    terms: Terms,
    before: Before,
    *,
    reason: str = "",
    on_progress: OnProgress,
    cancelled: Cancelled,
) -> Outcome:
    """Run the attempt to its end, or carry on with it. The prompt is in its task file."""
    files = files_of(spec)
    command = _command(app, spec, provider, account, files)
    launch = _launch(app, spec, provider, command, files)
    limits: list[Event] = []

    def on_event(event: Event) -> None:
        if event.kind == "limit":
            limits.append(event)
        on_progress(Progress(kind="event", pool=spec.pool, event=event))

    began = app.now()
    try:
        worker = find(launch) or _start(app, account, launch, provider.connector.start_gap_s)
        owner_pid, owner_started = me()
        app.store.change(
            spec.attempt_id,
            state="running",
            pid=worker.pid,
            pid_started=worker.started,
            owner_pid=owner_pid,
            owner_started=owner_started,
        )
        on_progress(Progress(kind="started", pool=spec.pool, text=f"{spec.pool} pid {worker.pid}"))
        ended = _watch(app, spec, provider, worker, on_event, on_progress, cancelled)
    except SpawnError as error:
        now = app.now()
        ended = Ended(ended_by="spawn-failed", started_at=began, ended_at=now, notes=(str(error),))
    return _judged(app, spec, provider, command, ended, terms, before, reason, tuple(limits))


def _command(
    app: App, spec: AttemptSpec, provider: Provider, account: Account, files: AttemptFiles
) -> CommandLine:
    ask = Ask(
        prompt=files.task.read_text(encoding="utf-8"),
        cwd=spec.cwd,
        lane=spec.lane,
        model=spec.model,
        effort=spec.effort,
        permission_mode=spec.permission_mode,
        resume_session=spec.resume_session,
        prompt_file=str(files.task),
    )
    return provider.command(account, ask, app.settings.providers.get(spec.provider, {}))


def _launch(
    app: App, spec: AttemptSpec, provider: Provider, command: CommandLine, files: AttemptFiles
) -> Launch:
    env = worker_env(app.env, command.env_set, (*command.env_drop, *provider.connector.env_drop))
    env["BULLSWARM_DEPTH"] = str(next_depth(app.env))
    return Launch(
        attempt_id=spec.attempt_id,
        argv=command.argv,
        env=env,
        cwd=spec.cwd,
        stdout=str(files.stream),
        stderr=str(files.stderr),
        exit_file=str(files.exit),
        pid_file=str(files.pid),
        stdin=command.stdin,
    )


def _start(app: App, account: Account, launch: Launch, gap_s: float) -> Worker:
    login = account.login_file or account.home
    if login is not None and gap_s > 0:
        time.sleep(app.store.claim_start(login, gap_s))
    try:
        return start(launch)
    except AlreadyStarted:
        worker = find(launch)
        if worker is None:
            raise SpawnError("it was started elsewhere and can't be found") from None
        return worker


def _watch(
    app: App,
    spec: AttemptSpec,
    provider: Provider,
    worker: Worker,
    on_event: Callable[[Event], None],
    on_progress: OnProgress,
    cancelled: Cancelled,
) -> Ended:
    connector = provider.connector
    began = time.monotonic()
    last_tick = began

    def level() -> int:
        nonlocal last_tick
        now = time.monotonic()
        asked = cancelled()
        if now - last_tick >= TICK_S:
            last_tick = now
            asked = max(asked, app.store.cancel_level(spec.attempt_id))
            on_progress(Progress(kind="tick", pool=spec.pool, elapsed_s=now - began))
        return asked

    watch = Watch(
        worker,
        read_event=provider.read_event,
        classifier=Classifier(
            phrases=phrases_of(connector),
            early_kill=connector.early_kill,
            now=app.now,
            stderr_text=connector.stderr_text,
        ),
        limits=Limits(
            timeout_s=spec.timeout_s,
            startup_silence_s=spec.silence_s or connector.silence.startup_s,
            silence_s=spec.silence_s or connector.silence.running_s,
            final_grace_s=connector.silence.final_grace_s,
        ),
        text_mode=connector.stream.format == "text",
        on_event=on_event,
        cancelled=level,
    )
    return supervise(watch)


def _judged(
    app: App,
    spec: AttemptSpec,
    provider: Provider,
    command: CommandLine,
    ended: Ended,
    terms: Terms,
    before: Before,
    reason: str,
    limits: tuple[Event, ...],
) -> Outcome:
    files = files_of(spec)
    changes = compare(before)
    connector = provider.connector

    phrases = phrases_of(connector)

    def notice_of(text: str) -> Notice | None:
        return classify(text, now=app.now(), phrases=phrases, channel="answer")

    judgement = judge(
        ended,
        lane=spec.lane,
        prompt=terms.prompt,
        changes=changes,
        schema=terms.schema,
        terminal=connector.stream.format == "jsonl" and connector.stream.terminal,
        deliverables=terms.deliverables,
        must_change=terms.must_change,
        notice_of=notice_of,
        timeout_s=spec.timeout_s,
    )
    since = datetime.fromtimestamp(before.taken_ns / 1e9, UTC)
    company = company_note(app, spec, changes, since)
    out_file = None
    if ended.ended_by != "spawn-failed":
        atomic_write(files.out, ended.answer.encode("utf-8", "replace"))
        out_file = str(files.out)
    attempt = Attempt(
        n=spec.n,
        pool=spec.pool,
        ok=judgement.ok,
        why=judgement.why,
        failure_kind=judgement.failure_kind,
        ended_by=ended.ended_by,
        exit_code=ended.exit_code,
        wall_s=ended.wall_s,
        usage=ended.usage,
        session=ended.session,
        model=ended.model or spec.model,
        out_file=out_file,
        stream_file=str(files.stream) if files.stream.exists() else None,
        changes=changes,
        notes=tuple(
            dict.fromkeys((*ended.notes, *judgement.notes, *([company] if company else [])))
        ),
        reason=reason,
    )
    return Outcome(
        spec=spec,
        command=command.argv,
        ended=ended,
        judgement=judgement,
        changes=changes,
        attempt=attempt,
        notice=notice_behind(judgement),
        limits=limits,
    )


def notice_behind(judgement: Judgement) -> Notice | None:
    """The provider's "no" that decided. A failure that only the judge saw is put into the same
    words, so that what follows need not tell them apart."""
    if judgement.notice is not None:
        return judgement.notice
    if judgement.failure_kind in ("quota", "throttle", "auth"):
        return Notice(kind=judgement.failure_kind, text=judgement.why, source="text")
    return None
