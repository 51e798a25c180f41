"""A run's record in the home: ``workflows/<id>/run.json``, for people and for other programs."""

from __future__ import annotations

import msgspec

from bullswarm.store import Home, RunRecord
from bullswarm.store.files import atomic_write, explain


def write_record(home: Home, record: RunRecord) -> None:
    """Write the record atomically. A run is a one-step workflow. Raises
    ``BullswarmError`` where it can't be written."""
    folder = home.workflows / record.run_id
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise explain(error, folder) from error
    text = msgspec.json.format(msgspec.json.encode(record), indent=2)
    atomic_write(folder / "run.json", text + b"\n")
