"""Minutes of the simulation and real time, and when windows of a fixed calendar begin and end."""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, datetime, timedelta

from bullswarm.simulate.types import WEEK, PoolSpec

ORIGIN = datetime(2026, 1, 5, tzinfo=UTC)
"""Minute 0 where nothing else is said: a Monday, and the last month was a long one."""


class Clock:
    """Turns minutes since the start into aware UTC times and back."""

    def __init__(self, began: str | None = None) -> None:
        self.origin = ORIGIN if began is None else datetime.fromisoformat(began)

    def time(self, minutes: float) -> datetime:
        """The time at so many minutes."""
        return self.origin + timedelta(minutes=minutes)

    def minutes(self, time: datetime) -> float:
        """Minutes since the start; negative before it."""
        return (time - self.origin).total_seconds() / 60.0

    def after_month(self, start: float) -> float:
        """The end of the calendar month that begins at ``start``; the 31st ends on the last day of
        a shorter month."""
        at = self.time(start)
        year, month = (at.year + 1, 1) if at.month == 12 else (at.year, at.month + 1)
        day = min(at.day, monthrange(year, month)[1])
        return self.minutes(at.replace(year=year, month=month, day=day))

    def pacing_end(self, spec: PoolSpec, start: float) -> float:
        """The end of the pacing window that begins at ``start``."""
        return start + WEEK if spec.weekly is not None else self.after_month(start)


def fixed_windows(
    spec: PoolSpec, clock: Clock, horizon: float, early_resets: tuple[float, ...] = ()
) -> list[tuple[float, float, float]]:
    """The pacing windows of a "fixed" pool as (begin, end, used percent at the begin), from 0 to
    past the horizon. An early reset ends the running one and begins a whole new one."""
    windows: list[tuple[float, float, float]] = []
    begin, used = 0.0, spec.used
    hours = spec.resets_in_hours
    end = clock.pacing_end(spec, 0.0) if hours is None else hours * 60.0
    early = list(early_resets)
    if end <= 0.0:
        end, used = clock.pacing_end(spec, 0.0), 0.0
    while begin < horizon:
        while early and early[0] <= begin:
            early.pop(0)
        cut = early[0] if early and early[0] < end else None
        stop = end if cut is None else cut
        windows.append((begin, stop, used))
        begin, used = stop, 0.0
        end = clock.pacing_end(spec, begin)
    return windows
