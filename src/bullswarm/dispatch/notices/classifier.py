"""Follows one attempt's events and stderr, and says when its provider has said "no".

Structured events first, notice texts second, and only from the provider's own channel: what the
worker says or reads never counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo

import msgspec

from bullswarm.dispatch.notices.grammar import classify
from bullswarm.dispatch.notices.kinds import kind_of_code, kind_of_status
from bullswarm.dispatch.notices.lines import foreign, undress
from bullswarm.dispatch.notices.resets import parse_reset, plain
from bullswarm.dispatch.notices.structured import Facts, claim, read_headers
from bullswarm.dispatch.notices.wall import SKEW
from bullswarm.dispatch.types import Event, Notice, NoticeKind
from bullswarm.providers.types import EarlyKill, Phrases

Now = datetime | Callable[[], datetime] | None

PROGRESS = frozenset({"text", "tool", "tool-result"})
"""Events that show the provider answers: retries before them are over."""

_LONGEST = 4000

SAME_RESET = timedelta(minutes=6)
"""A time in words this close to a structured one is the same reset (a time just past reads as
now)."""

RESET_LINES = 3
"""Lines of stderr after a notice in which its reset may still stand."""

_DANGLING = re.compile(
    r"(?:[,·∙•(:—-]|\b(?:at|in|on|your|you've|have|or|and|to|for|after|until|the|again|resets?"
    r"|hit|reached"
    r"|usage|session|weekly|\d+ (?:days?|hours?)|(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct"
    r"|nov|dec)"
    r" \d{1,2}(?:st|nd|rd|th)?,?(?: 20\d\d)?))$",
    re.ASCII | re.IGNORECASE,
)


class Classifier:
    """One attempt's notices.

    ``feed`` takes each event, ``feed_stderr`` each line of stderr; both return the notice it adds,
    or None. A notice with ``certain=True`` ends the attempt at once. ``finish`` is called when the
    process has ended, and gives what counts only now that it failed. A later notice replaces an
    earlier one: the window named last binds.

    ``phrases`` are the connector's (see ``phrases_of``), ``early_kill`` how many retries of a kind
    end the attempt, ``zone`` the zone of times without one (None: this machine's), ``now`` a clock
    or an instant (None: the system's clock). ``stderr_text`` is the connector's: a line of stderr
    that it finds is read as its group ``text``. After a certain notice, go on feeding the stderr
    that is already there: its next line may name the reset.
    """

    def __init__(
        self,
        *,
        phrases: Phrases | None = None,
        early_kill: EarlyKill | None = None,
        now: Now = None,
        zone: tzinfo | None = None,
        stderr_text: str | None = None,
    ) -> None:
        self._logged = re.compile(stderr_text) if stderr_text else None
        self._phrases = phrases if phrases is not None else Phrases()
        self._limits = early_kill if early_kill is not None else EarlyKill()
        self._clock = now
        self._zone = zone
        self._failed = False
        self._counts: dict[str, int] = {}
        self._last_error = ""
        self._held: Notice | None = None
        self._line = ""
        self._exact: Notice | None = None
        self._open: tuple[Notice, int] | None = None

    def feed(self, event: Event) -> Notice | None:
        """The notice in this event, or None."""
        if event.kind in PROGRESS:
            # It answers again: what was said before is over.
            self._counts.clear()
            self._last_error = ""
            self._held = None
            return None
        if event.kind == "limit":
            return self._limit(event)
        if event.kind == "retry":
            return self._retry(event)
        if event.kind == "error":
            return self._error(event)
        return self._final(event) if event.kind == "final" else None

    def feed_stderr(self, line: str) -> Notice | None:
        """The notice that this line of stderr is or completes, or None."""
        line = line[:_LONGEST]
        logged = self._logged.search(line) if self._logged is not None else None
        if logged is not None:
            line = logged["text"]
        flat = plain(line)
        if not flat:
            return None
        before, self._line = self._line, line
        late = self._late_reset(flat)
        if late is not None:
            return late
        notice = self._classify(line, "stderr")
        # A message out of a log line is whole; a line of a terminal may have been wrapped.
        wrapped = logged is None
        if wrapped and before and _DANGLING.search(plain(before)) and not foreign(before):
            # A notice that was wrapped: the longer text says more.
            joined = self._classify(f"{before.rstrip()} {line.strip()}", "stderr")
            if joined is not None and (notice is None or notice.resets_at is None):
                self._line = f"{before.rstrip()} {line.strip()}"
                notice = joined
        if notice is None:
            return None
        shape = undress(flat)
        if notice.kind == "quota":
            unfinished = wrapped and notice.resets_at is None and bool(_DANGLING.search(flat))
            notice = msgspec.structs.replace(notice, certain=not unfinished)
            self._open = (notice, RESET_LINES) if notice.resets_at is None else None
            if unfinished:
                self._held = notice
            return notice
        if notice.kind in ("auth-race", "login-damaged"):
            return self._hold(notice)
        if notice.kind == "auth" and not shape.retry:
            return self._hold(notice)  # sign-in words count only on a stream that failed
        if shape.body:
            return self._hold(notice)  # a dump of the error that its own line has counted
        return self._counted(notice)

    def finish(self, *, failed: bool) -> Notice | None:
        """The notice that counts now that the process has ended, where none was certain before.
        ``failed``: by its exit status, or because its stream broke off."""
        held, self._held = self._held, None
        if held is None or not (failed or self._failed):
            return None
        return msgspec.structs.replace(held, certain=True)

    @property
    def failed(self) -> bool:
        """Whether the stream itself has declared a failure."""
        return self._failed

    def _now(self) -> datetime:
        clock = self._clock
        if clock is None:
            return datetime.now(UTC)
        return clock if isinstance(clock, datetime) else clock()

    def _classify(self, text: str, channel: str) -> Notice | None:
        return classify(
            text,
            now=self._now(),
            zone=self._zone,
            phrases=self._phrases,
            channel=channel,  # type: ignore[arg-type]
        )

    def _hold(self, notice: Notice) -> Notice:
        if self._failed and notice.kind != "login-damaged":
            return msgspec.structs.replace(notice, certain=True)
        self._held = msgspec.structs.replace(notice, certain=False)
        return self._held

    def _late_reset(self, flat: str) -> Notice | None:
        if self._open is None:
            return None
        notice, left = self._open
        self._open = (notice, left - 1) if left > 1 else None
        if not re.match(
            r"[^a-z]{0,3}(?:resets?|try again|retry|available|your (?:limit|quota)|in \d)",
            flat,
            re.I,
        ):
            return None
        at = parse_reset(flat, self._now(), self._zone)
        if at is None:
            return None
        self._open = self._held = None
        return msgspec.structs.replace(
            notice,
            text=f"{notice.text} {flat}",
            resets_at=at,
            certain=True,
            wait_s=(at - self._now()).total_seconds(),
        )

    def _limit(self, event: Event) -> Notice | None:
        if (event.limit_status or "").lower() != "rejected":
            return None
        self._failed = True
        window, family = claim(event.window)
        self._exact = Notice(
            kind="quota",
            text=plain(event.text) or f"usage limit reached ({event.window or 'window not named'})",
            source="event",
            resets_at=self._ahead(event.resets_at),
            window=window,
            family=family,
            status=event.status,
        )
        return self._exact

    def _retry(self, event: Event) -> Notice:
        notice = self._of_event(event)
        if notice.kind == "quota":
            return notice
        return self._counted(notice, other=self._is_other(event, notice))

    def _error(self, event: Event) -> Notice | None:
        shape = undress(plain(event.text))
        retrying = shape.retry or (event.attempt is not None and event.max_attempts is not None)
        if retrying:
            return self._retry(event)
        self._failed = True
        notice = self._of_event(event)
        if self._is_other(event, notice):
            return None  # an error, but not a provider's "no"
        if notice.kind in ("quota", "auth", "auth-race"):
            return notice
        if notice.kind == "login-damaged":
            return self._hold(notice)
        # The same failure is often told twice (an error, then the end of the turn).
        if event.text == self._last_error:
            return msgspec.structs.replace(notice, certain=False)
        self._last_error = event.text
        return self._counted(notice)

    def _final(self, event: Event) -> Notice | None:
        if event.is_error:
            self._failed = True
            notice = self._of_event(event, "final-error")
            return None if self._is_other(event, notice) else notice
        self._held = None
        found = self._classify(event.text, "answer")
        # The judge decides about a clean end; nothing is killed for it.
        return msgspec.structs.replace(found, certain=False) if found else None

    def _is_other(self, event: Event, notice: Notice) -> bool:
        known = kind_of_status(event.status or notice.status) or kind_of_code(event.code)
        return notice.kind == "overloaded" and known is None and self._read(event) is None

    def _read(self, event: Event, channel: str = "error") -> Notice | None:
        return self._classify(event.text, channel) if event.text else None

    def _of_event(self, event: Event, channel: str = "error") -> Notice:
        """The event's notice: its fields decide, its text adds what they leave open. A failure that
        is none of the kinds comes back as ``overloaded``: the provider's own trouble."""
        now = self._now()
        text = self._read(event, channel)
        facts = read_headers(event.headers, now) if event.headers else Facts()
        status = event.status or (text.status if text else None)
        by_code = kind_of_code(event.code)
        by_text = text.kind if text else None
        kind: NoticeKind
        if facts.spent and (status in (None, 402, 403, 429) or by_text == "quota"):
            kind = "quota"
        elif "auth-race" in (by_code, by_text):
            kind = "auth-race"
        elif by_code == "quota" or (by_text == "quota" and status not in (401, 403)):
            kind = "quota"
        elif by_text == "login-damaged":
            kind = "login-damaged"
        else:
            kind = kind_of_status(status) or by_code or by_text or "overloaded"
        at = self._ahead(event.resets_at) or facts.resets_at or (text.resets_at if text else None)
        named = None if _own_pause(event) else _sane(event.retry_after_s)
        wait_s = facts.wait_s or named or (text.wait_s if text else None)
        if kind == "quota" and at is None and wait_s:
            at = now + timedelta(seconds=wait_s)
        window, family = claim(event.window)
        quota = kind == "quota"
        exact = self._exact
        # The words that follow an event tell its reset again, and only to the minute.
        if (
            quota
            and exact is not None
            and exact.resets_at is not None
            and (at is None or abs(at - exact.resets_at) < SAME_RESET)
        ):
            at, window, family = exact.resets_at, window or exact.window, exact.family
        return Notice(
            kind=kind,
            text=plain(event.text) or _words(kind, status, event.code),
            source="event" if event.status or event.code or facts.spent else "text",
            resets_at=at if quota else None,
            window=(window or facts.window or (text.window if text else None)) if quota else None,
            family=(family or facts.family or (text.family if text else None)) if quota else None,
            status=status,
            wait_s=(at - now).total_seconds() if quota and at else wait_s,
        )

    def _counted(self, notice: Notice, *, other: bool = False) -> Notice:
        """A retry: certain once there were as many of its kind in a row as the connector allows."""
        name = "other" if other else notice.kind
        limit = {
            "auth": self._limits.auth,
            "throttle": self._limits.throttle,
            "overloaded": self._limits.overloaded,
        }.get(name, self._limits.other)
        count = self._counts[name] = self._counts.get(name, 0) + 1
        notice = msgspec.structs.replace(notice, certain=count >= max(1, limit))
        if not notice.certain:
            self._held = notice
        return notice

    def _ahead(self, at: datetime | None) -> datetime | None:
        now = self._now()
        return max(at, now) if at is not None and at > now - SKEW else None


def _sane(seconds: float | None) -> float | None:
    """A wait in seconds that can be one: over 0, under ten years."""
    return seconds if seconds is not None and 0 < seconds < 3.2e8 else None


def _own_pause(event: Event) -> bool:
    """The pause that a CLI chose for its own retry, which is no word of its provider: it carries
    jitter, and a wait that a server names is whole seconds."""
    pause = event.retry_after_s
    return event.kind == "retry" and pause is not None and not float(pause).is_integer()


def _words(kind: str, status: int | None, code: str | None) -> str:
    parts = [str(status) if status else "", code or ""]
    return " ".join(part for part in parts if part) or kind
