"""One task from snapshot to record: snapshot, route, dispatch, judge, record."""

from bullswarm.runs.app import App
from bullswarm.runs.engine import dry_run, run_task
from bullswarm.runs.types import AttemptSpec, Progress, Task

__all__ = ["App", "AttemptSpec", "Progress", "Task", "dry_run", "run_task"]
