"""What the library takes and gives back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from bullswarm.dispatch.types import Event, FailureKind, Usage
from bullswarm.judge.types import Verdict
from bullswarm.routing.types import Candidate, Decision, LatencyClass, Strategy
from bullswarm.routing.types import Policy as RoutingPolicy

if TYPE_CHECKING:
    from bullswarm.fleet.adapter import Adapter


class RunTask(msgspec.Struct, frozen=True, kw_only=True):
    """One task. Only ``prompt`` is needed.

    ``account`` pins one pool ("claude-code", "codex:work"). ``cwd`` None is the current folder.
    ``domain`` picks a list of ``Policy.domains``. ``permission_mode`` is passed on as it is, in the
    vendor's own vocabulary; without an ``account`` it is refused unless only one vendor can be
    picked. ``policy`` is this task's own and wins over the one given to ``run``. ``timeout_s`` is
    in seconds of awake time.
    """

    prompt: str
    account: str | None = None
    cwd: str | None = None
    lane: Literal["analyze", "build", "chore"] = "build"
    domain: str | None = None
    permission_mode: str | None = None
    model: str | None = None
    effort: str | None = None
    capabilities: tuple[str, ...] = ()
    deliverables: tuple[str, ...] = ()
    answer_schema: str | None = None
    timeout_s: float | None = None
    priority: int = 0
    policy: Policy | None = None


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How to choose. ``prefer`` names accounts or vendors, best first; ``quota_ceiling`` is the
    used% (0..100) above which an account is skipped; ``domains`` maps a task's domain to such a
    list; ``latency`` asks for fast models or tolerates slow ones.

    Strategies: ``prefer-order`` (default) takes the first of ``prefer`` that passes the ceiling,
    ``most-quota`` the one with the most headroom, ``lowest-latency`` the fastest, ``pace`` the one
    furthest behind its subscription's pace.
    """

    prefer: tuple[str, ...] | list[str] = ()
    quota_ceiling: float = 80.0
    strategy: Strategy = "prefer-order"
    domains: dict[str, tuple[str, ...] | list[str]] = {}
    latency: LatencyClass | None = None

    def for_routing(self) -> RoutingPolicy:
        """The same as routing knows it. Raises ``UsageError`` for a value out of range."""
        from bullswarm.errors import UsageError

        if not 0 <= self.quota_ceiling <= 100:
            raise UsageError(f"quota_ceiling must be between 0 and 100, not {self.quota_ceiling}")
        return RoutingPolicy(
            strategy=self.strategy,
            prefer=tuple(self.prefer),
            quota_ceiling=self.quota_ceiling,
            domains={domain: tuple(names) for domain, names in self.domains.items()},
            latency=self.latency,
        )


class RouteDecision(msgspec.Struct, frozen=True, kw_only=True):
    """Who would run a task. ``note`` is set only where a best-effort fallback was taken: every
    candidate was gated. ``reason`` names the utilization that decided."""

    adapter: Adapter
    account: str
    model: str | None
    note: str | None
    reason: str
    candidates: tuple[Candidate, ...]
    decision: Decision


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came back. ``ok`` is the judge's word, not the exit code's. ``text`` is the answer,
    ``answer`` the typed one where a schema was given. ``verdict`` holds everything."""

    ok: bool
    text: str
    account: str | None = None
    why: str = "verified"
    failure_kind: FailureKind | None = None
    answer: Any = None
    session: str | None = None
    usage: Usage = Usage()
    wall_s: float = 0.0
    verdict: Verdict | None = None


class FleetEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of ``Fleet.stream``. ``kind`` is that of ``runs.Progress`` (``routed``,
    ``started``, ``event``, ``benched``, ``ended``, ...) and at last ``result``."""

    kind: str
    text: str = ""
    account: str | None = None
    event: Event | None = None
    result: RunResult | None = None
