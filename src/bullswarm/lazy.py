"""Packages that show their public names and load a module when one of its names is asked for.

Agents call the command line in a loop: who needs the types of a room must not pay for all of it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def exports(package: str, where: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package: ``where`` maps each of its modules to the names that the
    package shows of it. What it gives raises ``AttributeError`` for any other name."""
    module_of = {name: module for module, names in where.items() for name in names}

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
