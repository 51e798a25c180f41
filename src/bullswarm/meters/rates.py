"""Measured burn: percentage points per worker-minute, from readings paired with work. Pure.

Between two consecutive readings of one window the counter's rise is set against the worker-minutes
that bullswarm dispatched to the pool in that interval. Intervals without any are somebody else's
spend and count for nothing. A counter that went down, a reset that changed or passed, or another
account starts a new segment: that interval is left out. A rate is the quotient of two sums over all
counted intervals, each weighted by its age with a half-life of a week, so that a change of model or
plan is followed within days. The five-minute floor counts plain minutes, not weighted ones.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from bullswarm.meters.windows import same_reset
from bullswarm.routing.types import Rate, Reading, Window, WindowKind, Work

MIN_WORKER_MINUTES = 5.0
"""Below this many attributable worker-minutes there is no rate at all (routing rules)."""

HALF_LIFE_MINUTES = 7 * 1440.0

FamilyOf = Callable[[str], str | None]
_Key = tuple[WindowKind, str | None]


class Busy:
    """Cumulative worker-minutes over time: piecewise linear, built once, asked often."""

    def __init__(self, spans: Iterable[tuple[datetime, datetime]]) -> None:
        changes: dict[float, int] = {}
        for start, end in spans:
            if end <= start:
                continue
            changes[start.timestamp()] = changes.get(start.timestamp(), 0) + 1
            changes[end.timestamp()] = changes.get(end.timestamp(), 0) - 1
        self._times = sorted(changes)
        self._level: list[int] = []
        self._sums: list[float] = []
        level, total, last = 0, 0.0, 0.0
        for time in self._times:
            total += level * (time - last)
            level += changes[time]
            last = time
            self._sums.append(total)
            self._level.append(level)

    def minutes(self, start: datetime, end: datetime) -> float:
        """Worker-minutes between two instants (>= 0)."""
        return max(0.0, self._upto(end.timestamp()) - self._upto(start.timestamp())) / 60.0

    def _upto(self, time: float) -> float:
        i = bisect_right(self._times, time) - 1
        if i < 0:
            return 0.0
        return self._sums[i] + self._level[i] * (time - self._times[i])


def rates(
    history: Sequence[Reading],
    work: Sequence[Work],
    now: datetime,
    *,
    lag_minutes: float = 0.0,
    family_of: FamilyOf | None = None,
) -> tuple[Rate, ...]:
    """One rate per window seen in the history of one pool, in a stable order.

    ``history``: readings of one pool, in any order; points without a percentage are ignored.
    ``work``: agents' time; other pools' work is ignored, work without an end is running until
    ``now``. A family's window is set against the work whose model belongs to the family
    (``family_of`` names a model's family; by default the model's name contains it); work on an
    unknown model is not attributable to a family. ``lag_minutes`` shifts the work for a meter that
    is known to report late.
    """
    points = sorted(
        (p for p in history if p.observed_at is not None and p.observed_at <= now),
        key=lambda p: p.observed_at or now,
    )
    pools = {p.pool for p in points}
    mine = [w for w in work if w.pool in pools]
    busy: dict[str | None, Busy] = {}
    tracks: dict[_Key, list[tuple[datetime, str | None, Window]]] = {}
    for point in points:
        for window in point.windows:
            if window.used_pct is not None and point.observed_at is not None:
                tracks.setdefault((window.kind, window.family), []).append(
                    (point.observed_at, point.account, window)
                )
    found: list[Rate] = []
    for key in sorted(tracks, key=lambda k: (k[0], k[1] or "")):
        kind, family = key
        if family not in busy:
            busy[family] = Busy(_spans(mine, now, lag_minutes, family, family_of))
        found.append(_rate(kind, family, tracks[key], busy[family], now))
    return tuple(found)


def _spans(
    work: Sequence[Work],
    now: datetime,
    lag_minutes: float,
    family: str | None,
    family_of: FamilyOf | None,
) -> Iterable[tuple[datetime, datetime]]:
    shift = timedelta(minutes=lag_minutes)
    for one in work:
        if family is not None and not _in_family(one.model, family, family_of):
            continue
        yield one.started_at + shift, (one.ended_at or now) + shift


def _in_family(model: str | None, family: str, family_of: FamilyOf | None) -> bool:
    if model is None:
        return False
    if family_of is not None:
        return family_of(model) == family
    return family.lower() in model.lower()


def _rate(
    kind: WindowKind,
    family: str | None,
    track: Sequence[tuple[datetime, str | None, Window]],
    busy: Busy,
    now: datetime,
) -> Rate:
    plain = minutes = points = 0.0
    for (start, account_a, a), (end, account_b, b) in pairwise(track):
        if a.used_pct is None or b.used_pct is None:
            continue
        rise = b.used_pct - a.used_pct
        if rise < 0 or account_a != account_b or not same_reset(a.resets_at, b.resets_at):
            continue
        if a.resets_at is not None and a.resets_at <= end:
            continue
        spent = busy.minutes(start, end)
        if spent <= 0:
            continue
        weight = 0.5 ** ((now - end).total_seconds() / 60.0 / HALF_LIFE_MINUTES)
        plain += spent
        minutes += weight * spent
        points += weight * rise
    known = plain >= MIN_WORKER_MINUTES and minutes > 0
    return Rate(
        kind=kind,
        per_minute=points / minutes if known else None,
        worker_minutes=plain,
        family=family,
    )
