"""Providers that are not ours: folders in the home, and entry points of installed packages."""

# ruff: noqa: PTH110, PTH118
# No pathlib where every pool of every `pools` goes through.
from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bullswarm.errors import UsageError
from bullswarm.providers.types import Connector, Provider

CODE = "provider.py"
GROUP = "bullswarm.providers"

Make = Callable[[], Provider]


def home_entries(folder: Path, env: Mapping[str, str]) -> Iterator[tuple[str, str, Make]]:
    """Name, folder and maker of every provider in the home; nothing is read yet."""
    try:
        names = sorted(e.name for e in os.scandir(folder) if e.is_dir())
    except OSError:
        return
    for name in names:
        if not name.startswith((".", "_")):
            path = os.path.join(folder, name)
            yield name, path, _from_folder(path, env)


def package_entries(home: Path | None, env: Mapping[str, str]) -> Iterator[tuple[str, Make]]:
    """Name and maker of every entry point of the group; nothing is imported yet."""
    from bullswarm.providers.entrypoints import find

    for name, target in find(home):
        yield name, _from_target(target, env)


def load_folder(folder: str, env: Mapping[str, str]) -> Provider:
    """The provider in a folder: its connector, and its ``provider.py`` where it has one. That names
    its class ``PROVIDER``, or holds one subclass of ``ConnectorProvider``. Raises ``UsageError``.
    """
    from bullswarm.providers.base import ConnectorProvider
    from bullswarm.providers.loading import load_connector

    connector = load_connector(folder)
    code = os.path.join(folder, CODE)
    if not os.path.exists(code):
        return ConnectorProvider(connector, folder, env)
    return _made(_class_in(_run(code, connector.name), code), connector, folder, env)


def _from_folder(folder: str, env: Mapping[str, str]) -> Make:
    return lambda: load_folder(folder, env)


def _from_target(target: str, env: Mapping[str, str]) -> Make:
    def make() -> Provider:
        from importlib import import_module

        module, _, attribute = target.partition(":")
        found: Any = import_module(module.strip())
        for part in filter(None, attribute.partition("[")[0].strip().split(".")):
            found = getattr(found, part)
        if isinstance(found, str | os.PathLike):
            return load_folder(os.fspath(found), env)
        if isinstance(found, Connector):
            from bullswarm.providers.base import ConnectorProvider

            return ConnectorProvider(found, None, env)
        if callable(found) and not _is_provider(found):
            found = found()
        if isinstance(found, Connector):
            from bullswarm.providers.base import ConnectorProvider

            return ConnectorProvider(found, None, env)
        if not _is_provider(found):
            raise UsageError(
                f"entry point {target}: it must be a provider, a connector, a function that gives "
                "one, or the path of a provider's folder"
            )
        provider: Provider = found
        return provider

    return make


def _is_provider(found: Any) -> bool:
    return not isinstance(found, type) and all(
        hasattr(found, name) for name in ("connector", "accounts", "command", "read_event")
    )


def _run(code: str, name: str) -> Any:
    from importlib.util import module_from_spec, spec_from_file_location

    module_name = "bullswarm_provider_" + "".join(c if c.isalnum() else "_" for c in name)
    spec = spec_from_file_location(module_name, code)
    if spec is None or spec.loader is None:
        raise UsageError(f"{code} can't be loaded as Python")
    module = module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[module_name]
        raise
    return module


def _class_in(module: Any, code: str) -> Any:
    from bullswarm.providers.base import ConnectorProvider

    named = getattr(module, "PROVIDER", None)
    if named is not None:
        return named
    classes = [
        found
        for found in vars(module).values()
        if isinstance(found, type)
        and issubclass(found, ConnectorProvider)
        and found.__module__ == module.__name__
    ]
    if len(classes) != 1:
        raise UsageError(
            f"{code}: it must hold one subclass of ConnectorProvider (it holds {len(classes)}), "
            "or name its class PROVIDER"
        )
    return classes[0]


def _made(kind: Any, connector: Connector, folder: str, env: Mapping[str, str]) -> Provider:
    made = kind(connector, folder, env)
    if not _is_provider(made):
        raise UsageError(f"{folder}/{CODE}: {kind!r} gives no provider")
    provider: Provider = made
    return provider
