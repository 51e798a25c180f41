"""Start a worker, watch it to its end, end everything it started.

``notices`` says what a provider's "no" means; here is what a process does. Imported on first use:
whoever needs only the types of this room starts quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bullswarm.dispatch.environment import check_depth, next_depth, worker_env
    from bullswarm.dispatch.errors import AlreadyStarted, DepthError, SpawnError
    from bullswarm.dispatch.proc import end_group, members
    from bullswarm.dispatch.spawn import alive, find, read_exit, start
    from bullswarm.dispatch.supervision import supervise, supervise_many
    from bullswarm.dispatch.watch import Watch

_HOMES = {
    "AlreadyStarted": "errors",
    "DepthError": "errors",
    "SpawnError": "errors",
    "Watch": "watch",
    "alive": "spawn",
    "check_depth": "environment",
    "end_group": "proc",
    "find": "spawn",
    "members": "proc",
    "next_depth": "environment",
    "read_exit": "spawn",
    "start": "spawn",
    "supervise": "supervision",
    "supervise_many": "supervision",
    "worker_env": "environment",
}

__all__ = [
    "AlreadyStarted",
    "DepthError",
    "SpawnError",
    "Watch",
    "alive",
    "check_depth",
    "end_group",
    "find",
    "members",
    "next_depth",
    "read_exit",
    "start",
    "supervise",
    "supervise_many",
    "worker_env",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
