"""``Fleet``: one object, four ways to ask (``route``, ``run``, ``stream``, ``run_many``), each with
a twin for scripts that are not async."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bullswarm.errors import BullswarmError, UsageError
from bullswarm.fleet.adapter import Adapter, ProviderAdapter, pool_of
from bullswarm.fleet.running import run_on_provider
from bullswarm.fleet.types import FleetEvent, Policy, RouteDecision, RunResult, RunTask
from bullswarm.routing import route
from bullswarm.routing.types import Pool, Request, Snapshot, Work
from bullswarm.runs.after import Tried, after
from bullswarm.runs.app import App
from bullswarm.runs.snapshot import read_pools, take_snapshot
from bullswarm.runs.types import Progress

T = TypeVar("T")

QUEUE_SIZE = 1000


class NoAccount(BullswarmError):
    """No account can take the task; the message says why for each."""


class Fleet:
    """The accounts of this machine, or the adapters given, behind one policy.

    ``adapters`` None discovers pools as the command line does. ``home`` None is $BULLSWARM_HOME,
    else ~/.bullswarm: meters, benches and records are shared with the command line. ``policy`` is
    the default of every call.
    """

    def __init__(
        self,
        adapters: Sequence[Adapter] | None = None,
        home: str | os.PathLike[str] | None = None,
        *,
        policy: Policy | None = None,
    ) -> None:
        self.app = App.open(None if home is None else os.fspath(home))
        self.policy = policy or Policy()
        if adapters is None:
            names = dict.fromkeys(a.provider for _, a in self.app.accounts.values())
            adapters = [ProviderAdapter(self.app, name) for name in names]
        self.adapters: tuple[Adapter, ...] = tuple(adapters)
        self._live: dict[str, Work] = {}
        self._count = 0

    # asking

    async def route(self, task: RunTask | str, policy: Policy | None = None) -> RouteDecision:
        """Who would run ``task``. Registers and starts nothing. Raises ``UsageError`` for bad
        input and ``NoAccount`` where nobody can take it."""
        return await asyncio.to_thread(self._route, _task(task), policy, (), ())

    async def run(self, task: RunTask | str, policy: Policy | None = None) -> RunResult:
        """Route ``task``, run it, judge it; a limit or a failure moves it on as the command line
        does. Cancelling ends the worker's whole group. Raises ``UsageError`` for bad input; a
        failed run is a result, not an exception."""
        return await self._run(_task(task), policy, None, hold=None)

    async def stream(
        self, task: RunTask | str, policy: Policy | None = None
    ) -> AsyncIterator[FleetEvent]:
        """The events of ``run`` as they come, the result last. Leaving the loop ends the worker."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[FleetEvent | None] = asyncio.Queue()

        def put(item: FleetEvent | None) -> None:
            # A reader that is too slow loses the chatter, never what decides.
            if queue.qsize() < QUEUE_SIZE or item is None or item.kind != "event":
                queue.put_nowait(item)

        def on_progress(item: Progress) -> None:
            if item.kind == "tick":
                return
            event = FleetEvent(kind=item.kind, text=item.text, account=item.pool, event=item.event)
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(put, event)

        async def work() -> RunResult:
            try:
                return await self._run(_task(task), policy, on_progress, hold=None)
            finally:
                loop.call_soon(put, None)

        running = asyncio.create_task(work())
        try:
            while (event := await queue.get()) is not None:
                yield event
            result = await running
            yield FleetEvent(kind="result", text=result.why, account=result.account, result=result)
        finally:
            if not running.done():
                running.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await running

    async def run_many(
        self,
        tasks: Iterable[RunTask | str],
        concurrency: int = 4,
        policy: Policy | None = None,
        *,
        hold: bool | None = None,
    ) -> list[RunResult]:
        """Run tasks side by side, at most ``concurrency`` at once, and give their results in the
        order of the tasks. Each is routed on what is in flight by then, so they spread by load.
        ``hold`` None holds work while no account has room, unless the configuration says off.
        Cancelling ends every worker."""
        if concurrency < 1:
            raise UsageError(f"concurrency must be 1 or more, not {concurrency}")
        gate = asyncio.Semaphore(concurrency)
        holding = self.app.admission(hold, unset="hold").mode == "hold"

        async def one(task: RunTask | str) -> RunResult:
            async with gate:
                return await self._run(_task(task), policy, None, hold=holding)

        async with asyncio.TaskGroup() as group:
            started = [group.create_task(one(task)) for task in tasks]
        return [task.result() for task in started]

    # the same for scripts

    def route_sync(self, task: RunTask | str, policy: Policy | None = None) -> RouteDecision:
        """``route`` for code that is not async."""
        return self._route(_task(task), policy, (), ())

    def run_sync(self, task: RunTask | str, policy: Policy | None = None) -> RunResult:
        """``run`` for code that is not async. Ctrl-C ends the worker."""
        return _block(self.run(task, policy))

    def run_many_sync(
        self,
        tasks: Iterable[RunTask | str],
        concurrency: int = 4,
        policy: Policy | None = None,
        *,
        hold: bool | None = None,
    ) -> list[RunResult]:
        """``run_many`` for code that is not async."""
        return _block(self.run_many(tasks, concurrency, policy, hold=hold))

    # inside

    def _custom(self) -> list[Adapter]:
        return [a for a in self.adapters if not isinstance(a, ProviderAdapter)]

    async def _run(
        self, task: RunTask, policy: Policy | None, on_progress: Any, *, hold: bool | None
    ) -> RunResult:
        self._check(task)
        if not self._custom():
            names = tuple(a.name for a in self.adapters)
            chosen = self._policy(task, policy).for_routing()
            return await run_on_provider(
                self.app,
                task,
                self.app.known(chosen),
                use=names,
                hold=hold,
                on_progress=on_progress,
            )
        return await self._run_mixed(task, policy, on_progress)

    async def _run_mixed(self, task: RunTask, policy: Policy | None, on_progress: Any) -> RunResult:
        """With adapters of the user's own: route, run on whoever was picked, and what follows a
        failure by the same rule as everywhere."""
        tried: list[Tried] = []
        exclude: tuple[str, ...] = ()
        pin: str | None = task.account
        result: RunResult | None = None
        while True:
            asked = msgspec.structs.replace(task, account=pin)
            try:
                decision = await asyncio.to_thread(self._route, asked, policy, exclude, ())
            except NoAccount as error:
                if result is not None:
                    return result
                return RunResult(ok=False, text="", why=str(error), failure_kind="unavailable")
            picked = msgspec.structs.replace(task, account=decision.account)
            if on_progress is not None:
                on_progress(Progress(kind="routed", text=decision.reason, pool=decision.account))
            if isinstance(decision.adapter, ProviderAdapter):
                result = await run_on_provider(
                    self.app, picked, None, retries=0, on_progress=on_progress
                )
            else:
                with self._in_flight(picked):
                    result = await decision.adapter.run(picked)
            kind = None if result.ok else (result.failure_kind or "process")
            tried.append(Tried(pool=decision.account, failure_kind=kind))
            following = after(tried, mode=self.app.settings.limits.mode)
            if following.action == "done":
                return result
            await asyncio.sleep(following.wait_s)
            pin = decision.account if following.action == "same" else task.account
            exclude = following.exclude

    @contextlib.contextmanager
    def _in_flight(self, task: RunTask) -> Any:
        self._count += 1
        key = f"fleet-{self._count}"
        self._live[key] = Work(
            id=key, pool=task.account or "", lane=task.lane, started_at=self.app.now()
        )
        try:
            yield
        finally:
            del self._live[key]

    def _route(
        self,
        task: RunTask,
        policy: Policy | None,
        exclude: tuple[str, ...],
        exclude_groups: tuple[str, ...],
    ) -> RouteDecision:
        self._check(task)
        chosen = self._policy(task, policy).for_routing()
        snapshot, owner = self._snapshot()
        request = Request(
            lane=task.lane,
            capabilities=task.capabilities,
            model=task.model,
            effort=task.effort,
            domain=task.domain,
            pin=task.account,
            exclude=exclude,
            exclude_groups=exclude_groups,
        )
        decision = route(snapshot, request, self.app.known(chosen))
        if decision.pool is None:
            raise NoAccount(decision.reason)
        return RouteDecision(
            adapter=_Pinned(owner[decision.pool], decision.pool, decision.model),
            account=decision.pool,
            model=decision.model,
            note=decision.note,
            reason=decision.reason,
            candidates=decision.candidates,
            decision=decision,
        )

    def _snapshot(self) -> tuple[Snapshot, dict[str, Adapter]]:
        owner: dict[str, Adapter] = {}
        pools: list[Pool] = []
        vendors = {a.name: a for a in self.adapters if isinstance(a, ProviderAdapter)}
        if vendors:
            for pool in read_pools(self.app):
                if pool.provider in vendors:
                    owner[pool.name] = vendors[pool.provider]
                    pools.append(pool)
        now = self.app.now()
        for adapter in self._custom():
            for account in adapter.accounts():
                if account in owner:
                    raise UsageError(f"two adapters have an account named {account!r}")
                owner[account] = adapter
                pools.append(pool_of(adapter, account, now))
        snapshot = take_snapshot(self.app, tuple(pools))
        work = (*snapshot.work, *self._live.values())
        return msgspec.structs.replace(snapshot, work=work), owner

    def _policy(self, task: RunTask, policy: Policy | None) -> Policy:
        return task.policy or policy or self.policy

    def _check(self, task: RunTask) -> None:
        if not task.prompt.strip():
            raise UsageError("prompt: it is empty; say what the agent should do")
        if task.cwd is not None and not Path(task.cwd).is_dir():
            raise UsageError(f"cwd: {task.cwd} is not a folder")
        accounts = [account for a in self.adapters for account in a.accounts()]
        if task.account is not None and task.account not in accounts:
            raise UsageError(
                f"account: no account named {task.account!r}; there are: "
                f"{', '.join(accounts) or 'none'}"
            )
        if task.permission_mode is not None and task.account is None:
            vendors = [a.name for a in self.adapters if a.accounts()]
            if len(vendors) != 1:
                raise UsageError(
                    f"permission_mode: {task.permission_mode!r} is one vendor's own word, and this "
                    f"task could go to {', '.join(vendors) or 'nobody'}; set account as well"
                )


class _Pinned:
    """The adapter of a decision, so that ``decision.adapter.run(task)`` runs on the account and
    model that were decided."""

    def __init__(self, adapter: Adapter, account: str, model: str | None) -> None:
        self.inner = adapter
        self._account = account
        self._model = model

    @property
    def name(self) -> str:
        return self.inner.name

    def __repr__(self) -> str:
        return f"{self.inner!r} on {self._account}"

    def accounts(self) -> Sequence[str]:
        return [self._account]

    def quota(self, account: str) -> Any:
        return self.inner.quota(account)

    def available_models(self, account: str) -> Any:
        return self.inner.available_models(account)

    async def run(self, task: RunTask) -> RunResult:
        return await self.inner.run(
            msgspec.structs.replace(
                task, account=task.account or self._account, model=task.model or self._model
            )
        )


def _task(task: RunTask | str) -> RunTask:
    return RunTask(prompt=task) if isinstance(task, str) else task


def _block(work: Coroutine[Any, Any, T]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    work.close()
    raise UsageError("this is async code already: await the method without _sync")
