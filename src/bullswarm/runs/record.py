"""A run's record in the home: ``workflows/<id>/run.json``, for people and for other programs."""

from __future__ import annotations

import msgspec

from bullswarm.store import Home, RunRecord
from bullswarm.store.files import atomic_write


def write_record(home: Home, record: RunRecord) -> None:
    """Write the record atomically. A run is a one-step workflow (concepts: verdict)."""
    folder = home.workflows / record.run_id
    folder.mkdir(mode=0o700, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(record), indent=2)
    atomic_write(folder / "run.json", text + b"\n")
