"""One task from snapshot to record: snapshot, route, dispatch, judge, record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bullswarm.runs.app import App
    from bullswarm.runs.engine import dry_run, run_task
    from bullswarm.runs.types import AttemptSpec, Progress, Task

# Who only looks at pools must not pay for what starts and watches workers.
_WHERE = {
    "App": "app",
    "AttemptSpec": "types",
    "Progress": "types",
    "Task": "types",
    "dry_run": "engine",
    "run_task": "engine",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


__all__ = ["App", "AttemptSpec", "Progress", "Task", "dry_run", "run_task"]
