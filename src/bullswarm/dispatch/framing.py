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
"""How many characters of an object over several lines are kept until its end must have come."""

MAX_TRIES = 100
FEW_LINES = 8
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
    """JSON objects out of lines. ``bad`` counts lines that held none, ``tries`` how often the
    object that is open now was read again."""

    def __init__(self) -> None:
        self.bad = 0
        self.tries = 0
        self._open: list[str] = []
        self._size = 0
        self._depth = 0

    def of(self, line: bytes) -> list[dict[str, Any]]:
        """The objects that this line holds or completes. A value that is no object is a bad
        line."""
        if not line.strip(b" \t\r\0"):
            return []
        values, rest = _values(line)
        if not self._open:
            return self._took(values, rest)
        if not rest and any(isinstance(value, dict) for value in values):
            # It stands alone: what is open was never closed.
            self.finish()
            return self._took(values, rest)
        self._keep(_text(line))
        if self._depth <= 0 or len(self._open) <= FEW_LINES:
            # Only where it may be whole: reading it again at every line costs the square.
            self.tries += 1
            joined, left = _values("".join(self._open))
            if joined:
                self._drop()
                return self._took(joined, left)
        if self._size > MAX_JOINED or self.tries > MAX_TRIES:
            self.finish()
        return []

    def finish(self) -> None:
        """There is no more; what is still open was never closed."""
        self.bad += len(self._open)
        self._drop()

    def _took(self, values: list[Any], rest: str) -> list[dict[str, Any]]:
        objects = [value for value in values if isinstance(value, dict)]
        if rest.startswith("{") and len(rest) <= MAX_JOINED:
            self._keep(rest)
        elif rest or len(objects) < len(values):
            self.bad += 1
        return objects

    def _keep(self, text: str) -> None:
        self._open.append(text)
        self._size += len(text)
        self._depth += text.count("{") - text.count("}")

    def _drop(self) -> None:
        self._open.clear()
        self._size = self._depth = self.tries = 0


def _values(line: bytes | str) -> tuple[list[Any], str]:
    """Every JSON value on the line, and what follows them that is none."""
    try:
        return [_decode(line)], ""
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    text = _text(line)
    values: list[Any] = []
    at = 0
    while at < len(text):
        try:
            value, at = _scanner.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        values.append(value)
        while at < len(text) and text[at] in " \t\r,":
            at += 1
    if "\\ud" in text.lower():
        values = [_whole(value) for value in values]
    return values, text[at:]


def _text(line: bytes | str) -> str:
    text = line if isinstance(line, str) else line.decode("utf-8", "replace")
    return text.replace("\0", "").strip(" \t\r\ufeff")


def _whole(value: Any) -> Any:
    """The value without halves of surrogate pairs, which nobody could write down again."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole(item) for item in value]
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return value
