"""Every provider there is: ours, the home's and those of installed packages.

Nothing of a provider that is broken stops a run: it is reported by ``faults`` and left out.
"""

# ruff: noqa: PTH100, PTH118, PTH120
# No pathlib where every pool of every `pools` goes through.
from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from bullswarm.errors import UsageError
from bullswarm.providers.groups import with_groups
from bullswarm.providers.types import Account, Connector, Provider

BUILT_IN: dict[str, tuple[str, str | None]] = {
    "claude-code": ("claude_code", "ClaudeCode"),
    "codex": ("codex", "Codex"),
    "opencode": ("opencode", "OpenCode"),
    "gemini": ("gemini", "Gemini"),
    "qwen": ("qwen", "Qwen"),
    "echo": ("echo", None),
    "demo": ("demo", "Demo"),
}
"""Name to its package here and the class in its ``provider`` module (None: the connector does)."""

Origin = Literal["built-in", "home", "package"]


class Fault(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is wrong with a provider, in words that say what would be right."""

    provider: str
    message: str


class Listed(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One row of ``provider list``. ``state`` is "ready", "off", or why no pool can work."""

    name: str
    origin: Origin
    command: str
    pools: tuple[str, ...]
    state: str
    folder: str | None = None


class _Entry:
    def __init__(
        self,
        name: str,
        origin: Origin,
        make: Callable[[], Provider],
        *,
        enabled: bool = True,
        folder: str | None = None,
    ) -> None:
        self.name = name
        self.origin = origin
        self.make = make
        self.enabled = enabled
        self.folder = folder
        self.provider: Provider | None = None


class Registry:
    """Made by ``load``."""

    def __init__(
        self,
        entries: Mapping[str, _Entry],
        settings: Mapping[str, dict[str, Any]],
        env: Mapping[str, str],
        faults: Sequence[Fault] = (),
    ) -> None:
        self._entries = dict(entries)
        self._settings = settings
        self._env = env
        self._faults: dict[tuple[str, str], Fault] = {}
        for fault in faults:
            self._fault(fault.provider, fault.message)

    @classmethod
    def load(
        cls,
        home: Path | None,
        settings: Mapping[str, dict[str, Any]],
        env: Mapping[str, str],
        *,
        entry_points: bool = True,
    ) -> Registry:
        """``home`` is the folder of the operator's own providers (None: there is none),
        ``settings`` is ``state.json``'s ``providers``. A provider of the home's replaces a
        built-in one of its name; a package's never does."""
        from bullswarm.providers.discover import home_entries, package_entries

        registry = cls({}, settings, env)
        only_demo = _flag(settings.get("demo", {}), "only")
        for name, (package, kind) in BUILT_IN.items():
            if only_demo and name != "demo":
                continue
            registry._add(name, "built-in", _built_in(package, kind, env), _folder(package))
        if only_demo:
            return registry
        if home is not None:
            for name, folder, make in home_entries(home, env):
                registry._add(name, "home", make, folder)
        if entry_points:
            for name, make in package_entries(home, env):
                if name in registry._entries:
                    taken = registry._entries[name].origin
                    registry._fault(name, f"a package offers it too, but the name is {taken}")
                else:
                    registry._add(name, "package", make, None)
        for name in settings:
            if name not in registry._entries:
                registry._fault(name, f"providers.{name} in state.json: there is no such provider")
        return registry

    def names(self) -> tuple[str, ...]:
        """The names of all providers, whether on or off."""
        return tuple(self._entries)

    def providers(self) -> tuple[Provider, ...]:
        """The providers that are on and not broken."""
        found = (self._provider(entry) for entry in self._entries.values() if self._on(entry))
        return tuple(p for p in found if p is not None)

    def get(self, name: str) -> Provider:
        """The provider of that name. Raises ``UsageError`` where there is none, or a broken one."""
        entry = self._entries.get(name)
        if entry is None:
            known = ", ".join(self._entries)
            raise UsageError(f"no provider named {name!r}; there are: {known}")
        provider = self._provider(entry)
        if provider is None:
            why = "; ".join(f.message for f in self.faults() if f.provider == name)
            raise UsageError(f"the provider {name!r} is broken: {why}")
        return provider

    def accounts(self, env: Mapping[str, str] | None = None) -> tuple[Account, ...]:
        """Every pool of every provider that is on, with its credential group. Never raises."""
        found: list[Account] = []
        upstream: dict[str, str] = {}
        taken: set[str] = set()
        for entry in self._entries.values():
            if not self._on(entry):
                continue
            for account in self._accounts(entry, self._env if env is None else env):
                if account.pool in taken:
                    self._fault(entry.name, f"its pool {account.pool!r} is another provider's too")
                    continue
                taken.add(account.pool)
                found.append(account)
                group = entry.provider.connector.upstream_group if entry.provider else None
                if group:
                    upstream[account.pool] = group
        return with_groups(found, upstream)

    def of_pool(self, pool: str) -> tuple[Provider, Account]:
        """The provider and account behind a pool. Raises ``UsageError`` with the pools there
        are."""
        accounts = self.accounts()
        for account in accounts:
            if account.pool == pool:
                return self.get(account.provider), account
        known = ", ".join(a.pool for a in accounts) or "none"
        raise UsageError(f"no pool named {pool!r}; there are: {known}")

    def faults(self) -> tuple[Fault, ...]:
        """What is wrong, as far as it was looked at."""
        return tuple(self._faults.values())

    def listing(self, env: Mapping[str, str] | None = None) -> tuple[Listed, ...]:
        """Every provider for people, whether on, off or broken."""
        accounts = self.accounts(env)
        rows = []
        for entry in self._entries.values():
            provider = self._provider(entry)
            mine = [a for a in accounts if a.provider == entry.name]
            if provider is None and self._settings.get(entry.name, {}).get("enabled") is not False:
                state = "broken"
            elif not self._on(entry):
                state = "off"
            elif any(a.unavailable is None for a in mine):
                state = "ready"
            else:
                state = mine[0].unavailable or "no pool" if mine else "no pool"
            rows.append(
                Listed(
                    name=entry.name,
                    origin=entry.origin,
                    command=provider.connector.command if provider else "",
                    pools=tuple(a.pool for a in mine),
                    state=state,
                    folder=entry.folder,
                )
            )
        return tuple(rows)

    def _add(
        self, name: str, origin: Origin, make: Callable[[], Provider], folder: str | None
    ) -> None:
        self._entries[name] = _Entry(name, origin, make, folder=folder)

    def _on(self, entry: _Entry) -> bool:
        enabled = self._settings.get(entry.name, {}).get("enabled")
        if isinstance(enabled, bool):
            return enabled
        if enabled is not None:
            self._fault(entry.name, f"providers.{entry.name}.enabled must be true or false")
        if entry.name == "echo":
            return self._env.get("BULLSWARM_ECHO", "") not in ("", "0")
        if entry.name == "demo":
            return False
        provider = self._provider(entry)
        return provider is not None and not provider.connector.opt_in

    def _provider(self, entry: _Entry) -> Provider | None:
        if entry.provider is None:
            try:
                entry.provider = entry.make()
                name = entry.provider.connector.name
                if name != entry.name:
                    entry.provider = None
                    raise UsageError(f"name: it calls itself {name!r}; {entry.name!r} is right")
                if hasattr(entry.provider, "settings_seen"):
                    entry.provider.settings_seen = self._settings.get(entry.name, {})
            except Exception as error:
                self._fault(entry.name, _words(error))
                entry.make = _broken(error)
        return entry.provider

    def _accounts(self, entry: _Entry, env: Mapping[str, str]) -> tuple[Account, ...]:
        provider = self._provider(entry)
        if provider is None:
            return ()
        settings = self._settings.get(entry.name, {})
        try:
            return tuple(provider.accounts(env, settings))
        except Exception as error:
            self._fault(entry.name, _words(error))
            return ()

    def _fault(self, provider: str, message: str) -> None:
        self._faults[(provider, message)] = Fault(provider=provider, message=message)


def _built_in(package: str, kind: str | None, env: Mapping[str, str]) -> Callable[[], Provider]:
    def make() -> Provider:
        from importlib import import_module

        from bullswarm.providers.base import ConnectorProvider

        folder = _folder(package)
        with open(os.path.join(folder, "connector.json"), "rb") as file:
            connector = msgspec.json.decode(file.read(), type=Connector)
        if kind is None:
            return ConnectorProvider(connector, folder, env)
        module = import_module(f"bullswarm.providers.{package}.provider")
        made: Provider = getattr(module, kind)(connector, folder, env)
        return made

    return make


def _folder(package: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), package)


def _broken(error: Exception) -> Callable[[], Provider]:
    def make() -> Provider:
        raise error

    return make


def _words(error: Exception) -> str:
    if isinstance(error, UsageError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _flag(settings: Mapping[str, Any], name: str) -> bool:
    return isinstance(settings, Mapping) and settings.get(name) is True
