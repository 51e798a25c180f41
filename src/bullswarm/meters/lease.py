"""One live read of a meter at a time, over all processes on this machine."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from bullswarm.meters.history import file_name


class Leases:
    """Exclusive locks by key, each a file in one folder; they end with the process that holds them.

    Keys are taken in order, so that two processes never wait for each other. Past ``patience_s``
    the rest is entered without: a stuck reader must not stop everybody's pick.
    """

    def __init__(self, folder: Path, keys: Iterable[str], patience_s: float = 6.0) -> None:
        self._folder = folder
        self._keys = sorted(set(keys))
        self._patience_s = patience_s
        self._held: list[int] = []

    def __enter__(self) -> Leases:
        deadline = time.monotonic() + self._patience_s
        try:
            self._folder.parent.mkdir(mode=0o700, exist_ok=True)
            self._folder.mkdir(mode=0o700, exist_ok=True)
            for key in self._keys:
                self._take(key, deadline)
        except OSError:
            # A home that can't be written still routes; it only loses the courtesy.
            pass
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for fd in self._held:
            os.close(fd)
        self._held.clear()

    def _take(self, key: str, deadline: float) -> None:
        fd = os.open(self._folder / file_name(key), os.O_RDWR | os.O_CREAT, 0o600)
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() >= deadline:
                    os.close(fd)
                    return
                time.sleep(0.05)
            else:
                self._held.append(fd)
                return
