"""Which bench a notice puts on a pool, until when, and why, in words. Pure. (routing rules:
quarantine; concepts: limits and failed pools)"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

import msgspec

from bullswarm.dispatch.types import Notice
from bullswarm.routing.types import Pool, Quarantine, Reading, Window

Mode = Literal["quarantine", "return", "wait"]
Source = Literal["named", "meter", "guess", "contradicted"]

FALLBACK = timedelta(minutes=30)
"""A quota bench whose end nobody knows."""
AUTH_BENCH = timedelta(minutes=10)
"""A dead credential is tried again after this."""
CONTRADICTED = timedelta(minutes=10)
"""The bench of a notice that a fresh meter speaks against."""
FRESH = timedelta(minutes=5)
"""A reading this close to the notice speaks of the same moment."""
ROOM_PCT = 90.0
"""A window read below this is not spent."""
LONGEST = timedelta(days=31)
THROTTLE_MIN_S, THROTTLE_MAX_S = 120.0, 3600.0
"""A throttle benches only for a named wait over two minutes, and for an hour at most."""

_SLACK = timedelta(hours=1)
_WINDOW_WORDS = {"five_hour": "5-hour", "model": "model", "balance": "balance"}


class Bench(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A bench to be stored. ``source`` is what ``until`` rests on: the reset the provider
    ``named``, the ``meter``'s known 5-hour reset, a ``guess``, or a notice ``contradicted`` by
    the meter. ``cut``: the named reset was longer than the pool's longest window and was cut to
    it. ``family`` is set where only one model family is benched."""

    pool: str
    kind: Literal["quota", "auth", "throttle", "probe"]
    until: datetime
    source: Source
    reason: str
    since: datetime
    family: str | None = None
    cut: bool = False

    def quarantine(self) -> Quarantine:
        """The record that routing reads."""
        return Quarantine(
            pool=self.pool,
            kind=self.kind,
            until=self.until,
            reason=self.reason,
            source=self.source,
            since=self.since,
            family=self.family,
        )


def bench(
    notice: Notice,
    *,
    pool: Pool | str,
    now: datetime,
    reading: Reading | None = None,
    mode: Mode = "quarantine",
) -> Bench | None:
    """The bench that follows, or None where nothing is stored.

    ``reading`` is the newest reading of the pool's meter, read again after the notice where that
    was possible. In ``return`` mode nothing is remembered, but a pool whose meter can't be read
    counts as full until a reset that is known.
    """
    name = pool if isinstance(pool, str) else pool.name
    if notice.kind == "auth" and mode != "return":
        reason = f"sign-in failure: {_quote(notice)}; tried again after 10 minutes"
        return Bench(
            pool=name, kind="auth", until=now + AUTH_BENCH, source="guess", reason=reason, since=now
        )
    if notice.kind == "throttle" and mode != "return":
        wait = notice.wait_s or 0.0
        if wait <= THROTTLE_MIN_S:
            return None
        until = now + timedelta(seconds=min(wait, THROTTLE_MAX_S))
        reason = f"too many requests: {_quote(notice)}; the provider named a wait"
        return Bench(
            pool=name, kind="throttle", until=until, source="named", reason=reason, since=now
        )
    if notice.kind != "quota":
        return None
    family = _family(notice, pool)
    what = f"usage limit{_scope(notice, family)}: {_quote(notice)}"
    if mode == "return":
        return _only_known(notice, name, now, reading, family, what)
    against = contradiction(notice, reading, now, family)
    if against is not None:
        until = now + CONTRADICTED
        if notice.resets_at is not None:
            until = max(now, min(until, notice.resets_at))
        reason = f"{what}; but {against}: benched for 10 minutes at most, then tried again"
        return Bench(
            pool=name,
            kind="quota",
            until=until,
            source="contradicted",
            reason=reason,
            since=now,
            family=family,
        )
    source: Source
    cut = False
    if notice.resets_at is not None:
        until, source = max(notice.resets_at, now), "named"
        longest = longest_window(pool, reading)
        cut = until > now + longest + _SLACK
        if cut:
            words = f"it named {_stamp(until)}, longer than the pool's longest window: cut to it"
            until = now + longest
        else:
            words = f"until {_stamp(until)}, the reset it named"
    else:
        meter = _five_hour_reset(reading, now)
        if meter is not None:
            until, source = meter, "meter"
            words = f"it named no reset: until {_stamp(until)}, the known 5-hour reset"
        else:
            until, source = now + FALLBACK, "guess"
            words = "it named no reset and none is known: a guess of 30 minutes"
    return Bench(
        pool=name,
        kind="quota",
        until=until,
        source=source,
        reason=f"{what}; {words}",
        since=now,
        family=family,
        cut=cut,
    )


