"""What is refused before anything starts, in words that name the field and what would be right."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import get_args

from bullswarm.errors import UsageError
from bullswarm.fleet.types import Policy, RunTask
from bullswarm.routing import types as routing


def routing_policy(policy: Policy) -> routing.Policy:
    """The policy as routing knows it. Raises ``UsageError`` for a value that is no value of its
    field: who has no type checker is told here."""
    if not isinstance(policy, Policy):
        raise UsageError(f"policy must be a Policy, not {type(policy).__name__}")
    _one_of("strategy", policy.strategy, routing.STRATEGIES)
    if policy.latency is not None:
        _one_of("latency", policy.latency, get_args(routing.LatencyClass))
    ceiling = policy.quota_ceiling
    if isinstance(ceiling, bool) or not isinstance(ceiling, int | float) or not 0 <= ceiling <= 100:
        raise UsageError(f"quota_ceiling must be a percentage from 0 to 100, not {ceiling!r}")
    return routing.Policy(
        strategy=policy.strategy,
        prefer=names("prefer", policy.prefer),
        quota_ceiling=float(ceiling),
        domains={d: names(f"domains.{d}", listed) for d, listed in policy.domains.items()},
        latency=policy.latency,
    )


def task_of(task: RunTask | str) -> RunTask:
    """The task, checked. Raises ``UsageError``."""
    if isinstance(task, str):
        task = RunTask(task)
    if not isinstance(task, RunTask):
        raise UsageError(f"a task must be a RunTask or a text, not {type(task).__name__}")
    if not isinstance(task.prompt, str) or not task.prompt.strip():
        raise UsageError("prompt: it is empty; say what the agent should do")
    _one_of("lane", task.lane, routing.LANES)
    if task.cwd is not None and not Path(task.cwd).is_dir():
        raise UsageError(f"cwd: {task.cwd} is not a folder")
    if task.timeout_s is not None and not task.timeout_s > 0:
        raise UsageError(f"timeout_s must be more than 0 seconds, not {task.timeout_s}")
    for field in ("capabilities", "deliverables"):
        names(field, getattr(task, field))
    if task.policy is not None:
        routing_policy(task.policy)
    return task


def one_vendor(task: RunTask, vendors: Iterable[str]) -> None:
    """Refuse a vendor's own word that could reach another vendor. Raises ``UsageError``."""
    found = list(dict.fromkeys(vendors))
    if task.permission_mode is None or task.account is not None or len(found) == 1:
        return
    could = f"this task could go to {' or '.join(found)}" if found else "nobody can take this task"
    raise UsageError(
        f"permission_mode: {task.permission_mode!r} is one vendor's own word, and {could}; "
        "set account as well"
    )


def names(field: str, given: object) -> tuple[str, ...]:
    """A list of names. Raises ``UsageError`` for anything else, a single text included."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise UsageError(f"{field} must be a list of names, not {given!r}")
    listed = tuple(given)
    for name in listed:
        if not isinstance(name, str):
            raise UsageError(f"{field} must be a list of names, not of {name!r}")
    return listed


def _one_of(field: str, value: object, allowed: Iterable[str]) -> None:
    words = tuple(allowed)
    if value in words:
        return
    near = get_close_matches(str(value), words, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise UsageError(f"{field} must be one of {', '.join(words)}, not {value!r}{hint}")
