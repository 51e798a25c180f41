"""Start a worker, watch it to its end, end everything it started.

``notices`` says what a provider's "no" means; here is what a process does.
"""

from bullswarm.dispatch.environment import check_depth, next_depth, worker_env
from bullswarm.dispatch.errors import AlreadyStarted, DepthError, SpawnError
from bullswarm.dispatch.proc import end_group, members
from bullswarm.dispatch.spawn import alive, find, read_exit, start
from bullswarm.dispatch.supervise import supervise, supervise_many
from bullswarm.dispatch.watch import Watch

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
