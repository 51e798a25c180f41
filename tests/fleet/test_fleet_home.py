"""Homes: the one that is named is used, and no other; what changes in it is seen at once."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
from pathlib import Path
from typing import Any

import pytest
from fleetkit import Machine, ask

from bullswarm import BullswarmError, Fleet, Policy
from rig import World


def files(folder: Path) -> dict[str, int]:
    return {str(p): p.stat().st_mtime_ns for p in sorted(folder.rglob("*"))}


def other(machine: Machine, tmp_path: Path) -> tuple[World, Path]:
    """A second home with an account of its own."""
    root = tmp_path / "second"
    root.mkdir()
    world = World(root, machine.world.rig)
    world.echo("z")
    return world, world.bull


def test_a_named_home_is_used_and_the_default_one_left_alone(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.account("a")
    _, home = other(machine, tmp_path)
    before, user = files(machine.world.bull), files(machine.world.home)
    fleet = Fleet(home=home)
    result = fleet.run_sync(ask())
    assert result.ok and result.account == "echo:z" and result.verdict is not None
    assert str(result.verdict.out_file).startswith(str(home))
    fleet.run_many_sync([ask(), ask()])
    fleet.route_sync(ask())
    assert files(machine.world.bull) == before
    assert files(machine.world.home) == user
    assert os.environ["BULLSWARM_HOME"] == str(machine.world.bull)


def test_what_a_worker_calls_finds_the_same_home(machine: Machine, tmp_path: Path) -> None:
    _, home = other(machine, tmp_path)
    result = Fleet(home=home).run_sync(ask("echo: env BULLSWARM_HOME"))
    assert result.text == f"BULLSWARM_HOME is {home}"


def test_the_default_home_is_the_command_lines(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.account("a")
    assert Fleet().run_sync(ask()).ok
    assert len(machine.world.bullswarm("runs", "--json").json["runs"]) == 1
    monkeypatch.delenv("BULLSWARM_HOME")
    Fleet()
    assert (machine.world.home / ".bullswarm").is_dir()


def test_a_home_that_cant_be_used_is_told(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BullswarmError, match="is a file, not a folder"):
        Fleet(home=tmp_path / "file")


def test_two_fleets_on_two_homes_in_one_program(machine: Machine, tmp_path: Path) -> None:
    machine.account("a")
    _, home = other(machine, tmp_path)
    one, two = Fleet(), Fleet(home=str(home))

    async def main() -> list[Any]:
        return await asyncio.gather(*(f.run(ask()) for f in (one, two) for _ in range(3)))

    results = asyncio.run(main())
    assert [r.account for r in results] == ["echo:a"] * 3 + ["echo:z"] * 3


def test_fleets_that_are_gone_keep_nothing_open(machine: Machine) -> None:
    machine.account("a")
    assert Fleet().run_sync(ask()).ok
    gc.collect()
    before = open_files(machine.world.bull)
    for _ in range(5):
        assert Fleet().run_sync(ask()).ok
        Fleet().route_sync(ask())
    gc.collect()
    assert open_files(machine.world.bull) == before == []


def open_files(folder: Path) -> list[str]:
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(str(link.readlink()))
    return [path for path in found if path.startswith(str(folder))]


def test_a_fleet_that_lives_long_sees_what_changes(machine: Machine) -> None:
    a = machine.account("a", 10, 10)
    fleet = Fleet(policy=Policy(prefer=[a]))
    assert fleet.route_sync(ask()).account == a
    b = machine.account("b", 10, 10)
    assert machine.world.bullswarm("pools", "pause", a).code == 0
    assert fleet.route_sync(ask()).account == b
    assert fleet.run_sync(ask()).account == b
    assert machine.world.bullswarm("pools", "resume", a).code == 0
    assert fleet.run_sync(ask()).account == a
