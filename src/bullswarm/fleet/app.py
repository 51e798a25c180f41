"""A fleet's own view of a home: the vendors it was given, and adapters of the user's beside them.

To the rest of bullswarm an adapter of the user's own is one more provider. So its accounts are
metered, benched, held, recorded and explained like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from bullswarm.dispatch.types import Event
from bullswarm.errors import UsageError
from bullswarm.fleet.adapter import Adapter, Quota
from bullswarm.fleet.checks import names
from bullswarm.meters.errors import MeterError
from bullswarm.providers.types import Account, Ask, CommandLine, Connector, Provider
from bullswarm.routing.types import Model, Reading
from bullswarm.runs.app import App
from bullswarm.store import Home, Store


class FleetApp(App):
    """``vendors`` are the providers of the home that take part (None: all of them), ``own`` the
    user's adapters. ``store`` is shared by all calls of a fleet: one connection will do."""

    def __init__(
        self,
        home: Home,
        store: Store,
        *,
        env: Mapping[str, str],
        vendors: Sequence[str] | None,
        own: Sequence[Adapter] = (),
    ) -> None:
        super().__init__(home, env=env, store=store)
        self._vendors = vendors
        self._own = own

    @cached_property
    def accounts(self) -> dict[str, tuple[Provider, Account]]:
        """The fleet's accounts by name. Raises ``UsageError`` where two adapters share one."""
        found = {
            pool: pair
            for pool, pair in super().accounts.items()
            if self._vendors is None or pair[1].provider in self._vendors
        }
        for adapter in self._own:
            provider = OwnProvider(adapter)
            for account in provider.accounts(self.env, {}):
                if account.pool in found:
                    raise UsageError(f"two adapters have an account named {account.pool!r}")
                found[account.pool] = (provider, account)
        return found


class OwnProvider:
    """An adapter of the user's own, seen as a provider. What it raises is the account's trouble,
    never the fleet's."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.connector = Connector(
            name=adapter.name,
            command="",
            meter_ttl_s=0.0,
            capabilities=tuple(getattr(adapter, "capabilities", ())),
            cost_rank=float(getattr(adapter, "cost_rank", 1.0)),
        )

    def accounts(self, env: Mapping[str, str], settings: Mapping[str, Any]) -> tuple[Account, ...]:
        name = self.adapter.name
        try:
            pools = names("accounts()", self.adapter.accounts())
            return tuple(Account(pool=pool, provider=name) for pool in pools)
        except Exception as error:
            why = f"accounts() failed: {type(error).__name__}: {error}"
            return (Account(pool=name, provider=name, unavailable=why),)

    def command(self, account: Account, ask: Ask, settings: Mapping[str, Any]) -> CommandLine:
        raise UsageError(f"{account.pool} is no command: it runs in its own program")

    def read_event(self, raw: dict[str, Any]) -> tuple[Event, ...]:
        return ()

    def read_meter(self, account: Account, env: Mapping[str, str], now: datetime) -> Reading | None:
        try:
            quota = self.adapter.quota(account.pool)
        except Exception as error:
            # Asked again at the next pick: only the adapter knows what its answer costs.
            why = f"quota() failed: {type(error).__name__}: {error}"
            raise MeterError(why, kind="missing") from error
        if quota is None:
            return None
        if not isinstance(quota, Quota):
            what = type(quota).__name__
            raise MeterError(f"quota() must give a Quota or None, not {what}", kind="missing")
        if not quota.windows:
            return None
        seen = quota.observed_at or now
        if any(t is not None and t.tzinfo is None for t in (seen, *_resets(quota))):
            raise MeterError("quota(): its times need a time zone", kind="missing")
        return Reading(
            pool=account.pool, source="live", observed_at=min(seen, now), windows=quota.windows
        )

    def models(self, account: Account) -> tuple[Model, ...]:
        try:
            listed = tuple(self.adapter.available_models(account.pool))
        except Exception:
            # No list is no reason to lose the account: any model's name is passed on.
            return ()
        return tuple(model for model in listed if isinstance(model, Model))


def _resets(quota: Quota) -> list[datetime | None]:
    return [window.resets_at for window in quota.windows]
