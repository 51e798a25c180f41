"""A workflow's row among all runs: what ``bullswarm runs`` lists."""

from __future__ import annotations

import msgspec

from bullswarm.runs.app import App
from bullswarm.store import RunRecord, me
from bullswarm.workflow import state as states
from bullswarm.workflow.folder import Meta, RunFolder


def list_run(app: App, folder: RunFolder, meta: Meta, phase: str) -> None:
    """Write down where a run stands, and that this process carries it."""
    pid, started = me()
    known = app.store.run(meta.run_id)
    state = {"completed": "ok", "partial": "failed"}.get(phase, phase)
    record = known or RunRecord(
        run_id=meta.run_id,
        short_id=meta.run_id[-6:],
        started_at=meta.created_at,
        kind="workflow",
    )
    app.store.put_run(
        msgspec.structs.replace(
            record,
            state=state,
            ended_at=app.now() if phase in states.ENDED else None,
            owner_pid=pid,
            owner_started=started,
            cwd=meta.cwd,
            purpose=meta.purpose,
            folder=str(folder.path),
        )
    )
