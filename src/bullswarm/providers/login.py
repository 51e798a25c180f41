"""What can be told of a login without spending anything: whose it is, and whether it is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

MAX_BYTES = 64 * 1024 * 1024

T = TypeVar("T")


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """``identity`` is a digest of the account, None where unknown. ``file`` is where the CLI keeps
    the login. ``unavailable`` says why there is none, and only where that is certain."""

    identity: str | None = None
    file: str | None = None
    unavailable: str | None = None


class Damaged(Exception):
    """A login file that is there and makes no sense."""


def digest(*parts: str) -> str:
    """A short digest that says nothing about what it was made of."""
    import hashlib

    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def read_json(path: str | Path, kind: type[T]) -> T | None:
    """The file as that type, None where it is not there or can't be opened. Raises ``Damaged``."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES)
    except OSError:
        return None
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Damaged(f"the login at {path} is damaged") from None


def read_object(path: str | Path) -> dict[str, Any] | None:
    return read_json(path, dict[str, Any])
