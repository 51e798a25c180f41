"""``Fleet``: one object, four ways to ask (``route``, ``run``, ``stream``, ``run_many``), each with
a twin for scripts that are not async."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections.abc import AsyncGenerator, Iterable, Sequence

import msgspec

from bullswarm.errors import BullswarmError, UsageError
from bullswarm.fleet.adapter import Adapter, Quota
from bullswarm.fleet.app import FleetApp
from bullswarm.fleet.checks import routing_policy, task_of
from bullswarm.fleet.decision import RouteDecision
from bullswarm.fleet.provider import ProviderAdapter
from bullswarm.fleet.running import OnProgress, block, engine_task, run_through
from bullswarm.fleet.types import FleetEvent, Policy, RunResult, RunTask
from bullswarm.routing.types import Model
from bullswarm.runs.asking import check, pick
from bullswarm.runs.types import Progress
from bullswarm.store import Home, Store

QUEUE_SIZE = 1000


class NoAccount(BullswarmError):
    """No account can take the task; the message says why for each."""


class Fleet:
    """The accounts of this machine, or the adapters given, behind one policy.

    ``adapters`` None discovers accounts as the command line does. Else each is an adapter of your
    own, or the name of a provider of this machine ("claude", "codex"). ``home`` None is
    $BULLSWARM_HOME, else ~/.bullswarm: meters, benches and records are shared with the command
    line. ``policy`` is the default of every call. Settings and logins are looked at again at each
    call, so a fleet may live as long as its program. Raises ``UsageError`` for a name that is no
    provider's and for adapters that share a name, ``BullswarmError`` for a home that can't be used.
    """

    def __init__(
        self,
        adapters: Sequence[Adapter | str] | None = None,
        home: str | os.PathLike[str] | None = None,
        *,
        policy: Policy | None = None,
    ) -> None:
        self.policy = policy or Policy()
        """The policy of calls that give none."""
        routing_policy(self.policy)
        self._home = Home.open(None if home is None else os.fspath(home), os.environ)
        self._store = Store(self._home)
        weakref.finalize(self, self._store.close)
        # What a worker calls itself must find the same home.
        self._env = None if home is None else {"BULLSWARM_HOME": str(self._home.path)}
        everything = self._open(None)
        if adapters is None:
            adapters = list(dict.fromkeys(a.provider for _, a in everything.accounts.values()))
        self.adapters: tuple[Adapter, ...] = tuple(
            self._adapter(one, everything) for one in adapters
        )
        """The adapters, in the order given."""
        names = [adapter.name for adapter in self.adapters]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"adapters: two of them are named {name!r}")

    def __repr__(self) -> str:
        return f"Fleet({', '.join(adapter.name for adapter in self.adapters) or 'no adapters'})"

    # asking

    async def route(self, task: RunTask | str, policy: Policy | None = None) -> RouteDecision:
        """Who would run ``task``. Registers and starts nothing. Raises ``UsageError`` for bad
        input and ``NoAccount`` where nobody can take it."""
        return await asyncio.to_thread(self.route_sync, task, policy)

    async def run(self, task: RunTask | str, policy: Policy | None = None) -> RunResult:
        """Route ``task``, run it, judge it; a limit or a failure moves it on as the command line
        does. Cancelling ends the worker's whole group. Raises ``UsageError`` for bad input; a
        failed run is a result, not an exception."""
        return await self._run(task_of(task), policy)

    async def stream(
        self, task: RunTask | str, policy: Policy | None = None
    ) -> AsyncGenerator[FleetEvent, None]:
        """The events of ``run`` as they come, the result last. Closing the generator, or leaving
        its loop, ends the worker. Raises as ``run`` does, at the first event."""
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
                return await self._run(task_of(task), policy, on_progress=on_progress)
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

        A task that fails is a result like any other, and the rest go on. Bad input raises
        ``UsageError`` that names the task, before any has started. Cancelling ends every worker.
        """
        if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:
            raise UsageError(f"concurrency must be a whole number from 1 on, not {concurrency!r}")
        chosen = self._known(policy)
        app = self._app()
        listed = await asyncio.to_thread(_checked, app, tuple(tasks), chosen)
        gate = asyncio.Semaphore(concurrency)
        holding = app.admission(hold, unset="hold").mode == "hold"

        async def one(task: RunTask) -> RunResult:
            async with gate:
                try:
                    return await self._run(task, chosen, hold=holding)
                except Exception as error:
                    # One task's trouble must not cost the others their results.
                    return RunResult(ok=False, text="", why=str(error), failure_kind="process")

        async with asyncio.TaskGroup() as group:
            started = [group.create_task(one(task)) for task in listed]
        return [task.result() for task in started]

    # the same for scripts

    def route_sync(self, task: RunTask | str, policy: Policy | None = None) -> RouteDecision:
        """``route`` for code that is not async."""
        app = self._app()
        work = engine_task(app, task_of(task), self._known(policy))
        decision = pick(app, work)
        if decision.pool is None:
            raise NoAccount(decision.reason)
        vendor = app.accounts[decision.pool][1].provider
        adapter = next(a for a in self.adapters if a.name == vendor)
        return RouteDecision(
            adapter=Routed(self, adapter, decision.pool, decision.model),
            account=decision.pool,
            model=decision.model,
            note=decision.note,
            reason=decision.reason,
            candidates=decision.candidates,
            decision=decision,
        )

    def run_sync(self, task: RunTask | str, policy: Policy | None = None) -> RunResult:
        """``run`` for code that is not async. Ctrl-C ends the worker. Where a loop runs already (a
        notebook) it works as well, and the loop stands still meanwhile."""
        return block(self.run(task, policy))

    def run_many_sync(
        self,
        tasks: Iterable[RunTask | str],
        concurrency: int = 4,
        policy: Policy | None = None,
        *,
        hold: bool | None = None,
    ) -> list[RunResult]:
        """``run_many`` for code that is not async."""
        return block(self.run_many(tasks, concurrency, policy, hold=hold))

    # inside

    async def _run(
        self,
        task: RunTask,
        policy: Policy | None,
        *,
        hold: bool | None = None,
        on_progress: OnProgress | None = None,
    ) -> RunResult:
        chosen = self._known(policy)
        return await run_through(self._app(), task, chosen, hold=hold, on_progress=on_progress)

    def _known(self, policy: Policy | None) -> Policy:
        chosen = self.policy if policy is None else policy
        routing_policy(chosen)
        return chosen

    def _app(self) -> FleetApp:
        """The fleet's accounts as they are now."""
        vendors = [a.name for a in self.adapters if isinstance(a, ProviderAdapter)]
        own = [a for a in self.adapters if not isinstance(a, ProviderAdapter)]
        return self._open(vendors, own)

    def _open(self, vendors: Sequence[str] | None, own: Sequence[Adapter] = ()) -> FleetApp:
        env = os.environ if self._env is None else {**os.environ, **self._env}
        return FleetApp(self._home, self._store, env=env, vendors=vendors, own=own)

    def _adapter(self, one: Adapter | str, everything: FleetApp) -> Adapter:
        if isinstance(one, ProviderAdapter):
            one = one.name  # another fleet's: its home may be another one
        if not isinstance(one, str):
            if isinstance(one, type):
                raise UsageError(f"adapters: {one.__name__} is a class; give {one.__name__}()")
            if not isinstance(one, Adapter) or not isinstance(one.name, str) or not one.name:
                raise UsageError(
                    f"adapters: {type(one).__name__} is no adapter; it needs a name, accounts(), "
                    "quota(), available_models() and run()"
                )
            return one
        name = everything.provider_named(one)
        if name is None:
            known = ", ".join(everything.registry.names())
            raise UsageError(f"adapters: no provider named {one!r}; there are: {known}")
        return ProviderAdapter(name, lambda: self._open([name]))


