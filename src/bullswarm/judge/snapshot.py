"""What a folder holds, file by file, within limits: the ground under the deliverable snapshot.

Symlinks are never followed: what counts is where a link points. A file whose size, inode and both
times are unchanged is unchanged; otherwise its content is compared.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

MAX_FILES = 50_000
"""Files a folder without git is looked at for; the rest is said not to be."""

MAX_FILE_BYTES = 16 * 1024 * 1024
"""A larger file is compared by size and times."""

MAX_TOTAL_BYTES = 1024 * 1024 * 1024
MAX_SECONDS = 20.0
"""Beyond either, the remaining files are compared by size and times."""

MAX_DECLARED_BYTES = 1024 * 1024 * 1024
"""A declared deliverable is read up to here, whatever the limits above."""

SKIPPED = frozenset(
    {
        ".git", ".hg", ".svn", ".jj", "node_modules", ".venv", "venv", "__pycache__", ".tox",
        ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".gradle",
    }
)  # fmt: skip
"""Folders that tools fill by themselves. Also any with ``pyvenv.cfg`` or ``CACHEDIR.TAG`` in it."""


class Sig(msgspec.Struct, frozen=True, array_like=True):
    """One file's state. ``digest`` None: too large to read, compared by size and times."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    mode: int
    digest: str | None = None


class Budget:
    """How much more may be read, in bytes and seconds."""

    def __init__(self, total_bytes: int = MAX_TOTAL_BYTES, seconds: float = MAX_SECONDS) -> None:
        self.left = total_bytes
        self.until = time.monotonic() + seconds
        self.by_time_only = 0

    def allows(self, size: int) -> bool:
        if size > MAX_FILE_BYTES or size > self.left or time.monotonic() > self.until:
            self.by_time_only += 1
            return False
        self.left -= size
        return True


def sign(path: Path | str, budget: Budget, known: Sig | None = None) -> Sig | None:
    """The state of one path; None when there is nothing (or nothing readable) there. ``known`` is
    an earlier state: with nothing touched since, its digest is taken over unread."""
    try:
        info = os.lstat(path)
    except (OSError, ValueError):
        return None
    kind = stat.S_IFMT(info.st_mode)
    mode = kind | (info.st_mode & 0o111)
    bare = Sig(info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, mode)
    if known is not None and msgspec.structs.replace(known, digest=None) == bare:
        return known
    if kind == stat.S_IFLNK:
        try:
            return msgspec.structs.replace(bare, digest=_digest(os.fsencode(Path(path).readlink())))
        except OSError:
            return bare
    if kind != stat.S_IFREG:
        return bare
    if not budget.allows(info.st_size):
        return bare
    return msgspec.structs.replace(bare, digest=file_digest(path))


def same(before: Sig, after: Sig) -> bool:
    """Whether nothing that matters differs: content, type, execute bit."""
    if before.mode != after.mode:
        return False
    if before.digest is not None and after.digest is not None:
        return before.digest == after.digest
    return before.size == after.size and before.mtime_ns == after.mtime_ns


def file_digest(path: Path | str, limit: int = MAX_DECLARED_BYTES) -> str | None:
    """The digest of a file's first ``limit`` bytes, or None where it can't be read."""
    digest = hashlib.blake2b(digest_size=16)
    left = limit
    try:
        # A pipe in a file's place must not block us.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0))
        with os.fdopen(handle, "rb") as stream:
            while left > 0 and (chunk := stream.read(min(1 << 20, left))):
                digest.update(chunk)
                left -= len(chunk)
    except OSError:
        return None
    return digest.hexdigest()


class Walk(msgspec.Struct):
    """What a walk saw. ``unseen`` counts what it did not look at, by reason."""

    files: dict[str, Sig]
    truncated: bool = False
    skipped: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()


def walk(
    root: Path,
    budget: Budget,
    *,
    ignore: Iterable[str] = (),
    known: dict[str, Sig] | None = None,
    max_files: int = MAX_FILES,
) -> Walk:
    """Every file under ``root`` by its relative path, folders in order of name. ``ignore`` are
    absolute paths that are left out, with everything in them."""
    left_out = tuple(os.path.realpath(p) for p in ignore)
    files: dict[str, Sig] = {}
    skipped: list[str] = []
    unreadable: list[str] = []
    before = known or {}
    for relative, full in _paths(root, left_out, skipped, unreadable):
        if len(files) >= max_files:
            return Walk(files, True, tuple(skipped), tuple(unreadable))
        state = sign(full, budget, before.get(relative))
        if state is not None:
            files[relative] = state
    return Walk(files, False, tuple(skipped), tuple(unreadable))


def _paths(
    root: Path, left_out: tuple[str, ...], skipped: list[str], unreadable: list[str]
) -> Iterator[tuple[str, str]]:
    stack = [("", os.path.realpath(root))]
    while stack:
        prefix, folder = stack.pop()
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda e: e.name)
        except OSError:
            unreadable.append(prefix or ".")
            continue
        names = {e.name for e in entries}
        if prefix and ("pyvenv.cfg" in names or "CACHEDIR.TAG" in names):
            skipped.append(prefix)
            continue
        below = []
        for entry in entries:
            relative = f"{prefix}/{entry.name}" if prefix else entry.name
            if entry.path in left_out:
                continue
            if entry.is_dir(follow_symlinks=False):
                if entry.name in SKIPPED:
                    skipped.append(relative)
                else:
                    below.append((relative, entry.path))
            else:
                yield relative, entry.path
        stack.extend(reversed(below))


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
