from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator

import pytest
from clikit import Cli

from bullswarm.errors import BullswarmError
from bullswarm.runs import App
from bullswarm.store import Home
from rig import World


@pytest.fixture
def echo(world: World) -> Iterator[World]:
    """A world with echo pools ``a`` and ``b``. A test that fails in the middle leaves no worker
    behind in it."""
    world.echo("a", "b")
    yield world
    with contextlib.suppress(BullswarmError):
        for agent in App(Home.open(str(world.bull)), env=world.env).store.agents():
            if agent.pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(agent.pid, signal.SIGKILL)


@pytest.fixture
def cli(echo: World, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line in this process, in such a world."""
    return Cli(echo, monkeypatch)
