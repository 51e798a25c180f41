"""What work in flight and unread work have spent and will spend. Minutes and percent points."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bullswarm.routing.durations import DurationBook
from bullswarm.routing.types import Work


class Load:
    """A pool's work in flight and its unread work, at one instant.

    ``unread_minutes``: worker-minutes since the reading, by work in flight and by work that ended
    since (a meter lags). ``ended_unread`` counts the latter. ``rests`` holds each agent's expected
    rest in minutes, shortest first, and ``rest_sum`` their sum. ``from_history``: every rest comes
    from records.
    """

    __slots__ = ("ended_unread", "from_history", "inflight", "rest_sum", "rests", "unread_minutes")

    def __init__(
        self,
        work: Sequence[Work],
        observed_at: datetime | None,
        now: datetime,
        book: DurationBook,
    ) -> None:
        inflight = ended = 0
        minutes = 0.0
        all_known = True
        rests: list[float] = []
        since = now if observed_at is None or observed_at > now else observed_at
        for one in work:
            start, end = one.started_at, one.ended_at
            live = end is None or end > now
            upto = now if live or end is None else end
            unread = (upto - (start if start > since else since)).total_seconds() / 60.0
            if unread > 0.0:
                minutes += unread
                if not live:
                    ended += 1
            if live:
                inflight += 1
                age = (now - start).total_seconds() / 60.0
                ran = one.ran_minutes - age
                if ran > 0.0:
                    rest, known = book.residual(one.pool, one.lane, one.ran_minutes)
                    rest += ran
                else:
                    rest, known = book.residual(one.pool, one.lane, age)
                rests.append(rest)
                all_known = all_known and known
        if inflight > 1:
            rests.sort()
        self.inflight = inflight
        self.ended_unread = ended
        self.unread_minutes = minutes
        self.from_history = all_known
        self.rests = rests
        self.rest_sum = sum(rests)

    def rest_minutes(self, left: float | None) -> float:
        """Expected minutes of all that is in flight, but only those before a reset that is ``left``
        away: later spend belongs to the next window (routing rules)."""
        if left is None:
            return self.rest_sum
        return sum([rest if rest < left else left for rest in self.rests])


def clipped(minutes: float, left: float | None) -> float:
    """``minutes``, but no more than are left before the reset."""
    return minutes if left is None or minutes < left else left


def grown(used: float | None, rate: float | None, minutes: float) -> float | None:
    """A reading grown by so many worker-minutes. A null rate adds nothing; unknown stays unknown,
    and the result may be over 100."""
    if used is None or rate is None:
        return used
    return used + rate * minutes
