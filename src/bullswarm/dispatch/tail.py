"""Follow a file that another process writes: by offset, in chunks, with one descriptor."""

from __future__ import annotations

import os

CHUNK = 256 * 1024


class Tail:
    """New bytes of a growing file. The file may not be there yet, or be empty for ever."""

    def __init__(self, path: str, *, from_end: bool = False) -> None:
        self._path = path
        self._fd: int | None = None
        self._offset = 0
        self._end: int | None = None
        if from_end:
            self._offset = self._size()

    def read(self) -> bytes:
        """At most one chunk of what is new; empty where nothing is."""
        try:
            new = self._size() - self._offset
            if new <= 0:
                return b""
            if self._fd is None:
                self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            data = os.pread(self._fd, min(new, CHUNK), self._offset)
        except OSError:
            # Not there yet, or no descriptor free at the moment: the next look may have it.
            return b""
        self._offset += len(data)
        return data

    def read_last(self) -> bytes:
        """What is new, where it is more than a chunk only the end of it."""
        self._offset = max(self._offset, self._size() - CHUNK)
        return self.read()

    def stop(self) -> None:
        """Read no further than the file goes now."""
        if self._end is None:
            self._end = self._size()

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _size(self) -> int:
        if self._end is not None:
            return self._end
        try:
            # Paths as strings: this is asked many times a second.
            where = self._path if self._fd is None else self._fd
            return os.stat(where).st_size  # noqa: PTH116
        except OSError:
            return 0
