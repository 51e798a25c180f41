"""When a limit ends: the reset times that providers write, read over the zone database.

Every form is absolute, relative to ``now``, or a wall-clock time in a named zone (or this
machine's). What can't be read for certain is None: unknown, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo

import msgspec

from bullswarm.dispatch.notices.durations import read_duration
from bullswarm.dispatch.notices.zones import find_zone, instants, means_local, wall_now

SKEW = timedelta(minutes=5)
"""A time past by less than this means now: two clocks differ, or the minute was cut off."""

_FLAGS = re.ASCII | re.IGNORECASE
_LONGEST = 4000
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?(?![\d:])"
_YEAR = r"(?:,? ?(?P<year>20\d\d)(?![\d:]))?"

_EPOCH = re.compile(r"(\d{10}|\d{13})(?:\.\d+)?(?![\w:-])", _FLAGS)
_ISO = re.compile(
    r"(?P<date>\d{4}[-/]\d{1,2}[-/]\d{1,2})(?:(?:[T ]|, | at )(?P<time>\d{1,2}:\d{2}(?::\d{2})?)"
    r"(?:[.,]\d+)?(?P<zone> ?(?:Z|UTC|GMT)(?![\w/+-])| ?[+-]\d{2}:?\d{2}(?!\d))?)?",
    _FLAGS,
)
_DATE = re.compile(rf"{_MONTH} {_DAY}{_YEAR}", _FLAGS)
_DATE_DAY_FIRST = re.compile(rf"{_DAY} (?:of )?{_MONTH}{_YEAR}(?!\w)", _FLAGS)
_WEEKDAY = re.compile(
    r"(?P<weekday>mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?"
    r"|sat(?:urday)?|sun(?:day)?)(?!\w)\.?",
    _FLAGS,
)
_NEAR_DAY = re.compile(r"(?P<near>today|tomorrow)(?!\w)", _FLAGS)
_TIME = re.compile(
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?(?::(?P<second>\d{2})(?:\.\d+)?)? ?"
    r"(?P<half>[ap])(?:m(?!\w)|\.m\.?(?!\w))|(?P<hour24>\d{1,2}):(?P<minute24>\d{2})"
    r"(?::(?P<second24>\d{2}))?(?![\d:])(?: ?h(?!\w))?|(?P<word>noon|midnight)(?!\w)",
    _FLAGS,
)
_ZONE_PARENS = re.compile(r"\(([^()]{1,60})\)")
_ZONE_BARE = re.compile(
    r"[A-Za-z]+/[A-Za-z_]+(?:/[A-Za-z_]+)?(?:[+-]\d{1,2})?(?!\w)|(?:UTC|GMT) ?[+-]\d{1,2}(?::?\d\d)?"
    r"(?!\w)|[+-]\d{2}:?\d{2}(?!\d)|[A-Z]{2,5}(?=$|[\s.,;:)!·])|(?:local|your) time"
    r"|(?:[A-Z][a-z]+ ){1,2}[Tt]ime(?!\w)",
    re.ASCII,
)
_JOIN = re.compile(r"(?:[ ,@]|(?:at|on)(?!\w))+", _FLAGS)
_MORE_DATE = re.compile(r"[ ,]*(?:on )?(?:\d{1,4}[/.-]\d|20\d\d(?!\d))", _FLAGS)

_ANCHOR = re.compile(
    r"(?<![a-z])(?P<word>resets?|resetting|retry(?:ing)?|try (?:it )?again|again|available|renews?"
    r"|refresh(?:es)?|until|wait|come back|unlocks?)(?P<key>(?:[_ -]?(?:at|on|in|after|delay|time"
    r"|date|timestamp|seconds|secs|sec|ms)(?![a-z]))*)(?P<mark>[\"' ]*[:=][\"' ]*)?",
    _FLAGS,
)
_FILLER = re.compile(
    r"(?:[ :=\"'~]|(?:at|on|in|after|by|is|will|be|again|available|about|approximately|around"
    r"|the|for|your|limit|quota|usage|time)(?!\w)(?!/))+",
    _FLAGS,
)
_SECONDS = re.compile(r"(\d{1,9}(?:\.\d+)?)(?![\w.:/-])(?! ?[a-z])", _FLAGS)
_KEY_SECONDS = re.compile(r"(?:seconds|secs|sec|ms)$|(?:after|delay)$", _FLAGS)
_BAR = re.compile(r"\| ?(\d{10}|\d{13})(?!\d)")
_NOISE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\u200b-\u200f\u2060\ufeff`*│┃║]")


class Candidate(msgspec.Struct, frozen=True):
    """A time expression found in a text. ``at`` None: its shape is right, its value isn't.

    ``rank``: how much of the instant the text itself says (5 absolute .. 1 a bare time of day).
    """

    rank: int
    at: datetime | None
    end: int = 0


def parse_reset(text: str, now: datetime, local_tz: tzinfo | None = None) -> datetime | None:
    """The UTC instant at which ``text`` says a limit ends, never before ``now``; None if unknown.

    ``now`` is aware. ``local_tz`` stands for times without a zone (None: this machine's zone). The
    most complete expression wins, so a full date is never cut down to its time of day. A time past
    by less than ``SKEW`` is ``now``; a time of day, weekday or date without a year is its next
    occurrence; a full date that is long past is None.
    """
    now = now.astimezone(UTC)
    try:
        found = _find(plain(text), now, local_tz)
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
    start = re.match(r"(?:(?:in|after|at|on)(?!\w))? ?", text, _FLAGS)
    candidate = _expression(text, start.end() if start else 0, now, local)
    return candidate if candidate and not text[candidate.end :].strip(" .!") else None


def _elsewhere(text: str, now: datetime, local: tzinfo | None) -> Candidate | None:
    """A complete date to come, whatever words precede it. Dates at the time of writing are the
    time stamps of logs."""
    for pattern in (_DATE, _DATE_DAY_FIRST, _ISO):
        for match in pattern.finditer(text):
            candidate = _expression(text, match.start(), now, local)
            if candidate and candidate.rank == 5 and candidate.at and candidate.at > now + SKEW:
                return candidate
    return None


def _expression(text: str, start: int, now: datetime, local: tzinfo | None) -> Candidate | None:
    epoch = _EPOCH.match(text, start)
    if epoch:
        return Candidate(5, _from_epoch(epoch[1]), epoch.end())
    iso = _ISO.match(text, start)
    if iso:
        return _read_iso(iso, text, local)
    duration = read_duration(text, start)
    if duration:
        at = now + duration.length if duration.length > timedelta(0) else None
        return Candidate(3, at, duration.end)
    return _read_wall(text, start, now, local)


def _read_iso(match: re.Match[str], text: str, local: tzinfo | None) -> Candidate | None:
    if match["time"] is None:
        return None
    zone, end, known = local, match.end(), True
    if match["zone"]:
        zone = find_zone(match["zone"])
        known = zone is not None
    else:
        named = _read_zone(text, end, local)
        if named:
            zone, known, end = named
    if not known:
        return Candidate(5, None, end)
    year, month, day = (int(part) for part in re.split(r"[-/]", match["date"]))
    hour, minute, second = ([int(part) for part in match["time"].split(":")] + [0])[:3]
    return Candidate(5, instants(date(year, month, day), time(hour, minute, second), zone)[0], end)


def _read_zone(
    text: str, start: int, local: tzinfo | None
) -> tuple[tzinfo | None, bool, int] | None:
    """The zone written at ``start``: (zone, known, end), or None where no zone is written."""
    while start < len(text) and text[start] in " ,":
        start += 1
    match = _ZONE_PARENS.match(text, start)
    name = match[1] if match else ""
    if match is None:
        match = _ZONE_BARE.match(text, start)
        name = match[0] if match else ""
    if match is None:
        return None
    if means_local(name) or read_duration(re.sub(r"^in ", "", name.strip())):
        return local, True, match.end()
    zone = find_zone(name)
    return zone, zone is not None, match.end()


def _read_wall(text: str, start: int, now: datetime, local: tzinfo | None) -> Candidate | None:
    """A date, weekday, time and zone, in whatever order they stand."""
    got: dict[str, str] = {}
    zone, known, end, at = local, True, start, start
    zoned = False
    while True:
        for pattern in (_DATE, _DATE_DAY_FIRST, _WEEKDAY, _NEAR_DAY, _TIME):
            match = pattern.match(text, at)
            parts = {k: v for k, v in match.groupdict().items() if v} if match else {}
            if match and not parts.keys() & got.keys():
                got |= parts
                at = end = match.end()
                break
        else:
            named = _read_zone(text, at, local) if got and not zoned else None
            if named is None:
                break
            zone, known, at = named
            zoned, end = True, at
        joined = _JOIN.match(text, at)
        at = joined.end() if joined else at
    if not got:
        return None
    rank = _rank(got)
    if not known or _MORE_DATE.match(text, end):
        return Candidate(rank, None, end)
    return Candidate(rank, _resolve(got, now, zone), end)


def _rank(got: dict[str, str]) -> int:
    if "month" in got:
        return 5 if "year" in got else 4
    return 2 if "weekday" in got or "near" in got else 1


def _resolve(got: dict[str, str], now: datetime, zone: tzinfo | None) -> datetime | None:
    at = _read_time(got)
    today = wall_now(now, zone).date()
    dates = list(_dates(got, today))
    if at is None:
        # The start of the named day; of a day that has begun nothing is known.
        if _has_time(got) or today in dates[:1]:
            return None
        at = time(0)
        dates = [day for day in dates if day > today]
    if "year" in got:
        return instants(dates[0], at, zone)[0]
    for day in dates:
        for instant in instants(day, at, zone):
            if instant > now - SKEW:
                return instant
    return None


def _dates(got: dict[str, str], today: date) -> Iterator[date]:
    """The days that a partial date may mean, soonest first."""
    if "month" in got:
        month, day = _MONTHS.index(got["month"][:3].lower()) + 1, int(got["day"])
        if "year" in got:
            yield date(int(got["year"]), month, day)
            return
        for year in (today.year - 1, today.year, today.year + 1):
            if day == 29 and month == 2 and (year % 4 or (year % 100 == 0 and year % 400)):
                continue
            yield date(year, month, day)
    elif "near" in got:
        yield today + timedelta(days=got["near"].lower() == "tomorrow")
    else:
        want = _DAYS.index(got["weekday"][:3].lower()) if "weekday" in got else None
        for days in range(-1, 9):
            day_of = today + timedelta(days=days)
            if want is None or day_of.weekday() == want:
                yield day_of


def _has_time(got: dict[str, str]) -> bool:
    return bool(got.keys() & {"hour", "hour24", "word"})


def _read_time(got: dict[str, str]) -> time | None:
    if "word" in got:
        return time(12 if got["word"].lower() == "noon" else 0)
    if "hour24" in got:
        return time(int(got["hour24"]), int(got["minute24"]), int(got.get("second24", 0)))
    if "hour" not in got:
        return None
    hour, afternoon = int(got["hour"]), got["half"].lower() == "p"
    if hour > 12 or (hour == 0 and afternoon):
        raise ValueError("no such hour on a twelve-hour clock")
    hour = hour % 12 + (12 if afternoon else 0)
    return time(hour, int(got.get("minute", 0)), int(got.get("second", 0)))
