"""The adapter protocol: small enough to write one in a page, typed enough to route by."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

import msgspec

from bullswarm.fleet.types import RunResult, RunTask
from bullswarm.routing.types import Model, Window


class Quota(msgspec.Struct, frozen=True, kw_only=True):
    """What an account has left. Unknown is an empty ``windows``, never 0. ``observed_at`` None is
    now; a time has to be aware."""

    windows: tuple[Window, ...] = ()
    observed_at: datetime | None = None

    @staticmethod
    def window(
        *, minutes: float, used_pct: float | None, resets_at: datetime | None = None
    ) -> Window:
        """One window, known by its length in ``minutes`` (300: five hours, 10080: a week).
        ``used_pct`` is 0..100, None where unknown; ``resets_at`` is aware. Raises ``ValueError``
        for a length that is no positive number, and for a time without a zone."""
        from bullswarm.meters import window_from

        if resets_at is not None and resets_at.tzinfo is None:
            raise ValueError("resets_at needs a time zone: datetime.now(UTC) + ...")
        return window_from(minutes, used_pct, resets_at, None)


@runtime_checkable
class Adapter(Protocol):
    """One vendor. A class that has these four methods and a ``name`` is an adapter; nothing has to
    be inherited.

    What goes wrong in one of them never stops the fleet: an account whose ``quota`` raises has an
    unknown quota, an exception of ``run`` is a failed run. Two attributes are optional:
    ``capabilities``, the words that a task's ``capabilities`` may ask for, and ``cost_rank`` (1.0),
    where lower is cheaper and breaks ties.
    """

    @property
    def name(self) -> str:
        """The vendor's own name, which ``Policy.prefer`` may use."""
        ...

    def accounts(self) -> Sequence[str]:
        """The accounts that can run now, by name: the vendor's, or "vendor:account"."""
        ...

    def quota(self, account: str) -> Quota | None:
        """What the account has left; None is unknown. Called from a thread, before every pick: keep
        an answer that is dear to get."""
        ...

    def available_models(self, account: str) -> Sequence[Model]:
        """Its models with their latency class; empty where any name is passed on."""
        ...

    async def run(self, task: RunTask) -> RunResult:
        """Run the task on ``task.account`` (None: the vendor's choice) to its end. Called on the
        event loop of the fleet's caller; cancelled when the work is."""
        ...