def longest_window(pool: Pool | str, reading: Reading | None) -> timedelta:
    """The longest window the pool is known to have; 31 days where none is known."""
    lengths = [_length(window) for window in (reading.windows if reading else ())]
    if not isinstance(pool, str) and pool.pacing is not None:
        lengths.append(timedelta(days=7) if pool.pacing == "weekly" else LONGEST)
    return min(max(lengths), LONGEST) if lengths else LONGEST


def contradiction(
    notice: Notice, reading: Reading | None, now: datetime, family: str | None = None
) -> str | None:
    """What a fresh meter says against a usage limit, in words, or None where it doesn't: it was
    read within five minutes, and every window the notice can mean is below 90%."""
    if reading is None or reading.source != "live" or reading.observed_at is None:
        return None
    if abs(now - reading.observed_at) > FRESH:
        return None
    windows = [w for w in reading.windows if w.family is None or w.family == family]
    if family is not None:
        # The meter knows this family only where it has a window for it.
        windows = [w for w in windows if w.family == family]
    if notice.window in ("five_hour", "weekly", "monthly", "daily", "balance"):
        windows = [w for w in windows if w.kind == notice.window]
    if not windows or any(w.used_pct is None or w.used_pct >= ROOM_PCT for w in windows):
        return None
    shown = ", ".join(f"{w.used_pct:.0f}% of the {_name(w)} window" for w in windows)
    minutes = max(0, round(abs((now - reading.observed_at).total_seconds()) / 60))
    when = (
        "just now"
        if minutes == 0
        else f"{minutes} min {'before' if reading.observed_at <= now else 'after'}"
    )
    return f"the meter, read {when}, shows {shown}"


def _only_known(
    notice: Notice,
    name: str,
    now: datetime,
    reading: Reading | None,
    family: str | None,
    what: str,
) -> Bench | None:
    fresh = (
        reading is not None
        and reading.source == "live"
        and reading.observed_at is not None
        and abs(now - reading.observed_at) <= FRESH
        and any(w.used_pct is not None for w in reading.windows)
    )
    if fresh:
        return None
    source: Source = "named"
    until = notice.resets_at
    if until is None:
        until, source = _known_reset(notice, reading, now), "meter"
    if until is None or until <= now:
        return None
    whose = "the reset it named" if source == "named" else "the reset of an earlier reading"
    return Bench(
        pool=name,
        kind="quota",
        until=until,
        source=source,
        reason=f"{what}; its meter can't be read: full until {_stamp(until)}, {whose}",
        since=now,
        family=family,
    )


def _known_reset(notice: Notice, reading: Reading | None, now: datetime) -> datetime | None:
    if reading is None:
        return None
    ahead = [w for w in reading.windows if w.resets_at is not None and w.resets_at > now]
    named = [w for w in ahead if w.kind == notice.window]
    if named:
        return named[0].resets_at
    return _five_hour_reset(reading, now)


def _five_hour_reset(reading: Reading | None, now: datetime) -> datetime | None:
    for window in reading.windows if reading else ():
        if window.kind == "five_hour" and window.family is None and window.resets_at is not None:
            return window.resets_at if window.resets_at > now else None
    return None


def _family(notice: Notice, pool: Pool | str) -> str | None:
    """The family as the pool's models name it. A family that none of its models has would bench
    nothing, and the limit would be run into again: then the whole pool is meant."""
    family = notice.family
    if family is None or isinstance(pool, str) or not pool.models:
        return family
    for model in pool.models:
        if model.family and model.family.lower() == family:
            return model.family
    for model in pool.models:
        if model.family and (family == model.name.lower() or family in model.name.lower()):
            return model.family
    return None


def _length(window: Window) -> timedelta:
    if window.kind == "monthly":
        return LONGEST
    return timedelta(minutes=window.minutes)


def _scope(notice: Notice, family: str | None) -> str:
    window = notice.window if notice.window != "model" else None
    parts = [_WINDOW_WORDS.get(window, window) if window else "", family or notice.family or ""]
    words = " ".join(part for part in parts if part)
    return f" ({words})" if words else ""


def _name(window: Window) -> str:
    kind = {"five_hour": "5-hour", "other": "usage"}.get(window.kind, window.kind)
    return f"{kind} {window.family}" if window.family else kind


def _quote(notice: Notice) -> str:
    words = " ".join(notice.text.split())
    return f'"{words if len(words) <= 160 else words[:157] + "..."}"'


def _stamp(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M} UTC"
