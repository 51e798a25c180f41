"""Dates, weekdays, times of day and their zones, in whatever order a provider writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta, tzinfo

import msgspec

from bullswarm.dispatch.notices.durations import read_duration
from bullswarm.dispatch.notices.zones import find_zone, instants, means_local, wall_now

SKEW = timedelta(minutes=5)
"""A time past by less than this means now: two clocks differ, or the minute was cut off."""

AHEAD = timedelta(days=183)
"""A date without a year that lies further ahead is nearer in the past, so it is over: no window is
that long."""

FLAGS = re.ASCII | re.IGNORECASE
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?(?![\d:])"
_YEAR = r"(?:,? ?(?P<year>20\d\d)(?![\d:]))?"

ISO = re.compile(
    r"(?P<date>\d{4}[-/]\d{1,2}[-/]\d{1,2})(?:(?:[T ]|, | at )(?P<time>\d{1,2}:\d{2}(?::\d{2})?)"
    r"(?:[.,]\d+)?(?P<zone> ?(?:Z|UTC|GMT)(?![\w/+-])| ?[+-]\d{2}:?\d{2}(?!\d))?)?",
    FLAGS,
)
DATE = re.compile(rf"{_MONTH} {_DAY}{_YEAR}", FLAGS)
DATE_DAY_FIRST = re.compile(rf"{_DAY} (?:of )?{_MONTH}{_YEAR}(?!\w)", FLAGS)
_WEEKDAY = re.compile(
    r"(?P<weekday>mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?"
    r"|sat(?:urday)?|sun(?:day)?)(?!\w)\.?",
    FLAGS,
)
_NEAR_DAY = re.compile(r"(?P<near>today|tomorrow)(?!\w)", FLAGS)
_TIME = re.compile(
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?(?::(?P<second>\d{2})(?:\.\d+)?)? ?"
    r"(?P<half>[ap])(?:m(?!\w)|\.m\.?(?!\w))|(?P<hour24>\d{1,2}):(?P<minute24>\d{2})"
    r"(?::(?P<second24>\d{2}))?(?![\d:])(?: ?h(?!\w))?|(?P<word>noon|midnight)(?!\w)",
    FLAGS,
)
_ZONE_PARENS = re.compile(r"\(([^()]{1,60})\)")
_ZONE_BARE = re.compile(
    r"[A-Za-z]+/[A-Za-z_]+(?:/[A-Za-z_]+)?(?:[+-]\d{1,2})?(?!\w)|(?:UTC|GMT) ?[+-]\d{1,2}"
    r"(?::?\d\d)?(?!\w)|[+-]\d{2}:?\d{2}(?!\d)|[A-Z]{2,5}(?=$|[\s.,;:)!·])|(?:local|your) time"
    r"|(?:[A-Z][a-z]+ ){1,2}[Tt]ime(?!\w)|(?:Pacific|Mountain|Central|Eastern)(?!\w)",
    re.ASCII,
)
_JOIN = re.compile(r"(?:[ ,@]|(?:at|on)(?!\w))+", FLAGS)
_MORE_DATE = re.compile(r"[ ,]*(?:on )?(?:\d{1,4}[/.-]\d|20\d\d(?!\d))", FLAGS)


class Candidate(msgspec.Struct, frozen=True):
    """A time expression found in a text. ``at`` None: its shape is right, its value isn't.

    ``rank``: how much of the instant the text itself says (5 absolute .. 1 a bare time of day).
    """

    rank: int
    at: datetime | None
    end: int = 0


def read_iso(match: re.Match[str], text: str, local: tzinfo | None) -> Candidate | None:
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


def read_wall(text: str, start: int, now: datetime, local: tzinfo | None) -> Candidate | None:
    """A date, weekday, time and zone, in whatever order they stand."""
    got: dict[str, str] = {}
    zone, known, end, at = local, True, start, start
    zoned = False
    while True:
        for pattern in (DATE, DATE_DAY_FIRST, _WEEKDAY, _NEAR_DAY, _TIME):
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
                return instant if instant <= now + AHEAD else None
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
