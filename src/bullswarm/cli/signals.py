"""Ctrl-C and TERM: the first asks the work to end and be recorded, the second kills at once."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any

from bullswarm.errors import BullswarmError


class Interrupts:
    """A context in which SIGINT and SIGTERM set a flag that the supervisor polls."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.count = 0
        self._old: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                self._old[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, old in self._old.items():
            signal.signal(number, old)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        self.count += 1
        if self.count == 1:
            with contextlib.suppress(OSError, RuntimeError):
                # The terminal may be gone (HUP), or the signal came in the middle of another line.
                print(
                    "\nbullswarm: ending the agent (again to kill it)", file=sys.stderr, flush=True
                )

    def cancelled(self) -> int:
        """0: go on. 1: end the work. 2 or more: kill it now."""
        return self.count

    @property
    def exit_code(self) -> int | None:
        """130 after Ctrl-C, 143 after TERM, None when nothing interrupted."""
        return None if self.signal is None else 128 + self.signal


class Interrupted(BullswarmError):
    """Raised by verbs that have nothing to record when they are interrupted."""

    exit_code = 130
