"""What is wrong with a ``state.json``, in words: the setting's name and what would be right."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bullswarm.errors import BullswarmError, UsageError
from bullswarm.shapes import Shape
from bullswarm.store.settings import Settings


def explain(data: bytes, path: Path, error: Exception) -> BullswarmError:
    """The error to raise for ``data``, which could not be read as settings."""
    try:
        raw = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as damage:
        return BullswarmError(
            f"{path} is damaged and was left as it is ({damage}); mend it by hand, or move it "
            "away to start with the defaults"
        )
    fault = Shape(Settings, noun="setting").fault(raw)
    return UsageError(f"{path}: {fault or error}")
