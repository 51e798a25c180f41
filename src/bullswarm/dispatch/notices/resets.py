"""When a limit ends: the reset times that providers write, read over the zone database.

Every form is absolute, relative to ``now``, or a wall-clock time in a named zone (or this
machine's). What can't be read for certain is None: unknown, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo

from bullswarm.dispatch.notices.durations import read_duration
from bullswarm.dispatch.notices.wall import (
    DATE,
    DATE_DAY_FIRST,
    FLAGS,
    ISO,
    SKEW,
    Candidate,
    read_iso,
    read_wall,
)

_LONGEST = 4000
_EPOCH = re.compile(r"(\d{10}|\d{13})(?:\.\d+)?(?![\w:-])", FLAGS)
_ANCHOR = re.compile(
    r"(?<![a-z])(?P<word>resets?|resetting|retry(?:ing)?|try (?:it )?again|again|available|renews?"
    r"|refresh(?:es)?|until|wait|come back|unlocks?|regain access)"
    r"(?P<key>(?:[_ -]?(?:at|on|in|after|delay|time|date|timestamp|seconds|secs|sec|ms)(?![a-z]))*)"
    r"(?P<mark>[\"' ]*[:=][\"' ]*)?",
    FLAGS,
)
_FILLER = re.compile(
    r"(?:[ :=\"'~]|(?:at|on|in|after|by|is|will|be|again|available|about|approximately|around"
    r"|the|for|your|limit|quota|usage|time|explicit|delay|of|another)(?!\w)(?!/))+",
    FLAGS,
)
_SECONDS = re.compile(r"(\d{1,9}(?:\.\d+)?)(?![\w.:/-])(?! ?[a-z])", FLAGS)
_KEY_SECONDS = re.compile(r"(?:seconds|secs|sec|ms)$|(?:after|delay)$", FLAGS)
_BAR = re.compile(r"\| ?(\d{10}|\d{13})(?!\d)")
_NOISE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\u200b-\u200f\u2060\ufeff`*│┃║]")


def parse_reset(text: str, now: datetime, zone: tzinfo | None = None) -> datetime | None:
    """The UTC instant at which ``text`` says a limit ends, never before ``now``; None if unknown.

    ``now`` is aware. ``zone`` stands for times without a zone (None: this machine's zone). The
    most complete expression wins, so a full date is never cut down to its time of day. A time past
    by less than ``SKEW`` is ``now``; a time of day, weekday or date without a year is its next
    occurrence; a date that is long past, or nearer in the past than ahead, is None.
    """
    now = now.astimezone(UTC)
    try:
        found = _find(plain(text), now, zone)
    except (OverflowError, ValueError, OSError):
        return None
    if found is None or found.at is None or found.at <= now - SKEW:
        return None
    return max(found.at, now)


def parse_retry_after(value: str | float | None, now: datetime) -> datetime | None:
    """The instant of a ``Retry-After`` header: seconds, a compact duration, or an HTTP date.

    Zero and less say nothing (measured: servers send 0 and go on refusing): None.
    """
    if value is None:
        return None
    now = now.astimezone(UTC)
    text = str(value).strip()
    try:
        if re.fullmatch(r"\d+(?:\.\d+)?", text, re.ASCII):
            seconds = float(text)
            # A server that sends an instant where seconds belong means the instant.
            if seconds >= 1e9:
                return _not_past(_from_epoch(text), now)
            return now + timedelta(seconds=seconds) if seconds > 0 else None
        duration = read_duration(text)
        if duration is not None and duration.end == len(text):
            return now + duration.length if duration.length > timedelta(0) else None
        if not re.search(r"[A-Za-z]{3}", text):
            return parse_reset(text, now, UTC)
        from email.utils import parsedate_to_datetime

        at = parsedate_to_datetime(text)
    except (OverflowError, ValueError, TypeError, IndexError, OSError):
        return None
    return _not_past(at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC), now)


def from_epoch(value: float | str | None) -> datetime | None:
    """An epoch in seconds or milliseconds as a UTC instant; None for anything else."""
    if value is None or isinstance(value, bool):
        return None
    text = str(value).strip()
    match = re.fullmatch(r"(\d{10}|\d{13})(?:\.\d+)?", text, re.ASCII)
    return _from_epoch(match[1]) if match else None


def plain(text: str) -> str:
    """The text on one line: whitespace of every kind and line breaks become single spaces, curly
    apostrophes straight ones; colour codes, zero-width marks and frame lines go."""
    text = _NOISE.sub("", text[:_LONGEST])
    for curly in "\u2019\u2018\u02bc\u00b4":
        text = text.replace(curly, "'")
    return " ".join(text.split())


def _not_past(at: datetime, now: datetime) -> datetime | None:
    return max(at, now) if at > now - SKEW else None


def _from_epoch(digits: str) -> datetime:
    value = float(digits)
    return datetime.fromtimestamp(value / 1000 if value >= 1e12 else value, UTC)


def _find(text: str, now: datetime, local: tzinfo | None) -> Candidate | None:
    best: Candidate | None = None
    for candidate in _candidates(text, now, local):
        if best is None or candidate.rank > best.rank:
            best = candidate
    return best or _whole(text, now, local) or _elsewhere(text, now, local)


def _candidates(text: str, now: datetime, local: tzinfo | None) -> Iterator[Candidate]:
    bar = _BAR.search(text)
    if bar:
        yield Candidate(5, _from_epoch(bar[1]))
    for anchor in _ANCHOR.finditer(text):
        start = anchor.end()
        number = _SECONDS.match(text, start)
        if number and anchor["mark"] and _KEY_SECONDS.search(anchor["key"]):
            scale = 1000 if anchor["key"].lower().endswith("ms") else 1
            seconds = float(number[1]) / scale
            if 0 < seconds < 1e9:
                yield Candidate(3, now + timedelta(seconds=seconds))
                continue
        filler = _FILLER.match(text, start)
        candidate = _expression(text, filler.end() if filler else start, now, local)
        if candidate:
            yield candidate


def _whole(text: str, now: datetime, local: tzinfo | None) -> Candidate | None:
    """The text is nothing but a time."""
    start = re.match(r"(?:(?:in|after|at|on)(?!\w))? ?", text, FLAGS)
    candidate = _expression(text, start.end() if start else 0, now, local)
    return candidate if candidate and not text[candidate.end :].strip(" .!") else None


def _elsewhere(text: str, now: datetime, local: tzinfo | None) -> Candidate | None:
    """A complete date to come, whatever words precede it. Dates at the time of writing are the
    time stamps of logs."""
    for pattern in (DATE, DATE_DAY_FIRST, ISO):
        for match in pattern.finditer(text):
            candidate = _expression(text, match.start(), now, local)
            if candidate and candidate.rank == 5 and candidate.at and candidate.at > now + SKEW:
                return candidate
    return None


def _expression(text: str, start: int, now: datetime, local: tzinfo | None) -> Candidate | None:
    epoch = _EPOCH.match(text, start)
    if epoch:
        return Candidate(5, _from_epoch(epoch[1]), epoch.end())
    iso = ISO.match(text, start)
    if iso:
        return read_iso(iso, text, local)
    duration = read_duration(text, start)
    if duration:
        at = now + duration.length if duration.length > timedelta(0) else None
        return Candidate(3, at, duration.end)
    return read_wall(text, start, now, local)
