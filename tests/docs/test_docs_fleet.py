"""The library's page: its examples run as they stand, and print what the page says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import bullswarm.providers.demo as demo
from bullswarm.providers.demo import set_up
from rig import World

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "fleet.md"
EXAMPLE = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)


def examples() -> list[tuple[str, str | None]]:
    return [(m[1], m[2] or None) for m in EXAMPLE.finditer(PAGE.read_text(encoding="utf-8"))]


def readme() -> list[tuple[str, str | None]]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return [(m[1], m[2] or None) for m in EXAMPLE.finditer(text)]


def vendor(world: World, name: str, alias: str, used: tuple[float, float]) -> None:
    """A stand-in for an agent CLI, under its own name: it needs no login and no network."""
    source = Path(demo.__file__).parent
    folder = world.bull / "providers" / name
    folder.mkdir(parents=True)
    shutil.copy(source / "agent.py", folder)
    connector = json.loads((source / "connector.json").read_text())
    connector |= {
        "name": name,
        "aliases": [alias] if alias else [],
        "homeDefault": f"~/.{name}",
        "homeEnv": f"STAND_IN_{len(name)}_HOME",
        "args": [*connector["args"], "{permission_args}"],
        "permissionArgs": ["--permission", "{permission}"],
        "optIn": False,
        "models": [],
    }
    (folder / "connector.json").write_text(json.dumps(connector))
    home = world.home / f".{name}"
    home.mkdir()
    now = datetime.now(UTC)
    windows: list[dict[str, Any]] = [
        {"minutes": 300, "usedPct": used[0], "resetsAt": (now + timedelta(hours=3)).isoformat()},
        {"minutes": 10080, "usedPct": used[1], "resetsAt": (now + timedelta(days=3)).isoformat()},
    ]
    (home / "meter.json").write_text(json.dumps({"windows": windows}))


@pytest.fixture
def machine(world: World) -> World:
    vendor(world, "claude-code", "claude", (30, 40))
    vendor(world, "codex", "", (20, 35))
    return world


def run(world: World, source: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        cwd=world.work,
        env=world.env,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(("source", "output"), examples(), ids=lambda v: None)
def test_an_example_of_the_page_runs(machine: World, source: str, output: str | None) -> None:
    done = run(machine, source)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert done.stdout.strip()
    if output is not None:
        assert done.stdout == output
    assert not machine.alive()


@pytest.mark.parametrize(("source", "output"), readme(), ids=lambda v: None)
def test_the_example_of_the_readme_runs(machine: World, source: str, output: str | None) -> None:
    done = run(machine, source)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert done.stdout.strip()


def test_there_are_examples() -> None:
    assert len(examples()) >= 11 and sum(1 for _, output in examples() if output) >= 7
    assert readme()


def test_the_examples_pass_a_strict_checker(tmp_path: Path) -> None:
    files = []
    for n, (source, _) in enumerate(examples()):
        file = tmp_path / f"example_{n}.py"
        file.write_text(source)
        files.append(str(file))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", *files],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert done.returncode == 0, done.stdout


def test_the_page_names_every_strategy_and_result_field() -> None:
    from bullswarm import RunResult
    from bullswarm.routing.types import STRATEGIES

    page = PAGE.read_text(encoding="utf-8")
    assert all(f"| `{strategy}`" in page for strategy in STRATEGIES)
    assert all(f"`{field}`" in page for field in RunResult.__struct_fields__)


def test_the_reference_is_the_docstrings() -> None:
    script = ROOT / "tools" / "api_reference.py"
    done = subprocess.run([sys.executable, script, "--check"])
    assert done.returncode == 0, "run: python tools/api_reference.py"


def test_the_reference_has_every_public_name_and_method() -> None:
    import bullswarm

    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert all(f"\n### {name}\n" in page for name in bullswarm.__all__)
    for name in vars(bullswarm.Fleet):
        if not name.startswith("_"):
            assert f"\n#### Fleet.{name}\n" in page


def test_every_public_value_can_be_looked_at() -> None:
    """``help`` and editors read the signature: every name in it has to be there."""
    import inspect
    import typing

    import bullswarm

    for name in bullswarm.__all__:
        found = getattr(bullswarm, name)
        assert inspect.getdoc(found), name
        typing.get_type_hints(found)
        if not issubclass(found, Exception):
            assert inspect.signature(found) is not None


def test_set_up_takes_a_text_for_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert set_up("here") == tmp_path / "here" / "work"
