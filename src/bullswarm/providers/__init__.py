"""Providers: one folder an agent CLI, with what it takes to launch it and understand it.

``Registry`` holds all there are; ``ConnectorProvider`` is one made of its connector alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullswarm.lazy import exports

if TYPE_CHECKING:
    from bullswarm.providers.base import ConnectorProvider
    from bullswarm.providers.callers import detect_caller
    from bullswarm.providers.registry import Fault, Registry
    from bullswarm.providers.types import Account, Ask, CommandLine, Connector, Provider

__getattr__ = exports(
    __name__,
    {
        "base": ("ConnectorProvider",),
        "callers": ("detect_caller",),
        "registry": ("Fault", "Registry"),
        "types": ("Account", "Ask", "CommandLine", "Connector", "Provider"),
    },
)

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
