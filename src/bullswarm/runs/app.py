"""What every verb works on: the home, its settings, its store, its providers and its meters."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from bullswarm.errors import UsageError
from bullswarm.routing.types import Admission, Policy
from bullswarm.store import (
    Home,
    Settings,
    Store,
    default_worker_cap,
    load,
    routing_admission,
    routing_policy,
)

if TYPE_CHECKING:
    from bullswarm.meters import Meters
    from bullswarm.providers.registry import Registry
    from bullswarm.providers.types import Account, Provider


def utc_now() -> datetime:
    return datetime.now(UTC)


class App:
    """One home, opened. Cheap to make: what is dear is made when it is first asked for."""

    def __init__(
        self,
        home: Home,
        *,
        env: Mapping[str, str] | None = None,
        now: Callable[[], datetime] = utc_now,
        registry: Registry | None = None,
        store: Store | None = None,
    ) -> None:
        self.home = home
        self.env: Mapping[str, str] = os.environ if env is None else env
        self.now = now
        self._registry = registry
        self._store = store

    @classmethod
    def open(cls, home: str | None = None, env: Mapping[str, str] | None = None) -> App:
        """The home at ``home``, else $BULLSWARM_HOME, else ~/.bullswarm; made where it is missing.
        Raises ``BullswarmError`` where it can't be used."""
        return cls(Home.open(home, os.environ if env is None else env), env=env)

    @cached_property
    def settings(self) -> Settings:
        """What the operator configured. Raises ``UsageError`` naming the field that is wrong."""
        return load(self.home)

    def reload(self) -> Settings:
        """Read the settings again, for work that outlives one call."""
        self.__dict__.pop("settings", None)
        return self.settings

    @cached_property
    def store(self) -> Store:
        return self._store or Store(self.home, now=self.now)

    @cached_property
    def registry(self) -> Registry:
        if self._registry is not None:
            return self._registry
        from bullswarm.providers.registry import Registry

        return Registry.load(self.home.providers, self.settings.providers, self.env)

    @cached_property
    def meters(self) -> Meters:
        from bullswarm.meters import Meters

        return Meters(self.store, self.home.path, now=self.now, env=self.env)

    @cached_property
    def accounts(self) -> dict[str, tuple[Provider, Account]]:
        """Every pool of this machine by name, with its provider."""
        found: dict[str, tuple[Provider, Account]] = {}
        for account in self.registry.accounts(self.env):
            found[account.pool] = (self.registry.get(account.provider), account)
        return found

    def pool(self, name: str) -> tuple[Provider, Account]:
        """The provider and account of a pool. Raises ``UsageError`` with the names there are."""
        try:
            return self.accounts[name]
        except KeyError:
            there = ", ".join(self.accounts) or "none"
            raise UsageError(
                f"no pool named {name!r}; there are: {there}{self._why_not(name)}"
            ) from None

    def caller(self) -> str | None:
        """The agent CLI that started us: ``config.callerName``, else the marker it left in the
        environment, else None. Where it runs on a login home that is a pool, it is that pool."""
        if self.settings.config.caller_name:
            return self.settings.config.caller_name
        from bullswarm.providers.callers import detect_caller
        from bullswarm.providers.homes import expand, same

        found = detect_caller(self.env)
        for name, (provider, account) in self.accounts.items():
            told = self.env.get(provider.connector.home_env or "")
            if (
                account.provider == found
                and told
                and account.home
                and same(account.home, expand(told, self.env))
            ):
                return name
        return found

    def policy(self, **asked: Any) -> Policy:
        """The configured policy with what was asked for on top. Raises ``UsageError`` for a
        preference that names no pool and no provider."""
        policy = routing_policy(self.settings)
        known = {k: v for k, v in asked.items() if v is not None}
        prefer = known.get("prefer")
        if isinstance(prefer, str):
            known["prefer"] = tuple(p.strip() for p in prefer.split(",") if p.strip())
        return self.known(msgspec.structs.replace(policy, **known))

    def resolve(self, name: str, field: str) -> str:
        """A pool's or a provider's own name for a name that people use ("claude" for
        "claude-code"). Raises ``UsageError`` where it is neither."""
        names = {account.provider for _, account in self.accounts.values()} | set(self.accounts)
        if name in names:
            return name
        for provider, _ in self.accounts.values():
            if name in provider.connector.aliases:
                return provider.connector.name
        there = ", ".join(self.accounts) or "none"
        raise UsageError(
            f"{field}: no pool or provider named {name!r}; pools: {there}{self._why_not(name)}"
        )

    def _why_not(self, name: str) -> str:
        """What is to be said of a name whose provider is there and has no such pool."""
        provider = name.partition(":")[0]
        for fault in self.registry.faults():
            if fault.provider == provider:
                return f". The provider {provider} is broken: {fault.message}"
        mine = [pool for pool, (_, account) in self.accounts.items() if account.provider == name]
        if mine:
            return f". {name} is a provider: name one of its pools, or give it with --use"
        if provider in self.registry.names() and not any(
            account.provider == provider for _, account in self.accounts.values()
        ):
            return (
                f". The provider {provider} is off: bullswarm strategy set-provider {provider} "
                "--enabled"
            )
        return ""

    def preferred(self, name: str, field: str) -> str:
        """As ``resolve``, for a list of preferences: a provider that has no pool on this machine is
        known all the same, and is passed over."""
        try:
            return self.resolve(name, field)
        except UsageError:
            found = self.provider_named(name)
            if found is None:
                raise
            return found

    def provider_named(self, name: str) -> str | None:
        """The own name of the provider that is called ``name``, whether it has a pool here or not;
        None where there is none."""
        if name in self.registry.names():
            return name
        for provider in self.registry.providers():
            if name in provider.connector.aliases:
                return provider.connector.name
        return None

    def known(self, policy: Policy) -> Policy:
        """The policy with every name resolved. Raises ``UsageError`` for one that is unknown."""
        return msgspec.structs.replace(
            policy,
            prefer=tuple(self.preferred(name, "prefer") for name in policy.prefer),
            domains={
                domain: tuple(self.preferred(name, f"domains.{domain}") for name in names)
                for domain, names in policy.domains.items()
            },
        )

    def worker_cap(self) -> int:
        """How many workers may live at once, all pools together: configured, else by memory."""
        return self.settings.config.worker_cap or default_worker_cap()

    def admission(
        self,
        hold: bool | None,
        patience_minutes: float | None = None,
        unset: Literal["off", "hold"] = "off",
    ) -> Admission:
        """The configured admission rule, switched on or off for one piece of work. ``unset`` is
        the mode where neither the work nor the settings say one."""
        rule = routing_admission(self.settings, unset)
        if hold is not None:
            rule = msgspec.structs.replace(rule, mode="hold" if hold else "off")
        if patience_minutes is not None:
            rule = msgspec.structs.replace(rule, patience_minutes=patience_minutes)
        return rule
