"""Providers: one folder an agent CLI, with what it takes to launch it and understand it.

``Registry`` holds all there are; ``ConnectorProvider`` is one made of its connector alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bullswarm.providers.base import ConnectorProvider
    from bullswarm.providers.callers import detect_caller
    from bullswarm.providers.registry import Fault, Registry
    from bullswarm.providers.types import Account, Ask, CommandLine, Connector, Provider

_HOMES = {
    "Account": "types",
    "Ask": "types",
    "CommandLine": "types",
    "Connector": "types",
    "ConnectorProvider": "base",
    "Fault": "registry",
    "Provider": "types",
    "Registry": "registry",
    "detect_caller": "callers",
}

__all__ = [
    "Account",
    "Ask",
    "CommandLine",
    "Connector",
    "ConnectorProvider",
    "Fault",
    "Provider",
    "Registry",
    "detect_caller",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
