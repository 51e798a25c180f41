"""A provider of this machine, built in or plugged in, as an adapter."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bullswarm.fleet.adapter import Quota
from bullswarm.fleet.app import FleetApp
from bullswarm.fleet.running import run_through
from bullswarm.fleet.types import Policy, RunResult, RunTask
from bullswarm.routing.types import Model


class ProviderAdapter:
    """One provider of the fleet's home. ``Fleet.adapters`` holds them; ``Fleet`` makes them."""

    def __init__(self, name: str, open_app: Callable[[], FleetApp]) -> None:
        self._name = name
        self._open = open_app

    @property
    def name(self) -> str:
        """The provider's own name: "claude-code", "codex"."""
        return self._name

    def __repr__(self) -> str:
        return f"ProviderAdapter({self._name!r})"

    def accounts(self) -> Sequence[str]:
        """The accounts whose CLI is installed and logged in."""
        return [p for p, (_, a) in self._open().accounts.items() if a.unavailable is None]

    def quota(self, account: str) -> Quota:
        """The newest reading of the account's meter; it never spends a prompt. Raises
        ``UsageError`` for an account that is not there."""
        app = self._open()
        provider, entry = app.pool(account)
        reading = app.meters.read(provider, entry, app.settings.subscriptions.get(account))
        return Quota(windows=reading.windows, observed_at=reading.observed_at)

    def available_models(self, account: str) -> Sequence[Model]:
        """The account's models. Raises ``UsageError`` for an account that is not there."""
        provider, entry = self._open().pool(account)
        return provider.models(entry)

    async def run(self, task: RunTask) -> RunResult:
        """Run the task on ``task.account``; None lets the provider's accounts be routed among."""
        return await run_through(self._open(), task, Policy())
