"""One attempt of an adapter of the user's own: its coroutine on the caller's loop, watched from the
engine's thread, and what came of it in the engine's words."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from datetime import datetime

import msgspec

from bullswarm.dispatch.types import Ended, EndedBy, FailureKind
from bullswarm.fleet.adapter import Adapter
from bullswarm.fleet.app import OwnProvider
from bullswarm.fleet.types import RunResult, RunTask
from bullswarm.judge import Before, compare
from bullswarm.judge.gates import deliverable_gate
from bullswarm.judge.schema import answer_gate
from bullswarm.judge.types import Attempt, Changes, Gate, Judgement
from bullswarm.providers.types import Account, Provider
from bullswarm.runs.app import App
from bullswarm.runs.attempt import (
    TICK_S,
    Outcome,
    RunAttempt,
    Terms,
    files_of,
    notice_behind,
    run_attempt,
)
from bullswarm.runs.types import AttemptSpec, Cancelled, OnProgress, Progress
from bullswarm.store.files import atomic_write

LOOK_S = 0.05
GRACE_S = 5.0
"""How long a cancelled coroutine may clean up before it is left to itself."""


class _Call:
    """The coroutine on its loop, and how it ended."""

    def __init__(self, adapter: Adapter, task: RunTask, loop: asyncio.AbstractEventLoop) -> None:
        self._adapter, self._task, self._loop = adapter, task, loop
        self._running: asyncio.Task[None] | None = None
        self.over = threading.Event()
        self.result: RunResult | None = None
        self.cancelled = False
        loop.call_soon_threadsafe(self._start)

    def _start(self) -> None:
        self._running = self._loop.create_task(self._body(), name=f"{self._adapter.name} run")

    async def _body(self) -> None:
        try:
            self.result = await self._answer()
        except asyncio.CancelledError:
            self.cancelled = True
        except Exception as error:
            why = f"{self._adapter.name} raised {type(error).__name__}: {error}"
            self.result = RunResult(ok=False, text="", why=why, failure_kind="process")
        finally:
            self.over.set()

    async def _answer(self) -> RunResult:
        asked: object = self._adapter.run(self._task)
        if not inspect.isawaitable(asked):
            raise TypeError("run() must be async")
        answer = await asked
        if not isinstance(answer, RunResult):
            raise TypeError(f"run() must give a RunResult, not {type(answer).__name__}")
        return answer

    def cancel(self) -> None:
        def stop() -> None:
            if self._running is not None:
                self._running.cancel()

        self._loop.call_soon_threadsafe(stop)


def attempts_of(asked: RunTask, loop: asyncio.AbstractEventLoop) -> RunAttempt:
    """Runs an attempt on whatever was picked: a worker process, or an adapter's coroutine."""

    def attempt(
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
        if not isinstance(provider, OwnProvider):
            return run_attempt(
                app,
                spec,
                provider,
                account,
                terms,
                before,
                reason=reason,
                on_progress=on_progress,
                cancelled=cancelled,
            )
        task = msgspec.structs.replace(
            asked,
            prompt=files_of(spec).task.read_text(encoding="utf-8"),
            account=account.pool,
            model=spec.model,
            cwd=spec.cwd,
            policy=None,
        )
        began, clock = app.now(), time.monotonic()
        app.store.change(spec.attempt_id, state="running")
        text = f"{spec.pool}, in this program"
        on_progress(Progress(kind="started", pool=spec.pool, text=text))
        call = _Call(provider.adapter, task, loop)
        ended_by = _watch(app, spec, call, on_progress, cancelled)
        return _outcome(app, spec, call, ended_by, terms, before, reason, began, clock)

    return attempt


def _watch(
    app: App, spec: AttemptSpec, call: _Call, on_progress: OnProgress, cancelled: Cancelled
) -> EndedBy:
    began = tick = time.monotonic()
    while not call.over.wait(LOOK_S):
        now = time.monotonic()
        ended_by: EndedBy | None = None
        if spec.timeout_s is not None and now - began > spec.timeout_s:
            ended_by = "timeout"
        if max(cancelled(), app.store.cancel_level(spec.attempt_id)):
            ended_by = "cancelled"
        if ended_by is not None:
            call.cancel()
            call.over.wait(GRACE_S)
            return ended_by
        if now - tick >= TICK_S:
            tick = now
            on_progress(Progress(kind="tick", pool=spec.pool, elapsed_s=now - began))
    return "cancelled" if call.cancelled else "exit"


def _outcome(
    app: App,
    spec: AttemptSpec,
    call: _Call,
    ended_by: EndedBy,
    terms: Terms,
    before: Before,
    reason: str,
    began: datetime,
    clock: float,
) -> Outcome:
    result = call.result if ended_by == "exit" else None
    if result is None:
        timed_out = ended_by == "timeout"
        why = f"timed out after {spec.timeout_s:g} s" if timed_out else "cancelled"
        kind: FailureKind = "stalled" if timed_out else "cancelled"
        result = RunResult(ok=False, text="", why=why, failure_kind=kind)
    if not result.ok and result.failure_kind is None:
        result = msgspec.structs.replace(result, failure_kind="process")
    changes = compare(before)
    judgement = _judged(spec, result, terms, changes)
    ended = Ended(
        ended_by=ended_by,
        answer=result.text,
        session=result.session,
        model=spec.model,
        usage=result.usage,
        started_at=began,
        ended_at=app.now(),
        wall_s=round(time.monotonic() - clock, 3),
    )
    out = files_of(spec).out
    atomic_write(out, result.text.encode("utf-8", "replace"))
    attempt = Attempt(
        n=spec.n,
        pool=spec.pool,
        ok=judgement.ok,
        why=judgement.why,
        failure_kind=judgement.failure_kind,
        ended_by=ended_by,
        wall_s=ended.wall_s,
        usage=ended.usage,
        session=ended.session,
        model=spec.model,
        out_file=str(out),
        changes=changes,
        reason=reason,
    )
    return Outcome(
        spec=spec,
        command=(),
        ended=ended,
        judgement=judgement,
        changes=changes,
        attempt=attempt,
        notice=notice_behind(judgement),
    )


def _judged(
    spec: AttemptSpec, result: RunResult, terms: Terms, changes: Changes | None
) -> Judgement:
    """The adapter's own word; what the task asked for in so many words is looked at as well."""
    why = result.why
    if not result.ok:
        if why == "verified":
            why = f"{spec.pool} failed and said no more"
        return Judgement(ok=False, why=why, failure_kind=result.failure_kind, answer=result.answer)
    gates: list[Gate] = []
    answer = result.answer
    if terms.deliverables:
        left = deliverable_gate(spec.lane, changes, terms.deliverables, must_change=False)
        gates += [left] if left is not None else []
    if terms.schema is not None:
        text = result.text if answer is None else msgspec.json.encode(answer).decode()
        typed, answer = answer_gate(text, terms.schema)
        gates.append(typed)
    failed = next((gate for gate in gates if not gate.ok), None)
    return Judgement(
        ok=failed is None,
        why=why if failed is None else failed.why,
        failure_kind=None if failed is None else failed.failure_kind,
        gates=tuple(gates),
        answer=answer,
    )
