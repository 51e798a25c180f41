"""bullswarm's command line in this process: as quick as a call, with what it printed."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from bullswarm.cli import VERBS, cli, invoke
from rig import World

SAY = "echo: answer The parser reads tokens from src/parser.py and builds a tree of nodes."
NOT_HERE = {"simulate"}
"""Verbs that have tests of their own elsewhere."""


@dataclass(frozen=True)
class Out:
    """How a call came back."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    @property
    def text(self) -> str:
        return self.stdout + self.stderr


class Cli:
    """Calls bullswarm in a world: its environment, its working folder, its home."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = world
        self.monkeypatch = monkeypatch
        for name in list(os.environ):
            monkeypatch.delenv(name)
        for name, value in world.env.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(world.work)

    def __call__(self, *argv: str, stdin: str | bytes = b"") -> Out:
        """An exception that gets out is a traceback for the user: it fails the test."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        out, err = io.BytesIO(), io.BytesIO()
        with self.monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
            patch.setattr(sys, "stdout", _stream(out))
            patch.setattr(sys, "stderr", _stream(err))
            code = invoke(list(argv))
            sys.stdout.flush()
            sys.stderr.flush()
            return Out(code, out.getvalue().decode(), err.getvalue().decode())

    def run(self, *argv: str, lane: str = "analyze", prompt: str = SAY) -> Out:
        return self("run", "--lane", lane, *argv, prompt)

    def configure(self, **sections: Any) -> None:
        file = self.world.bull / "state.json"
        known = json.loads(file.read_text()) if file.exists() else {}
        for section, fields in sections.items():
            known.setdefault(section, {}).update(fields)
        file.write_text(json.dumps(known))

    def script(self, name: str, *lines: str) -> None:
        """What an echo pool does before it reads its prompt."""
        text = "".join(f"echo: {line}\n" for line in lines)
        (self.world.root / "echo" / name / "script").write_text(text)

    def settled(self) -> dict[str, str]:
        """What a person configured and what was started, to be compared: digests by file."""
        bull = self.world.bull
        files = [bull / "state.json", *bull.glob("runs/*"), *bull.glob("providers/**/*")]
        files += bull.glob("workflows/**/*")
        return {
            str(f.relative_to(bull)): hashlib.sha256(f.read_bytes()).hexdigest()
            for f in files
            if f.is_file() and not f.name.startswith(".")
        }


def _stream(to: io.BytesIO) -> io.TextIOWrapper:
    """As the console script sets its own up."""
    return io.TextIOWrapper(to, encoding="utf-8", errors="backslashreplace")


def commands(root: click.Command = cli, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every verb there is, groups too, as the words that call it."""
    found = [path] if path else [()]
    if isinstance(root, click.Group):
        context = click.Context(root)
        for name in root.list_commands(context):
            if not path and name in NOT_HERE:
                continue
            child = root.get_command(context, name)
            assert child is not None, name
            found += commands(child, (*path, name))
    return found


def command(path: tuple[str, ...]) -> click.Command:
    found: click.Command = cli
    for word in path:
        assert isinstance(found, click.Group)
        child = found.get_command(click.Context(found), word)
        assert child is not None, path
        found = child
    return found


def verbs_of_help(text: str) -> list[str]:
    """The verbs that the top help lists."""
    lines = text.partition("Verbs:")[2].splitlines()
    words = [line.split()[0] for line in lines if line.startswith("  ") and line[2:3].strip()]
    return [word for word in words if word in VERBS]


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
