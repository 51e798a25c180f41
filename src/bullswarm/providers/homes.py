"""Login homes: where a CLI keeps a login. Each is a pool of its own."""

# ruff: noqa: PTH100, PTH110, PTH111, PTH118, PTH119, PTH208
# No pathlib where every pool of every `pools` goes through.
from __future__ import annotations

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from bullswarm.errors import UsageError
from bullswarm.providers.types import Connector

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_IN_NAMES = _LETTERS | frozenset("._-")
# No regular expressions where every pool of every `pools` goes through: two cost a millisecond.


class Home(msgspec.Struct, frozen=True, kw_only=True):
    """One login home. ``name`` is None for the one the CLI uses when nobody tells it another.
    ``path`` is absolute, None where the CLI has no such notion. ``env`` is set for its workers."""

    name: str | None = None
    path: str | None = None
    env: dict[str, str] = {}


def expand(path: str, env: Mapping[str, str]) -> str:
    """An absolute path; ``~`` is the HOME of that environment."""
    if path == "~" or path.startswith("~/"):
        path = (env.get("HOME") or os.path.expanduser("~")) + path[1:]
    return os.path.abspath(path)


def find(
    connector: Connector,
    env: Mapping[str, str],
    settings: Mapping[str, Any],
    signs: tuple[str, ...] = (),
) -> tuple[Home, ...]:
    """The homes of a provider: its default home, those in ``settings["homes"]`` (a list of paths,
    or a table of name to path or to ``{"path": ..., "env": {...}}``), and those that match
    ``home_glob`` and hold one of the files ``signs``. One folder is one home, whatever its name.
    Raises ``UsageError`` that names the setting."""
    homes: list[Home] = []
    configured = _configured(connector, env, settings)
    named = list(configured)
    if connector.home_glob:
        named += _globbed(connector.home_glob, env, signs)
    told = env.get(connector.home_env or "")
    # A home that has a name keeps it where its own agent calls: benches and settings go by names.
    if told and any(home.path and same(home.path, expand(told, env)) for home in named):
        told = None
    chosen = told or connector.home_default
    if chosen:
        homes.append(Home(path=expand(chosen, env)))
    elif not configured:
        homes.append(Home())
    return _distinct(homes + named)


def same(one: str, other: str) -> bool:
    """Whether two paths are one folder."""
    return one == other or os.path.realpath(one) == os.path.realpath(other)


def name_of(path: str, glob: str | None = None) -> str:
    """A pool's name for a folder: what the glob's star stands for, else the folder's name without
    its leading dot."""
    base = os.path.basename(path.rstrip("/")) or "home"
    for pattern in (os.path.basename(glob),) if glob else ():
        head, star, tail = pattern.partition("*")
        if star and fnmatchcase(base, pattern) and len(base) > len(head) + len(tail):
            base = base[len(head) : len(base) - len(tail)]
    plain = "".join(c if c in _IN_NAMES else " " for c in base.lower())
    return "-".join(plain.split()).strip("-.") or "home"


def _configured(
    connector: Connector, env: Mapping[str, str], settings: Mapping[str, Any]
) -> list[Home]:
    listed = settings.get("homes")
    where = f"providers.{connector.name}.homes"
    if listed is None:
        return []
    if isinstance(listed, list | tuple):
        paths = [_path(where, one) for one in listed]
        return [
            Home(name=name_of(path, connector.home_glob), path=expand(path, env)) for path in paths
        ]
    if not isinstance(listed, dict):
        raise UsageError(f"{where} must be a list of folders, or a table of name to folder")
    homes = []
    for name, one in listed.items():
        more: Any = {}
        if isinstance(one, dict):
            unknown = [key for key in one if key not in ("path", "env")]
            if unknown:
                raise UsageError(f"{where}.{name}.{unknown[0]} is unknown; there are path and env")
            more = one.get("env", {})
            one = one.get("path")
        if not isinstance(more, dict) or not all(isinstance(v, str) for v in more.values()):
            raise UsageError(f"{where}.{name}.env must be a table of variable to text")
        small = name.lower() if name.isascii() else ""
        if not _IN_NAMES.issuperset(small) or small[:1] not in _LETTERS:
            raise UsageError(f"{where}: {name!r} is no name; use letters, digits, dot, dash")
        path = expand(_path(f"{where}.{name}", one), env)
        homes.append(Home(name=name, path=path, env=more))
    return homes


def _path(where: str, value: Any) -> str:
    if isinstance(value, str) and value:
        return value
    raise UsageError(f"{where} must be the path of a folder, not {value!r}")


def _globbed(glob: str, env: Mapping[str, str], signs: tuple[str, ...]) -> list[Home]:
    parent, pattern = os.path.split(expand(glob, env))
    try:
        names = sorted(n for n in os.listdir(parent) if fnmatchcase(n, pattern))
    except OSError:
        return []
    found = []
    for name in names:
        path = os.path.join(parent, name)
        if any(os.path.exists(os.path.join(path, sign)) for sign in signs):
            found.append(Home(name=name_of(path, glob), path=path))
    return found


def _distinct(homes: list[Home]) -> tuple[Home, ...]:
    seen: set[str] = set()
    names: set[str | None] = set()
    kept = []
    for home in homes:
        real = os.path.realpath(home.path) if home.path else ""
        # The same folder with another environment is another login.
        key = f"{real}\0{sorted(home.env.items())}" if home.env else real
        if key in seen:
            continue
        seen.add(key)
        name, n = home.name, 2
        while name in names:
            name, n = f"{home.name}-{n}", n + 1
        names.add(name)
        kept.append(msgspec.structs.replace(home, name=name))
    return tuple(kept)
