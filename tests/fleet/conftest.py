"""A world whose environment is this process's own: the library is used where it will be used."""

from __future__ import annotations

import os

import pytest
from fleetkit import Machine

from rig import World


@pytest.fixture
def machine(world: World, monkeypatch: pytest.MonkeyPatch) -> Machine:
    for name in list(os.environ):
        monkeypatch.delenv(name)
    for name, value in world.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(world.work)
    return Machine(world)
