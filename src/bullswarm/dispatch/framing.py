"""Bytes of a growing file to JSON objects, in bounded memory whatever comes.

Reports say: lines of hundreds of megabytes, several objects on one line, one object over two, NUL
bytes, characters cut anywhere. Each is counted and noted; none ends the run.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

MAX_LINE = 4 * 1024 * 1024
"""A longer line is dropped to its end, and counted as truncated."""

MAX_JOINED = 1024 * 1024
_decode = msgspec.json.decode
_scanner = json.JSONDecoder()


class Lines:
    """Splits bytes into lines, however they are cut. ``truncated`` counts lines over the bound."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self.truncated = 0
        self._max = max_line
        self._parts: list[bytes] = []
        self._size = 0
        self._dropping = False

    def feed(self, data: bytes) -> list[bytes]:
        """The complete lines that ``data`` finishes, without their newlines."""
        pieces = data.split(b"\n")
        lines = []
        for piece in pieces[:-1]:
            if self._take(piece):
                lines.append(b"".join(self._parts))
            self._parts.clear()
            self._size = 0
            self._dropping = False
        self._take(pieces[-1])
        return lines

    def _take(self, piece: bytes) -> bool:
        if self._dropping:
            return False
        if self._size + len(piece) > self._max:
            self._dropping = True
            self._parts.clear()
            self.truncated += 1
            return False
        if piece:
            self._parts.append(piece)
            self._size += len(piece)
        return True

    def rest(self) -> bytes:
        """The last line where it has no newline."""
        rest = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return rest


class Objects:
    """JSON objects out of lines. ``bad`` counts lines that held none."""

    def __init__(self) -> None:
        self.bad = 0
        self._open: bytes | None = None

    def of(self, line: bytes) -> list[dict[str, Any]]:
        """The objects that this line holds or completes. A value that is no object is a bad
        line."""
        if not line.strip(b" \t\r\0"):
            return []
        found = _values(line)
        if found is not None:
            if self._open is not None:
                self.bad += 1
                self._open = None
            return self._objects(found)
        if self._open is not None:
            joined = self._open + line
            found = _values(joined)
            if found is not None:
                self._open = None
                return self._objects(found)
            if len(joined) <= MAX_JOINED:
                self._open = joined
                self.bad += 1
                return []
            self._open = None
        self.bad += 1
        if line.lstrip().startswith(b"{") and len(line) <= MAX_JOINED:
            self.bad -= 1
            self._open = line
        return []

    def finish(self) -> None:
        """There is no more; what is still open was never closed."""
        if self._open is not None:
            self.bad += 1
            self._open = None

    def _objects(self, values: list[Any]) -> list[dict[str, Any]]:
        objects = [value for value in values if isinstance(value, dict)]
        if len(objects) < len(values):
            self.bad += 1
        return objects


def _values(line: bytes) -> list[Any] | None:
    """Every JSON value on the line, or None where it is not (only) JSON."""
    try:
        return [_decode(line)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    text = line.decode("utf-8", "replace").replace("\0", "").strip()
    values = []
    at = 0
    try:
        while at < len(text):
            value, at = _scanner.raw_decode(text, at)
            values.append(value)
            while at < len(text) and text[at] in " \t\r,":
                at += 1
    except (ValueError, RecursionError):
        return values if values and isinstance(values[0], dict) else None
    return values or None
