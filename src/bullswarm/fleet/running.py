"""From the library's asyncio to the engine's threads and back; a cancelled task ends its worker."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

from bullswarm.errors import UsageError
from bullswarm.fleet.app import FleetApp
from bullswarm.fleet.checks import one_vendor, routing_policy
from bullswarm.fleet.inprocess import attempts_of
from bullswarm.fleet.types import Policy, RunResult, RunTask
from bullswarm.judge.types import Verdict
from bullswarm.runs.engine import run_task
from bullswarm.runs.types import Progress, Task

OnProgress = Callable[[Progress], None]
T = TypeVar("T")


def engine_task(app: FleetApp, task: RunTask, policy: Policy, *, hold: bool | None = None) -> Task:
    """The same work as the engine knows it. The library has no calling agent to hand work back to:
    whoever asks wants it done. Raises ``UsageError`` for what can't work here."""
    ready = {p: a.provider for p, (_, a) in app.accounts.items() if a.unavailable is None}
    one_vendor(task, ready.values())
    pool, use = _pinned(app, task.account)
    if task.permission_mode is not None and pool is None and not use:
        use = tuple(dict.fromkeys(ready.values()))
    return Task(
        prompt=task.prompt,
        lane=task.lane,
        cwd=str(Path(task.cwd or ".").resolve()),
        pool=pool,
        use=use,
        model=task.model,
        effort=task.effort,
        capabilities=tuple(task.capabilities),
        domain=task.domain,
        policy=app.known(routing_policy(task.policy or policy)),
        hold=hold,
        priority=task.priority,
        timeout_s=task.timeout_s,
        answer_schema=os.fspath(task.answer_schema) if task.answer_schema else None,
        deliverables=tuple(task.deliverables),
        permission_mode=task.permission_mode,
    )


def _pinned(app: FleetApp, account: str | None) -> tuple[str | None, tuple[str, ...]]:
    """A pinned account, or a pinned vendor, whose accounts are all allowed."""
    if account is None:
        return None, ()
    if account in app.accounts:
        return account, ()
    vendors = {a.provider for _, a in app.accounts.values()}
    name = account if account in vendors else app.provider_named(account)
    if name in app.accounts:
        return name, ()
    if name in vendors:
        return None, (name,)
    there = ", ".join(app.accounts) or "none"
    raise UsageError(f"account: no account or vendor named {account!r}; there are: {there}")


async def run_through(
    app: FleetApp,
    task: RunTask,
    policy: Policy,
    *,
    hold: bool | None = None,
    on_progress: OnProgress | None = None,
) -> RunResult:
    """Run a task through the engine. Cancelling the awaiting task ends the worker's whole group and
    waits for its record before the cancellation goes on; cancelled once more, it kills at once.
    Raises ``UsageError`` for bad input."""
    level = 0
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Verdict] = loop.create_future()

    def settle(result: Verdict | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        elif result is not None:
            done.set_result(result)

    def body() -> None:
        result: Verdict | None = None
        failed: BaseException | None = None
        try:
            result = run_task(
                app,
                engine_task(app, task, policy, hold=hold),
                on_progress=on_progress or (lambda _: None),
                cancelled=lambda: level,
                attempt=attempts_of(task, loop),
            )
        except BaseException as error:
            failed = error
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, failed)

    # A thread of its own: the default executor is small, and work may wait for hours.
    threading.Thread(target=body, name=f"bullswarm {task.account or 'run'}", daemon=True).start()
    try:
        return result_of(await asyncio.shield(done))
    except asyncio.CancelledError:
        level = 1
        while not done.done():
            try:
                await asyncio.wait([done])
            except asyncio.CancelledError:
                level += 1
        if not done.cancelled():
            done.exception()
        raise


def block(work: Coroutine[Any, Any, T]) -> T:
    """Wait for async work from code that is not async. Where a loop runs in this thread already (a
    notebook), the work gets a thread and a loop of its own, and this one waits for it; Ctrl-C ends
    the work either way."""
    if not _loop_runs_here():
        return asyncio.run(work)
    done: list[T] = []
    failed: list[BaseException] = []
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []

    async def body() -> T:
        task = asyncio.ensure_future(work)
        started.append((asyncio.get_running_loop(), task))
        return await task

    def run() -> None:
        try:
            done.append(asyncio.run(body()))
        except BaseException as error:
            failed.append(error)
        finally:
            over.set()

    # Not a join: one that is interrupted takes the thread for ended.
    over = threading.Event()
    threading.Thread(target=run, name="bullswarm sync", daemon=True).start()
    interrupt: KeyboardInterrupt | None = None
    with _interruptible():
        while not over.is_set():
            try:
                over.wait()
            except KeyboardInterrupt as error:
                interrupt = error
                for loop, task in started:
                    with contextlib.suppress(RuntimeError):
                        loop.call_soon_threadsafe(task.cancel)
    if interrupt is not None:
        raise interrupt
    if failed:
        raise failed[0]
    return done[0]


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C raises here, at once. A loop's own handler would only cancel what can't run now."""
    theirs = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(theirs):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, theirs)


def _loop_runs_here() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def result_of(verdict: Verdict) -> RunResult:
    """The library's result from a verdict."""
    text = ""
    if verdict.out_file is not None:
        with contextlib.suppress(OSError):
            text = Path(verdict.out_file).read_text(encoding="utf-8")
    last = verdict.attempts[-1] if verdict.attempts else None
    return RunResult(
        ok=verdict.ok,
        text=text,
        account=verdict.pick.pool if verdict.pick else None,
        why=verdict.why,
        failure_kind=verdict.failure_kind,
        answer=verdict.answer,
        session=last.session if last else None,
        usage=verdict.usage,
        wall_s=verdict.wall_s,
        verdict=verdict,
    )
