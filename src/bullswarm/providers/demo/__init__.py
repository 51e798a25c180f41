"""The demo fleet: pools with meters whose worker really edits a file. No CLI, no login."""

from __future__ import annotations

import os
from pathlib import Path


def set_up(home: str | os.PathLike[str]) -> Path:
    """Make ``home`` a home with the demo fleet and nothing else in it; gives a folder to work in.
    Raises ``BullswarmError`` where the folder can't be written."""
    from bullswarm.providers.demo.setup import set_up as make

    return make(home)
