"""The files of an attempt: the prompt, the answer, the raw capture, and what lets another process
find the worker."""

from __future__ import annotations

import contextlib
import secrets
from datetime import datetime
from pathlib import Path

import msgspec


class AttemptFiles(msgspec.Struct, frozen=True):
    """Paths of one attempt's files in ``folder``."""

    folder: Path
    stamp: str
    stream_format: str = "jsonl"

    @property
    def task(self) -> Path:
        return self.folder / f"task-{self.stamp}.md"

    @property
    def out(self) -> Path:
        return self.folder / f"out-{self.stamp}.md"

    @property
    def stream(self) -> Path:
        """The CLI's raw capture: ``stream-*.jsonl`` for JSON events, ``stdout-*.log`` otherwise."""
        if self.stream_format == "jsonl":
            return self.folder / f"stream-{self.stamp}.jsonl"
        return self.folder / f"stdout-{self.stamp}.log"

    @property
    def stderr(self) -> Path:
        return self.folder / f"stderr-{self.stamp}.log"

    @property
    def exit(self) -> Path:
        return self.folder / f"exit-{self.stamp}"

    @property
    def pid(self) -> Path:
        return self.folder / f"pid-{self.stamp}"

    @property
    def before(self) -> Path:
        return self.folder / f"before-{self.stamp}.json"

    def tidy(self) -> None:
        """Take away what only the attempt itself needed, and a stderr that is empty."""
        for path in (self.exit, self.pid, self.before):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            if self.stderr.stat().st_size == 0:
                self.stderr.unlink()


def new_stamp(now: datetime) -> str:
    """A stamp that sorts by time and is unique among processes that start in one second."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
