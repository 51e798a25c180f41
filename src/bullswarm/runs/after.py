"""What follows a failed attempt: a pure rule over the attempts so far and ``limits.mode``.

Two documents speak of a spent or dead pool. ``quarantine`` benches it and moves the work on;
``return`` remembers nothing and hands a limit back to the caller; ``wait`` is ``quarantine`` until
no pool is left, and then waits for the earliest known reset. A limit never spends the one automatic
retry a step has: the work did nothing wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from bullswarm.dispatch.types import FailureKind, Notice

LimitsMode = Literal["quarantine", "return", "wait"]
LIMITS_MODES: tuple[LimitsMode, ...] = ("quarantine", "return", "wait")

THROTTLE_BACKOFF_S: tuple[float, ...] = (20.0, 60.0)
"""Pauses on the same pool after a throttle: two at most."""

THROTTLE_NAMED_WAIT_MAX_S = 120.0
"""A wait that the provider named is honoured up to two minutes."""

ELSEWHERE: frozenset[FailureKind] = frozenset({"process", "provider", "stalled"})
SAME_POOL: frozenset[FailureKind] = frozenset({"not-produced", "schema"})


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """One finished attempt as this rule sees it."""

    pool: str
    failure_kind: FailureKind | None = None
    group: str | None = None
    notice: Notice | None = None
    started: bool = True


class Next(msgspec.Struct, frozen=True, kw_only=True):
    """What to do now.

    ``done``: stop here. ``same``: again on the same pool, after ``wait_s``. ``elsewhere``: on
    another pool; ``exclude`` and ``exclude_groups`` name what must not be picked. ``bench`` asks
    that the pool be benched, ``reread`` that its meter be read again at once. ``attach_failure``
    shows the worker why its last attempt failed.
    """

    action: Literal["done", "same", "elsewhere"]
    why: str = ""
    wait_s: float = 0.0
    exclude: tuple[str, ...] = ()
    exclude_groups: tuple[str, ...] = ()
    bench: bool = False
    reread: bool = False
    attach_failure: bool = False
    relogin: bool = False


def after(
    tried: Sequence[Tried],
    *,
    mode: LimitsMode = "quarantine",
    retries: int = 1,
    repeatable: bool = True,
    backoff_s: Sequence[float] = THROTTLE_BACKOFF_S,
) -> Next:
    """What follows the last attempt in ``tried``.

    ``retries`` is the budget of automatic retries that are not about limits (one a step).
    ``repeatable`` is False for outward actions: a worker that started is never started again by
    anyone but the caller.
    """
    last = tried[-1]
    kind = last.failure_kind
    if kind is None:
        return Next(action="done", why="ok")
    bench = mode != "return" and kind in ("quota", "auth") and not _is_local(last.notice)
    reread = kind == "quota"
    spent = tuple(dict.fromkeys(t.pool for t in tried if t.failure_kind in ("quota", "auth")))
    groups = _dead_groups(tried)
    stop = Next(action="done", why=kind, bench=bench, reread=reread)
    if kind in ("cancelled", "depth", "unavailable"):
        return stop
    if not repeatable and last.started:
        return msgspec.structs.replace(stop, why="outward actions are never repeated")
    if kind == "quota":
        if mode == "return":
            return stop
        return Next(
            action="elsewhere",
            why="the pool's quota is spent",
            exclude=spent,
            exclude_groups=groups,
            bench=True,
            reread=True,
        )
    if kind == "throttle":
        return _after_throttle(tried, mode, spent, groups, backoff_s)
    if kind == "auth":
        return _after_auth(tried, mode, spent, groups, bench)
    used = sum(1 for t in tried[:-1] if t.failure_kind in ELSEWHERE | SAME_POOL)
    if used >= retries:
        return msgspec.structs.replace(stop, why="the automatic retry is spent")
    if kind in SAME_POOL:
        return Next(action="same", why=f"{kind}: once more, told why", attach_failure=True)
    failed = tuple(dict.fromkeys((*spent, last.pool)))
    return Next(action="elsewhere", why=f"{kind} failure", exclude=failed, exclude_groups=groups)


def _after_throttle(
    tried: Sequence[Tried],
    mode: LimitsMode,
    spent: tuple[str, ...],
    groups: tuple[str, ...],
    backoff_s: Sequence[float],
) -> Next:
    last = tried[-1]
    run = 0
    for attempt in reversed(tried):
        if attempt.pool != last.pool or attempt.failure_kind != "throttle":
            break
        run += 1
    named = last.notice.wait_s if last.notice else None
    too_long = named is not None and named > THROTTLE_NAMED_WAIT_MAX_S
    if run <= len(backoff_s) and not too_long:
        # A server that says 0 knows no better than we do.
        pause = named or backoff_s[run - 1]
        return Next(action="same", why="too many requests, nothing spent", wait_s=pause)
    if mode == "return":
        return Next(action="done", why="throttle")
    throttled = {t.pool for t in tried if t.failure_kind == "throttle"}
    return Next(
        action="elsewhere",
        why="still throttled after its pauses",
        exclude=tuple(dict.fromkeys((*spent, *sorted(throttled)))),
        exclude_groups=groups,
    )


def _after_auth(
    tried: Sequence[Tried],
    mode: LimitsMode,
    spent: tuple[str, ...],
    groups: tuple[str, ...],
    bench: bool,
) -> Next:
    last = tried[-1]
    notice = last.notice
    races = [t for t in tried if t.notice is not None and t.notice.kind == "auth-race"]
    if notice is not None and notice.kind == "auth-race" and len(races) == 1:
        # Two processes spent one refresh token; the winner has already stored the new login.
        return Next(action="same", why="lost a race for the login; reading it again", relogin=True)
    if mode == "return" and sum(1 for t in tried if t.failure_kind == "auth") > 1 + bool(races):
        return Next(action="done", why="auth")
    return Next(
        action="elsewhere",
        why="the login was refused",
        exclude=spent,
        exclude_groups=groups,
        bench=bench,
    )


def _is_local(notice: Notice | None) -> bool:
    """A damaged login file or a lost race is this machine's doing, not a dead account."""
    return notice is not None and notice.kind in ("auth-race", "login-damaged")


def _dead_groups(tried: Sequence[Tried]) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(t.group for t in tried if t.failure_kind == "auth" and t.group is not None)
    )
