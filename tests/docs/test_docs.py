"""The pages tell the truth: their commands exist, examples run, tables are the code's."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from rig import World

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def commands() -> list[tuple[str, list[str]]]:
    found = []
    for page in PAGES:
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            for line in block.splitlines():
                line = line.split("   #")[0].strip()
                if " | " in line:
                    line = line.split(" | ")[-1]
                if line.startswith("bullswarm "):
                    found.append((page.name, shlex.split(line)[1:]))
    return found


def test_there_are_commands_in_the_pages() -> None:
    assert len(commands()) > 25


@pytest.mark.parametrize(("page", "argv"), commands(), ids=lambda v: str(v))
def test_every_command_in_the_pages_parses(page: str, argv: list[str]) -> None:
    """Verb and flags exist, whatever the arguments are."""
    from bullswarm.cli import cli

    group: click.Command = cli
    context = click.Context(cli)
    rest = list(argv)
    while isinstance(group, click.Group) and rest and not rest[0].startswith("-"):
        found = group.get_command(context, rest[0])
        assert found is not None, f"{page}: no verb {rest[0]!r} in {' '.join(argv)}"
        group, rest = found, rest[1:]
    flags = {option for p in group.params for option in p.opts + p.secondary_opts}
    for word in rest:
        if word.startswith("--"):
            assert word.split("=")[0] in flags, f"{page}: no flag {word} in {' '.join(argv)}"


def test_the_program_in_the_readme_is_valid(tmp_path: Path) -> None:
    from bullswarm.workflow.program import parse
    from bullswarm.workflow.validate import validate

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)[0]
    program, faults, _ = validate(parse(example), folder=tmp_path)
    assert program is not None, faults


def test_the_tables_of_the_workflow_page_are_the_codes() -> None:
    script = ROOT / "tools" / "docs_tables.py"
    assert subprocess.run([sys.executable, script, "--check"]).returncode == 0


def test_the_verdict_page_names_every_field() -> None:
    from bullswarm.judge.types import Verdict

    page = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    fields = set(json.loads(__import__("msgspec").json.encode(Verdict(ok=True))))
    missing = {f for f in fields if f"`{f}`" not in page} - {"exitCode", "wallS", "usage", "notes"}
    assert not missing


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_commands_of_a_first_hour_run(world: World) -> None:
    """What the pages tell a newcomer to type, on fixture pools."""
    world.echo("a")
    for argv in (
        ["pools"],
        ["run", "--lane", "analyze", "echo: answer The config is parsed in src/config.py."],
        ["run", "--lane", "build", "echo: write x.txt hi", "--dry-run"],
        ["runs"],
        ["assignments"],
        ["health"],
        ["strategy", "show"],
        ["provider", "list"],
        ["workflow", "plan", "contract", "--goal", "1. The parser accepts tabs"],
        ["pools", "pause", "echo:a", "--until", "2h"],
        ["pools", "resume", "echo:a"],
        ["pools", "release", "echo:a"],
        ["strategy", "set-subscription", "echo:a", "--reserve", "20"],
    ):
        ran = world.bullswarm(*argv)
        assert ran.code == 0, (argv, ran.stdout, ran.stderr)
