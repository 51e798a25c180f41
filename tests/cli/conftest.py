from __future__ import annotations

import pytest
from clikit import Cli

from rig import World


@pytest.fixture
def cli(world: World, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line in this process, with echo pools ``a`` and ``b``."""
    world.echo("a", "b")
    return Cli(world, monkeypatch)
