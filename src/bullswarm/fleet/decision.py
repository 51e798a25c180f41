"""What ``Fleet.route`` gives."""

from __future__ import annotations

import msgspec

from bullswarm.fleet.adapter import Adapter
from bullswarm.routing.types import Candidate, Decision


class RouteDecision(msgspec.Struct, frozen=True, kw_only=True):
    """Who would run a task: ``adapter.run(task)`` runs it there, on ``account`` with ``model``.

    ``note`` is set only where a best-effort fallback was taken: every candidate was gated.
    ``reason`` names the number that decided. ``candidates`` are best first, each with its numbers
    and why it lost. ``decision`` is the whole of it, as ``bullswarm explain`` prints it.
    """

    adapter: Adapter
    account: str
    model: str | None
    note: str | None
    reason: str
    candidates: tuple[Candidate, ...]
    decision: Decision
