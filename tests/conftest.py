"""Fixtures that several rooms' tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rig import Rig, World


@pytest.fixture
def rig() -> Iterator[Rig]:
    """The stand-in for the providers' APIs, on a port of its own."""
    server = Rig()
    yield server
    server.close()


@pytest.fixture
def world(tmp_path: Path, rig: Rig) -> World:
    """Throwaway homes; nothing of the machine's own logins is in reach."""
    return World(tmp_path, rig)
