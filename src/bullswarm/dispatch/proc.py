"""End a worker with everything it started: its session, and what fled into sessions of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

from bullswarm.dispatch.environment import ATTEMPT
from bullswarm.dispatch.spawn import reap
from bullswarm.dispatch.types import Worker

KILL_S = 3.0
"""How long after KILL the processes may take to be gone."""

_STEP_S = 0.02


def members(worker: Worker) -> tuple[int, ...]:
    """The live processes of the attempt: those in the worker's session, and those elsewhere that
    carry its mark. Never ourselves."""
    found = []
    me = os.getpid()
    mark = worker.attempt_id.encode()
    for pid, session in _processes():
        if pid != me and (session == worker.pid or _marked(pid, mark)):
            found.append(pid)
    return tuple(found)


def end_group(worker: Worker, grace_s: float) -> tuple[int, ...]:
    """TERM, at most ``grace_s`` seconds of grace, then KILL. Gives what still runs after all."""
    ending = Ending(worker, grace_s)
    while not ending.step():
        time.sleep(_STEP_S)
    return ending.survivors


class Ending:
    """The end of a worker's processes, step by step, so that others can be watched meanwhile."""

    def __init__(self, worker: Worker, grace_s: float) -> None:
        self.worker = worker
        self.survivors: tuple[int, ...] = ()
        self.killed = False
        self._kill_at = time.monotonic() + grace_s
        self._give_up_at = self._kill_at + KILL_S
        self._send(signal.SIGTERM if grace_s > 0 else signal.SIGKILL, members(worker))

    def kill(self) -> None:
        """No more grace."""
        self._kill_at = min(self._kill_at, time.monotonic())
        self._give_up_at = self._kill_at + KILL_S

    def step(self) -> bool:
        """True when nothing is left, or nothing more can be done."""
        reap(self.worker)
        left = members(self.worker)
        if not left:
            self.survivors = ()
            return True
        now = time.monotonic()
        if now >= self._give_up_at:
            self.survivors = left
            return True
        if now >= self._kill_at:
            self.killed = True
            # Again at every step: a process may have been started since.
            self._send(signal.SIGKILL, left)
        return False

    def _send(self, number: signal.Signals, pids: tuple[int, ...]) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.worker.pid in pids:
                os.killpg(self.worker.pid, number)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getpgid(pid) != self.worker.pid:
                    os.kill(pid, number)
        if self.worker.pid not in pids:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)


def _processes() -> list[tuple[int, int]]:
    """(pid, session) of every live process; zombies are dead."""
    found = []
    try:
        names = os.listdir("/proc")  # noqa: PTH208 (names are all that is needed)
    except FileNotFoundError:
        return _elsewhere()
    for name in names:
        if not name.isdigit():
            continue
        try:
            stat = Path(f"/proc/{name}/stat").read_bytes()
        except OSError:
            continue
        fields = stat[stat.rindex(b")") + 2 :].split()
        if fields[0] not in (b"Z", b"X"):
            found.append((int(name), int(fields[3])))
    return found


def _elsewhere() -> list[tuple[int, int]]:
    import psutil

    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError, PermissionError):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append((process.pid, os.getsid(process.pid)))
    return found


def _marked(pid: int, mark: bytes) -> bool:
    try:
        block = Path(f"/proc/{pid}/environ").read_bytes()
    except FileNotFoundError:
        return _marked_elsewhere(pid, mark.decode())
    except OSError:
        return False
    if mark not in block:
        return False
    key = ATTEMPT.encode() + b"="
    return any(
        entry.startswith(key) and mark in entry[len(key) :].split() for entry in block.split(b"\0")
    )


def _marked_elsewhere(pid: int, mark: str) -> bool:
    if Path("/proc/self").exists():
        return False
    import psutil

    try:
        return mark in psutil.Process(pid).environ().get(ATTEMPT, "").split()
    except (psutil.Error, OSError):
        return False