class Routed:
    """The adapter of a decision: ``run`` runs on the account and the model that were decided."""

    def __init__(self, fleet: Fleet, inner: Adapter, account: str, model: str | None) -> None:
        self.inner = inner
        """The adapter itself."""
        self._fleet = fleet
        self._account = account
        self._model = model

    @property
    def name(self) -> str:
        """The vendor's name."""
        return self.inner.name

    def __repr__(self) -> str:
        return f"{self.inner!r} on {self._account}"

    def accounts(self) -> Sequence[str]:
        """The account that was decided."""
        return [self._account]

    def quota(self, account: str) -> Quota | None:
        """As the adapter's."""
        return self.inner.quota(account)

    def available_models(self, account: str) -> Sequence[Model]:
        """As the adapter's."""
        return self.inner.available_models(account)

    async def run(self, task: RunTask | str) -> RunResult:
        """Run ``task`` there, as ``Fleet.run`` does with the account pinned."""
        checked = task_of(task)
        listed = {model.name for model in self.inner.available_models(self._account)}
        # One that is not in the list is what the account runs by itself: it takes no such word.
        model = self._model if self._model in listed else None
        pinned = msgspec.structs.replace(
            checked, account=self._account, model=checked.model or model
        )
        return await self._fleet.run(pinned)


def _checked(app: FleetApp, tasks: Sequence[RunTask | str], policy: Policy) -> list[RunTask]:
    """The tasks, all of them in order. Raises ``UsageError`` that names the first that is not."""
    listed = []
    for n, task in enumerate(tasks):
        try:
            listed.append(task_of(task))
            check(app, engine_task(app, listed[-1], policy))
        except UsageError as error:
            raise UsageError(f"tasks[{n}]: {error}") from error
    return listed
