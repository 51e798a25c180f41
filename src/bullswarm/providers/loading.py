"""Connector files: JSON or TOML, with errors that name the field and what would be right."""

# ruff: noqa: PTH110, PTH118
# No pathlib where every pool of every `pools` goes through.
from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from bullswarm.errors import UsageError
from bullswarm.providers.types import Connector

FILES = ("connector.json", "connector.toml")


def connector_file(folder: str | Path) -> Path:
    """The connector in a provider's folder. Raises ``UsageError`` where there is none, or two."""
    there = [Path(folder) / name for name in FILES if os.path.exists(os.path.join(folder, name))]
    if not there:
        raise UsageError(f"{folder}: there is no {' or '.join(FILES)} in it")
    if len(there) > 1:
        raise UsageError(f"{folder}: there are {' and '.join(FILES)}; keep one of them")
    return there[0]


def read_file(path: str | Path) -> dict[str, Any]:
    """What a connector file says, unchecked. Raises ``UsageError`` with the place that is wrong."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror or error}") from None
    try:
        if path.suffix == ".toml":
            import tomllib

            found: Any = tomllib.loads(data.decode("utf-8"))
        else:
            found = msgspec.json.decode(data)
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        word = "TOML" if path.suffix == ".toml" else "JSON"
        raise UsageError(f"{path} is no {word}: {error}") from None
    if not isinstance(found, dict):
        raise UsageError(f"{path}: a connector is a table of its fields")
    return found


def load_connector(folder: str | Path) -> Connector:
    """The connector in a folder, checked in full. Raises ``UsageError`` naming every fault."""
    path = connector_file(folder)
    raw = read_file(path)
    from bullswarm.providers.validate import connector_faults

    faults = connector_faults(raw, folder=Path(folder))
    if faults:
        raise UsageError(f"{path}: " + "; ".join(f"{f.path}: {f.message}" for f in faults))
    return msgspec.convert(raw, Connector)
