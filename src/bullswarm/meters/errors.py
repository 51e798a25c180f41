"""Why a meter could not be read. An error is never a percentage, and only ``expired`` is about
the login."""

from __future__ import annotations

from typing import Literal

from bullswarm.errors import BullswarmError

MeterErrorKind = Literal["unreachable", "throttled", "expired", "missing", "damaged"]


class MeterError(BullswarmError):
    """A meter that gave no reading, with the reason in words for people.

    ``unreachable``: no answer, or a server error. ``throttled``: asked too often (HTTP 429), which
    says nothing about the login. ``expired``: the server refused the login. ``missing``: nothing to
    read here (no login, no session yet); no request was made. ``damaged``: an answer or a file that
    makes no sense. ``retry_after_s`` is the wait the server named, in seconds; None where it named
    none, and 0 means the same (a server that says 0 knows no better).
    """

    def __init__(
        self,
        reason: str,
        retry_after_s: float | None = None,
        kind: MeterErrorKind = "unreachable",
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after_s = retry_after_s if retry_after_s and retry_after_s > 0 else None
        self.kind: MeterErrorKind = kind
