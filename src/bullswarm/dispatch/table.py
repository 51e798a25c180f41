"""Every live process at one moment: whose session it is in, and whose marks it carries.

A look costs milliseconds, so all watches of a process share it, and looks take only a small part of
the time however many watches end at once.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable
from typing import NamedTuple

from bullswarm.dispatch.environment import ATTEMPT
from bullswarm.dispatch.types import Worker

SHARE = 8.0
"""After a look the next is this many times its own length away."""

SETTLED_S = 5.0
"""A process this old has done its exec: its environment is not read again."""

_KEY = ATTEMPT.encode() + b"="


class Row(NamedTuple):
    """One process. ``started`` as in ``Worker``."""

    pid: int
    session: int
    started: float
    marks: frozenset[str]


class Table:
    """The live processes, zombies and ourselves left out. ``taken_at`` is monotonic seconds, just
    before the look."""

    def __init__(self, taken_at: float, rows: Iterable[Row]) -> None:
        self.taken_at = taken_at
        self._rows = {row.pid: row for row in rows if row.pid != os.getpid()}
        self._sessions: dict[int, list[Row]] = {}
        self._marked: dict[str, list[int]] = {}
        for row in self._rows.values():
            self._sessions.setdefault(row.session, []).append(row)
            for mark in row.marks:
                self._marked.setdefault(mark, []).append(row.pid)

    def of(self, worker: Worker) -> tuple[int, ...]:
        """The processes of the attempt: those in the worker's session, and those elsewhere that
        carry its mark."""
        found = set(self._marked.get(worker.attempt_id, ()))
        session = self._sessions.get(worker.pid, [])
        if self._is_ours(worker, session):
            found.update(row.pid for row in session)
        return tuple(sorted(found))

    def _is_ours(self, worker: Worker, session: list[Row]) -> bool:
        """The number of a session can belong to somebody else once the worker and all that was in
        it are gone, or after a restart of the machine."""
        if any(worker.attempt_id in row.marks for row in session):
            return True
        leader = self._rows.get(worker.pid)
        if leader is not None:
            return worker.started > 0 and abs(leader.started - worker.started) < 0.05
        # While anything runs in a session, its number is not given away.
        return worker.started > 0


class Looks:
    """Takes tables and shares them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: Table | None = None
        self._next_at = 0.0
        self._known: dict[int, tuple[float, bool, frozenset[str]]] = {}

    def look(self, not_before: float, *, at_once: bool = False) -> Table | None:
        """A table taken at ``not_before`` (monotonic seconds) or later; None where that has to
        wait a moment, unless ``at_once``."""
        with self._lock:
            if self._last is not None and self._last.taken_at >= not_before:
                return self._last
            began = time.monotonic()
            if began < self._next_at and not at_once:
                return None
            self._last = Table(began, self._rows())
            ended = time.monotonic()
            self._next_at = ended + (ended - began) * SHARE
            return self._last

    def _rows(self) -> list[Row]:
        try:
            names = os.listdir("/proc")  # noqa: PTH208 (names are all that is needed)
        except FileNotFoundError:
            return _elsewhere()
        ticks = float(os.sysconf("SC_CLK_TCK"))
        boot = time.clock_gettime(time.CLOCK_BOOTTIME)
        known, rows = {}, []
        for name in names:
            if not name.isdigit():
                continue
            stat = _read(f"/proc/{name}/stat")
            if not stat:
                continue
            fields = stat[stat.rindex(b")") + 2 :].split(None, 20)
            if fields[0] in (b"Z", b"X", b"x"):
                continue
            pid, started = int(name), int(fields[19]) / ticks
            entry = self._known.get(pid)
            if entry is None or entry[0] != started or not entry[1]:
                marks = _marks(_read(f"/proc/{name}/environ"))
                if entry is not None and entry[0] == started:
                    # What was ours once stays ours, whatever it executes.
                    marks |= entry[2]
                entry = (started, boot - started > SETTLED_S, marks)
            known[pid] = entry
            rows.append(Row(pid, int(fields[3]), started, entry[2]))
        self._known = known
        return rows


_looks = Looks()
look = _looks.look


def now() -> Table:
    """The processes as they are now."""
    table = look(time.monotonic(), at_once=True)
    assert table is not None
    return table


def _read(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        data = os.read(fd, 65536)
        if len(data) < 4096 or path.endswith("stat"):
            return data
        while more := os.read(fd, 65536):
            data += more
        return data
    except OSError:
        return b""
    finally:
        os.close(fd)


def _marks(block: bytes) -> frozenset[str]:
    if _KEY not in block:
        return frozenset()
    return frozenset(
        word.decode("utf-8", "replace")
        for entry in block.split(b"\0")
        if entry.startswith(_KEY)
        for word in entry[len(_KEY) :].split()
    )


def _elsewhere() -> list[Row]:
    import psutil

    rows = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            marks: frozenset[str] = frozenset()
            with contextlib.suppress(psutil.Error, OSError):
                marks = frozenset(process.environ().get(ATTEMPT, "").split())
            rows.append(
                Row(process.pid, os.getsid(process.pid), float(process.create_time()), marks)
            )
    return rows
