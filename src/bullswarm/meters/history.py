"""The series of live readings of one pool: ``<home>/meters/history/<pool>.jsonl``.

One JSON reading a line, capped, 0600. Appends from any number of processes are serialised by a lock
file beside the series, so none is lost; a line torn by a crash is skipped by readers and cut off
from what follows it. Of a flat run (readings that differ in nothing but their time) only the first
and the last are kept: the slope between them is the same.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bullswarm.meters.windows import same_reset
from bullswarm.routing.types import Reading

CAP = 2000
_TAIL = 16384
_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


def file_name(pool: str) -> str:
    """A pool's name as a file name: what is not a letter, digit, dot, dash or underscore becomes
    %XX, so that no two pools share a file and none leaves the folder."""

    def escape(match: re.Match[str]) -> str:
        return "".join(f"%{byte:02X}" for byte in match[0].encode())

    if len(pool) <= 180 and pool[:1] != "." and _SAFE.issuperset(pool):
        return pool
    name = re.sub(r"[^A-Za-z0-9._-]|^\.", escape, pool)
    if len(name) > 180:
        import hashlib

        name = f"{name[:140]}-{hashlib.sha256(pool.encode()).hexdigest()[:16]}"
    return name


def history_path(home: str | Path, pool: str) -> Path:
    """Where a pool's series is kept in a home."""
    return Path(home) / "meters" / "history" / f"{file_name(pool)}.jsonl"


class History:
    """The series in one file. The file and its folder appear with the first append."""

    def __init__(self, path: str | Path, cap: int = CAP) -> None:
        self.path = Path(path)
        self.cap = cap

    def append(self, reading: Reading) -> bool:
        """Add a reading; True when the series changed. One that has no time or no percentage is not
        a point, and the very reading that came last is not added again. Raises ``OSError`` where
        the file can't be written."""
        if reading.observed_at is None or all(w.used_pct is None for w in reading.windows):
            return False
        line = msgspec.json.encode(msgspec.structs.replace(reading, note=None)) + b"\n"
        with self._locked():
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                return self._write(fd, reading, line)
            finally:
                os.close(fd)

    def load(self, limit: int | None = None) -> tuple[Reading, ...]:
        """The readings, oldest first, at most ``limit`` (default: the cap) of the newest lines.
        Lines that make no sense are skipped; a missing file is an empty series."""
        wanted = self.cap if limit is None else min(limit, self.cap)
        try:
            with open(self.path, "rb") as file:
                lines = _last_lines(file.fileno(), wanted)
        except OSError:
            return ()
        points = [p for p in map(_decode, lines) if p is not None]
        points.sort(key=lambda p: p.observed_at.timestamp() if p.observed_at else 0.0)
        return tuple(points)

    def _write(self, fd: int, reading: Reading, line: bytes) -> bool:
        size = os.fstat(fd).st_size
        tail = _last_lines(fd, 2)
        recent = [_decode(one) for one in tail]
        last = recent[-1] if recent else None
        offset = size
        if last is not None and _alike(last, reading):
            if last.observed_at == reading.observed_at:
                return False
            older = recent[-2] if len(recent) == 2 else None
            if older is not None and _alike(older, reading) and _later(reading, last):
                offset = size - len(tail[-1]) - (1 if _ends_clean(fd, size) else 0)
        if offset == size and size and not _ends_clean(fd, size):
            line = b"\n" + line
        os.pwrite(fd, line, offset)
        os.ftruncate(fd, offset + len(line))
        self._trim(fd)
        return True

    def _trim(self, fd: int) -> None:
        size = os.fstat(fd).st_size
        if size < self.cap * 100:
            return
        data = os.pread(fd, size, 0)
        if data.count(b"\n") <= self.cap + max(1, self.cap // 10):
            return
        kept = data.splitlines(keepends=True)[-self.cap :]
        temporary = self.path.with_name(self.path.name + ".new")
        out = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.write(out, b"".join(kept))
        finally:
            os.close(out)
        temporary.replace(self.path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        folder = self.path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A file of its own: the series itself is replaced when it is trimmed.
        lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _decode(line: bytes) -> Reading | None:
    try:
        point = msgspec.json.decode(line, type=Reading)
    except (msgspec.DecodeError, ValueError):
        return None
    return point if point.observed_at is not None and point.observed_at.tzinfo else None


def _ends_clean(fd: int, size: int) -> bool:
    return size == 0 or os.pread(fd, 1, size - 1) == b"\n"


def _last_lines(fd: int, count: int) -> list[bytes]:
    """The last lines of a file that are not empty, read backwards in growing blocks."""
    size = os.fstat(fd).st_size
    block = max(_TAIL, count * 512)
    while True:
        start = max(0, size - block)
        data = os.pread(fd, size - start, start)
        lines = data.split(b"\n")
        if start > 0:
            lines = lines[1:]
        lines = [line for line in lines if line.strip()]
        if start == 0 or len(lines) >= count:
            return lines[-count:] if count > 0 else []
        block *= 4


def _later(a: Reading, b: Reading) -> bool:
    return a.observed_at is not None and b.observed_at is not None and a.observed_at > b.observed_at


def _alike(a: Reading, b: Reading) -> bool:
    """Whether two readings differ in nothing but their time."""
    if a.account != b.account or len(a.windows) != len(b.windows):
        return False
    return all(
        x.kind == y.kind
        and x.family == y.family
        and x.used_pct == y.used_pct
        and (x.resets_at is None) == (y.resets_at is None)
        and same_reset(x.resets_at, y.resets_at)
        for x, y in zip(a.windows, b.windows, strict=True)
    )
