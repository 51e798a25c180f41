"""Entry points of installed packages, found by looking at their files: importing
``importlib.metadata`` costs more than a whole ``pools``."""

# ruff: noqa: PTH105, PTH112, PTH116, PTH118, PTH208
# No pathlib where every pool of every `pools` goes through.
from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

GROUP = "bullswarm.providers"
CACHE = ".packages.json"

Found = tuple[str, str]


class _Cache(msgspec.Struct, frozen=True):
    key: list[tuple[str, int]]
    found: list[Found]


def find(cache_folder: Path | None, path: Sequence[str] | None = None) -> tuple[Found, ...]:
    """(name, ``module:attribute``) of the group's entry points along ``sys.path``, the first of a
    name. What was found is kept in a small file in ``cache_folder`` until a folder on the path
    changes; a cache that can't be read or written is done without."""
    folders = list(dict.fromkeys(sys.path if path is None else path))
    key = [(folder, stamp) for folder in folders if (stamp := _stamp(folder)) is not None]
    file = None if cache_folder is None else cache_folder / CACHE
    if file is not None:
        kept = _read(file)
        if kept is not None and kept.key == key:
            return tuple(kept.found)
    found: dict[str, str] = {}
    for folder, _ in key:
        for name, target in _in_folder(folder):
            found.setdefault(name, target)
    result = sorted(found.items())
    if file is not None:
        _write(file, _Cache(key=key, found=result))
    return tuple(result)


def parse(text: str) -> list[Found]:
    """The group's entries in an ``entry_points.txt``."""
    found = []
    inside = False
    for line in text.splitlines():
        line = line.split("#", 1)[0].strip()
        if line.startswith("["):
            inside = line == f"[{GROUP}]"
        elif inside and "=" in line:
            name, _, target = line.partition("=")
            found.append((name.strip(), target.strip()))
    return found


def _stamp(folder: str) -> int | None:
    try:
        return os.stat(folder or ".").st_mtime_ns if os.path.isdir(folder or ".") else None
    except OSError:
        return None


def _in_folder(folder: str) -> Iterable[Found]:
    try:
        names = [n for n in os.listdir(folder or ".") if n.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return
    for name in sorted(names):
        try:
            with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8") as file:
                text = file.read(1_000_000)
        except (OSError, UnicodeDecodeError):
            continue
        if GROUP in text:
            yield from parse(text)


def _read(file: Path) -> _Cache | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=_Cache)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _write(file: Path, cache: _Cache) -> None:
    part = file.with_name(f"{CACHE}.{os.getpid()}")
    try:
        part.write_bytes(msgspec.json.encode(cache))
        os.replace(part, file)
    except OSError:
        return
