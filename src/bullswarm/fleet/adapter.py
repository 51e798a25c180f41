"""The adapter protocol: small enough to write one in a page, typed enough to route by."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from bullswarm.fleet.types import RunResult, RunTask
from bullswarm.routing.types import Model, Pool, Reading, Window

if TYPE_CHECKING:
    from bullswarm.runs.app import App


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """What an account has left. Unknown is an empty ``windows``, never 0. ``windows`` are known by
    their length: ``Quota.window(minutes=300, used_pct=41.0, resets_at=...)``."""

    windows: tuple[Window, ...] = ()
    observed_at: datetime | None = None

    @staticmethod
    def window(
        *, minutes: float, used_pct: float | None, resets_at: datetime | None = None
    ) -> Window:
        """One window. ``minutes`` is its length (300: five hours, 10080: a week); ``used_pct`` is
        0..100, None where unknown; ``resets_at`` is aware. Raises ``ValueError`` for a length that
        no window has."""
        from bullswarm.meters import window_from

        return window_from(minutes, used_pct, resets_at, None)


@runtime_checkable
class Adapter(Protocol):
    """One vendor. ``accounts`` are its pools' names; the first part is the vendor's own name."""

    @property
    def name(self) -> str: ...

    def accounts(self) -> Sequence[str]:
        """The accounts that can run now."""
        ...

    def quota(self, account: str) -> Quota:
        """What the account has left. May be called from a worker thread."""
        ...

    def available_models(self, account: str) -> Sequence[Model]:
        """Its models with their latency class; empty where any name is passed on."""
        ...

    async def run(self, task: RunTask) -> RunResult:
        """Run the task on ``task.account`` (None: the first account) to its end."""
        ...


class ProviderAdapter:
    """A built-in or plugged-in provider as an adapter."""

    def __init__(self, app: App, name: str) -> None:
        self._app = app
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"ProviderAdapter({self._name!r})"

    def accounts(self) -> Sequence[str]:
        return [
            pool
            for pool, (_, account) in self._app.accounts.items()
            if account.provider == self._name and account.unavailable is None
        ]

    def quota(self, account: str) -> Quota:
        provider, entry = self._app.pool(account)
        settings = self._app.settings.subscriptions.get(account)
        reading = self._app.meters.read(provider, entry, settings)
        return Quota(windows=reading.windows, observed_at=reading.observed_at)

    def available_models(self, account: str) -> Sequence[Model]:
        provider, entry = self._app.pool(account)
        return provider.models(entry)

    async def run(self, task: RunTask) -> RunResult:
        from bullswarm.fleet.running import run_on_provider

        account = task.account or next(iter(self.accounts()), None)
        if account is None:
            return RunResult(
                ok=False,
                text="",
                why=f"{self._name} has no account here",
                failure_kind="unavailable",
            )
        pinned = msgspec.structs.replace(task, account=account)
        return await run_on_provider(self._app, pinned, None)


def pool_of(adapter: Adapter, account: str, now: datetime) -> Pool:
    """A custom adapter's account as routing sees it."""
    quota = adapter.quota(account)
    kinds = {w.kind for w in quota.windows}
    return Pool(
        name=account,
        provider=adapter.name,
        pacing="weekly" if "weekly" in kinds else ("monthly" if "monthly" in kinds else None),
        models=tuple(adapter.available_models(account)),
        reading=Reading(
            pool=account,
            source="live" if quota.windows else "none",
            observed_at=(quota.observed_at or now) if quota.windows else None,
            windows=quota.windows,
        ),
    )
