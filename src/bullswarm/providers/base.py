"""A provider made of its connector alone. One with code overrides what its CLI does differently."""

# ruff: noqa: PTH100, PTH110, PTH113, PTH118
# No pathlib where every pool of every `pools` goes through.
from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bullswarm.dispatch.types import Event
from bullswarm.errors import UsageError
from bullswarm.providers import homes as login_homes
from bullswarm.providers.callers import MARKERS
from bullswarm.providers.homes import Home
from bullswarm.providers.login import Login
from bullswarm.providers.templates import arguments, fill, values_for
from bullswarm.providers.types import Account, Ask, CommandLine, Connector
from bullswarm.routing.types import Model, Reading

if TYPE_CHECKING:
    from bullswarm.providers.streams import Reader


class ConnectorProvider:
    """Meets the ``Provider`` protocol by the connector's word.

    ``folder`` is the provider's own folder (``{folder}`` in templates). ``env`` is the environment
    that pools are looked for in; None is this process's.
    """

    login_signs: tuple[str, ...] = ()
    """Files that tell a login home from any other folder that ``home_glob`` matches."""

    login_env: tuple[str, ...] = ()
    """Variables that stand in for the login of a home: a home with a login of its own is not
    given them, or every home would be one login."""

    def __init__(
        self,
        connector: Connector,
        folder: str | Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._connector = connector
        self.folder = str(folder) if folder is not None else ""
        self.env: Mapping[str, str] = os.environ if env is None else env
        self._reader: Reader | None = None

    @property
    def connector(self) -> Connector:
        return self._connector

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._connector.name!r})"

    def accounts(self, env: Mapping[str, str], settings: Mapping[str, Any]) -> tuple[Account, ...]:
        """One pool a login home. Starts nothing and spends nothing. Raises ``UsageError`` that
        names the setting which is wrong."""
        missing = self.missing_binary(env, settings)
        found = []
        for home in self.homes(env, settings):
            login = self.login(home, self._home_env(home, env, settings))
            found.append(
                Account(
                    pool=self.pool_name(home),
                    provider=self._connector.name,
                    home=home.path,
                    identity=login.identity,
                    login_file=os.path.realpath(login.file) if login.file else None,
                    unavailable=missing or login.unavailable,
                )
            )
        return tuple(found)

    def homes(self, env: Mapping[str, str], settings: Mapping[str, Any]) -> tuple[Home, ...]:
        """The login homes there are."""
        return login_homes.find(self._connector, env, settings, self.login_signs)

    def pool_name(self, home: Home) -> str:
        name = self._connector.name
        return name if home.name is None else f"{name}:{home.name}"

    def login(self, home: Home, env: Mapping[str, str]) -> Login:
        """The login in a home, as a worker with that environment would use it."""
        return Login()

    def login_of(
        self, account: Account, env: Mapping[str, str], settings: Mapping[str, Any]
    ) -> Login:
        """The login behind a pool, looked at again."""
        for home in self.homes(env, settings):
            if self.pool_name(home) == account.pool:
                return self.login(home, self._home_env(home, env, settings))
        return Login(unavailable=account.unavailable)

    def binary(self, env: Mapping[str, str], settings: Mapping[str, Any]) -> str | None:
        """The absolute path of the CLI (``settings["bin"]``, else on PATH), None where it is not
        there."""
        wanted = settings.get("bin") or self._connector.command
        if not isinstance(wanted, str):
            raise UsageError(
                f"providers.{self._connector.name}.bin must be the path of the CLI, not {wanted!r}"
            )
        import sys

        wanted = fill(wanted, {"python": sys.executable, "folder": self.folder})
        return which(login_homes.expand(wanted, env) if "/" in wanted else wanted, env)

    def missing_binary(self, env: Mapping[str, str], settings: Mapping[str, Any]) -> str | None:
        """Why there is no CLI to run, with what to do about it; None where there is one."""
        if self.binary(env, settings) is not None:
            return None
        if settings.get("bin"):
            return (
                f"{settings['bin']} is no program that can be run "
                f"(providers.{self._connector.name}.bin)"
            )
        hint = self._connector.install_hint
        return f"{self._connector.command} is not on PATH" + (f"; {hint}" if hint else "")

    def command(self, account: Account, ask: Ask, settings: Mapping[str, Any]) -> CommandLine:
        """The command line for one attempt. Raises ``UsageError`` for what the CLI can't do."""
        connector = self._connector
        binary = self.binary(self.env, settings)
        if binary is None:
            raise UsageError(f"{account.pool}: {self.missing_binary(self.env, settings)}")
        values = values_for(
            connector, ask, pool=account.pool, home=account.home or "", folder=self.folder
        )
        set_, drop = self.worker_env(account, settings)
        return CommandLine(
            argv=(binary, *arguments(connector, ask, values)),
            env_set={name: fill(value, values) for name, value in set_.items()},
            env_drop=drop,
            stdin=ask.prompt if connector.prompt_via == "stdin" else None,
        )

    def worker_env(
        self, account: Account, settings: Mapping[str, Any]
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        """What a worker's environment has more and less than ours. The marks that agent CLIs leave
        go: a worker is nobody's child session. The default home stays unnamed, because CLIs look
        for more in other places once they are told a home."""
        connector = self._connector
        set_ = dict(connector.env)
        set_.update(_texts(settings.get("env"), f"providers.{connector.name}.env"))
        drop = [*MARKERS, *connector.caller_markers, *connector.env_drop]
        if account.pool != connector.name or not connector.home_default:
            home = self._home_of(account, settings)
            if connector.home_env and account.home:
                set_[connector.home_env] = account.home
            if self.own_login(home):
                drop += self.login_env
            set_.update(home.env)
        elif self._told_another(account.home, self.env):
            drop.append(connector.home_env or "")
        return set_, tuple(dict.fromkeys(name for name in drop if name not in set_))

    def own_login(self, home: Home) -> bool:
        """Whether a home holds a login of its own."""
        return home.path is not None and any(
            os.path.exists(os.path.join(home.path, sign)) for sign in self.login_signs
        )

    def read_event(self, raw: dict[str, Any]) -> tuple[Event, ...]:
        """One raw JSON event in our words; unknown events give ()."""
        if self._reader is None:
            from bullswarm.providers.streams import Reader

            self._reader = Reader(self._connector.stream)
        return self._reader.read(raw)

    def read_meter(self, account: Account, env: Mapping[str, str], now: datetime) -> Reading | None:
        """The meter file the connector names, or None where it names none. Raises
        ``MeterError``."""
        meter = self._connector.meter
        if meter is None or not meter.startswith("file:"):
            return None
        if "{home}" in meter and account.home is None:
            return None
        from bullswarm.meters import filemeter

        path = filemeter.resolve(meter.replace("{folder}", self.folder), account.home)
        return filemeter.read(path, account.pool, now, account.identity)

    def worker_view(self, account: Account, env: Mapping[str, str]) -> dict[str, str]:
        """The environment a worker of this pool would get, for what depends on it."""
        set_, drop = self.worker_env(account, self.settings_seen)
        return {k: v for k, v in env.items() if k not in drop} | set_

    settings_seen: Mapping[str, Any] = {}
    """The provider's settings as the registry loaded them."""

    def models(self, account: Account) -> tuple[Model, ...]:
        """The connector's models, and those the setting ``models`` (a list of names) adds: a CLI
        that lists some takes no others."""
        known = {
            m.name: Model(name=m.name, family=m.family, latency=m.latency)
            for m in self._connector.models
        }
        more = self.settings_seen.get("models")
        for name in more if isinstance(more, list) else ():
            if isinstance(name, str):
                known.setdefault(name, Model(name=name))
        return tuple(known.values())

    def _home_env(
        self, home: Home, env: Mapping[str, str], settings: Mapping[str, Any]
    ) -> Mapping[str, str]:
        if self._told_another(home.path, env):
            env = {k: v for k, v in env.items() if k != self._connector.home_env}
        if home.name is None and not settings.get("env"):
            return env
        account = Account(pool=self.pool_name(home), provider="", home=home.path)
        set_, drop = self.worker_env(account, settings)
        return {k: v for k, v in env.items() if k not in drop} | set_

    def _told_another(self, home: str | None, env: Mapping[str, str]) -> bool:
        """Whether the variable of the CLI names another home than this one."""
        told = env.get(self._connector.home_env or "")
        return bool(told and home and not login_homes.same(home, login_homes.expand(told, env)))

    def _home_of(self, account: Account, settings: Mapping[str, Any]) -> Home:
        listed = settings.get("homes")
        if isinstance(listed, dict):
            for home in self.homes(self.env, settings):
                if self.pool_name(home) == account.pool:
                    return home
        return Home(name=account.pool, path=account.home)


def which(name: str, env: Mapping[str, str]) -> str | None:
    """The program of that name on the PATH of ``env``, or at that path."""
    if "/" in name:
        candidates = [name]
    else:
        path = env.get("PATH", os.defpath)
        candidates = [os.path.join(folder, name) for folder in path.split(os.pathsep) if folder]
    for candidate in candidates:
        if os.access(candidate, os.X_OK) and os.path.isfile(candidate):
            return os.path.abspath(candidate)
    return None


def _texts(value: Any, where: str) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise UsageError(f"{where} must be a table of variable to text")
    return value
