"""End a worker with everything it started: its session, and what fled into sessions of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from bullswarm.dispatch import table
from bullswarm.dispatch.spawn import alive, reap
from bullswarm.dispatch.types import Worker

KILL_S = 3.0
"""How long after KILL the processes may take to be gone."""

_STEP_S = 0.02


def members(worker: Worker) -> tuple[int, ...]:
    """The live processes of the attempt: those in the worker's session, and those elsewhere that
    carry its mark. Never ourselves."""
    return table.now().of(worker)


def end_group(worker: Worker, grace_s: float) -> tuple[int, ...]:
    """TERM, at most ``grace_s`` seconds of grace, then KILL. Gives what still runs after all."""
    ending = Ending(worker, grace_s)
    while not ending.step():
        time.sleep(_STEP_S)
    return ending.survivors


class Ending:
    """The end of a worker's processes, step by step, so that others can be watched meanwhile.

    ``leave_s``: for so long they may leave by themselves first. ``told`` are the processes that had
    to be told, ``killed`` says whether KILL was needed.
    """

    def __init__(self, worker: Worker, grace_s: float, *, leave_s: float = 0.0) -> None:
        self.worker = worker
        self.survivors: tuple[int, ...] = ()
        self.killed = False
        self.told: set[int] = set()
        # A look from before this moment says nothing about what is left.
        self._since = time.monotonic()
        self._term_at = self._since + leave_s
        self._kill_at = self._term_at + grace_s
        self._give_up_at = self._kill_at + KILL_S
        self._asked = False
        if leave_s <= 0:
            self._asked = self._tell_group(signal.SIGTERM if grace_s > 0 else signal.SIGKILL)

    def kill(self) -> None:
        """No more grace."""
        self._kill_at = min(self._kill_at, time.monotonic())
        self._give_up_at = self._kill_at + KILL_S

    def step(self) -> bool:
        """True when nothing is left, or nothing more can be done."""
        reap(self.worker)
        seen = table.look(self._since)
        if seen is None:
            return False
        left = seen.of(self.worker)
        now = time.monotonic()
        if not left or now >= self._give_up_at:
            # It may have ended between the two looks: in a program that goes on it would stay.
            reap(self.worker)
            self.survivors = left
            return True
        if now >= self._kill_at:
            # Again at every step: a process may have been started since.
            self._tell(signal.SIGKILL, left, grouped=self._tell_group(signal.SIGKILL))
        elif now >= self._term_at:
            # Once each: a second TERM means "at once" to many.
            new = tuple(pid for pid in left if pid not in self.told)
            self._asked = self._asked or self._tell_group(signal.SIGTERM)
            self._tell(signal.SIGTERM, new, grouped=self._asked)
        self._since = time.monotonic()
        return False

    def _tell_group(self, number: signal.Signals) -> bool:
        """Tell the worker's group as one, which no fork escapes. Only while its leader is there is
        the group's number surely its own."""
        if not alive(self.worker):
            return False
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.worker.pid, number)
            self.told.add(self.worker.pid)
            self.killed = self.killed or number == signal.SIGKILL
            return True
        return False

    def _tell(self, number: signal.Signals, pids: tuple[int, ...], *, grouped: bool) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if not grouped or os.getpgid(pid) != self.worker.pid:
                    os.kill(pid, number)
                    self.killed = self.killed or number == signal.SIGKILL
            self.told.add(pid)
