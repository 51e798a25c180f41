"""One task from snapshot to record: snapshot, route, dispatch, judge, record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullswarm.lazy import exports

if TYPE_CHECKING:
    from bullswarm.runs.app import App
    from bullswarm.runs.asking import dry_run
    from bullswarm.runs.engine import run_task
    from bullswarm.runs.types import AttemptSpec, Progress, Task

# Who only looks at pools must not pay for what starts and watches workers.
__getattr__ = exports(
    __name__,
    {
        "app": ("App",),
        "asking": ("dry_run",),
        "engine": ("run_task",),
        "types": ("AttemptSpec", "Progress", "Task"),
    },
)


__all__ = ["App", "AttemptSpec", "Progress", "Task", "dry_run", "run_task"]
