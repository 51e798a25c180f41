"""Lengths of time as providers write them: "2 days 17 hours 14 minutes", "2h42m39s", "34.07s"."""

from __future__ import annotations

import re
from datetime import timedelta

import msgspec

_FLAGS = re.ASCII | re.IGNORECASE
_UNIT_SECONDS = {"w": 604800.0, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(
    r"(?P<n>\d{1,9}(?:\.\d{1,12})?|an?(?= )) ?(?P<unit>weeks?|w|days?|d|hours?|hrs?|hr|h"
    r"|milliseconds?|ms|minutes?|mins?|m|seconds?|secs?|s)(?![a-z])",
    _FLAGS,
)
_JOIN = re.compile(r"[ ,]*(?:and )?", _FLAGS)
_UNDER = re.compile(r"less than ", _FLAGS)
LONGEST = timedelta(days=3660)


class Duration(msgspec.Struct, frozen=True):
    """A length and where its expression ends in the text."""

    length: timedelta
    end: int


def read_duration(text: str, start: int = 0) -> Duration | None:
    """The duration written at ``start``, each unit once; None where none is, or over ten years."""
    under = _UNDER.match(text, start)
    at = under.end() if under else start
    end, seconds = at, 0.0
    seen: set[str] = set()
    while True:
        part = _PART.match(text, at)
        if part is None:
            break
        unit = "ms" if part["unit"].lower().startswith(("ms", "milli")) else part["unit"][0].lower()
        if unit in seen:
            break
        seen.add(unit)
        count = 1.0 if part["n"][0] in "aA" else float(part["n"])
        seconds += count * _UNIT_SECONDS[unit]
        end = part.end()
        joined = _JOIN.match(text, end)
        at = joined.end() if joined else end
    if not seen or seconds > LONGEST.total_seconds():
        return None
    return Duration(timedelta(seconds=seconds), end)
