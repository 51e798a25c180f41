"""Follow a file that another process writes: by offset, in chunks, with one descriptor."""

from __future__ import annotations

import os

CHUNK = 256 * 1024


class Tail:
    """New bytes of a growing file. The file may not be there yet."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd: int | None = None
        self._offset = 0

    def read(self) -> bytes:
        """At most one chunk of what is new; empty where nothing is."""
        if self._fd is None:
            try:
                self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return b""
        data = os.pread(self._fd, CHUNK, self._offset)
        self._offset += len(data)
        return data

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
