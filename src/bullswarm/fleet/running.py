"""From the library's asyncio to the engine's threads and back; a cancelled task ends its worker."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

from bullswarm.fleet.types import RunResult, RunTask
from bullswarm.judge.types import Verdict
from bullswarm.routing.types import Policy
from bullswarm.runs.app import App
from bullswarm.runs.engine import run_task
from bullswarm.runs.types import Progress, Task

OnProgress = Callable[[Progress], None]


def task_of(
    task: RunTask,
    policy: Policy | None,
    *,
    use: tuple[str, ...] = (),
    retries: int = 1,
    hold: bool | None = None,
) -> Task:
    """The same work as the engine knows it. The library has no calling agent to hand work back to:
    whoever asks wants it done."""
    return Task(
        prompt=task.prompt,
        lane=task.lane,
        cwd=str(Path(task.cwd or ".").resolve()),
        pool=task.account,
        use=use,
        model=task.model,
        effort=task.effort,
        capabilities=task.capabilities,
        domain=task.domain,
        policy=policy,
        hold=hold,
        priority=task.priority,
        timeout_s=task.timeout_s,
        retries=retries,
        answer_schema=task.answer_schema,
        deliverables=task.deliverables,
        permission_mode=task.permission_mode,
    )


async def run_on_provider(
    app: App,
    task: RunTask,
    policy: Policy | None,
    *,
    use: tuple[str, ...] = (),
    retries: int = 1,
    hold: bool | None = None,
    on_progress: OnProgress | None = None,
) -> RunResult:
    """Run a task through the engine. Cancelling the awaiting task ends the worker's whole group and
    waits for its record before the cancellation goes on. Raises ``UsageError`` for bad input."""
    level = 0
    work = task_of(task, policy, use=use, retries=retries, hold=hold)
    loop = asyncio.get_running_loop()
    # A thread of its own: the default executor is small, and work may wait for hours.
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
                work,
                on_progress=on_progress or (lambda _: None),
                cancelled=lambda: level,
            )
        except BaseException as error:
            failed = error
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, failed)

    import threading

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
