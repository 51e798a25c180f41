"""Start a worker, watch it to its end, end everything it started.

``notices`` says what a provider's "no" means; here is what a process does. Imported on first use:
whoever needs only the types of this room starts quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullswarm.lazy import exports

if TYPE_CHECKING:
    from bullswarm.dispatch.environment import check_depth, next_depth, worker_env
    from bullswarm.dispatch.errors import AlreadyStarted, DepthError, SpawnError
    from bullswarm.dispatch.proc import end_group, members
    from bullswarm.dispatch.spawn import alive, find, read_exit, start
    from bullswarm.dispatch.supervision import supervise, supervise_many
    from bullswarm.dispatch.watch import Watch

__getattr__ = exports(
    __name__,
    {
        "environment": ("check_depth", "next_depth", "worker_env"),
        "errors": ("AlreadyStarted", "DepthError", "SpawnError"),
        "proc": ("end_group", "members"),
        "spawn": ("alive", "find", "read_exit", "start"),
        "supervision": ("supervise", "supervise_many"),
        "watch": ("Watch",),
    },
)

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
