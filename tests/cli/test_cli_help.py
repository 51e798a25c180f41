"""Help that teaches, and words that are nearly right."""

from __future__ import annotations

import re
import shlex

import click
import pytest
from clikit import Cli, command, commands, verbs_of_help

from bullswarm.cli import VERBS

PATHS = commands()
LEAVES = [path for path in PATHS if not isinstance(command(path), click.Group)]


def ids(path: tuple[str, ...]) -> str:
    return " ".join(path) or "bullswarm"


def test_the_verbs_of_the_product_are_there() -> None:
    words = {" ".join(path) for path in PATHS}
    assert words >= {
        "run",
        "pools",
        "pools pause",
        "pools resume",
        "pools release",
        "assignments",
        "cancel",
        "runs",
        "explain",
        "health",
        "strategy assign",
        "strategy clear-assignment",
        "strategy set-subscription",
        "strategy set-provider",
        "strategy show",
        "provider list",
        "provider validate",
        "provider scaffold",
        "provider probe",
        "demo",
    }


def test_the_top_help_lists_every_verb_in_order(cli: Cli) -> None:
    out = cli("--help")
    assert out.code == 0
    assert verbs_of_help(out.stdout) == list(VERBS)
    assert "bullswarm demo" in out.stdout and "Exit codes: 0" in out.stdout


@pytest.mark.parametrize("path", [p for p in PATHS if p], ids=ids)
def test_help_says_what_it_does_and_shows_what_to_type(cli: Cli, path: tuple[str, ...]) -> None:
    for flag in ("--help", "-h"):
        out = cli(*path, flag)
        assert (out.code, out.stderr) == (0, "")
        assert out.stdout.startswith(f"Usage: bullswarm {' '.join(path)}")
        assert "Traceback" not in out.stdout
    examples = out.stdout.partition("Examples:")[2]
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    assert lines, f"'bullswarm {ids(path)} --help' shows no example"
    joined = re.sub(r"\s*\n\s{6,}", " ", examples)
    assert f"bullswarm {path[0]}" in joined


@pytest.mark.parametrize("path", [p for p in PATHS if p], ids=ids)
def test_the_examples_of_the_help_parse(path: tuple[str, ...]) -> None:
    epilog = command(path).epilog or ""
    lines = [line.strip() for line in epilog.splitlines() if "bullswarm " in line]
    assert lines
    for line in lines:
        words = shlex.split(line.rpartition(" | ")[2])[1:]
        found: tuple[str, ...] = ()
        while words and (*found, words[0]) in PATHS:
            found = (*found, words.pop(0))
        assert found, line
        verb = command(found)
        # Raises a UsageError for an unknown flag, a wrong choice, a missing argument.
        with verb.make_context(found[-1], words, resilient_parsing=False):
            pass


@pytest.mark.parametrize("path", LEAVES, ids=ids)
def test_every_flag_says_what_it_is_for(path: tuple[str, ...]) -> None:
    for parameter in command(path).params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{ids(path)} {parameter.opts[0]} has no help"


@pytest.mark.parametrize("path", LEAVES, ids=ids)
def test_every_verb_has_json(path: tuple[str, ...]) -> None:
    assert any("--json" in p.opts for p in command(path).params)


def test_the_version(cli: Cli) -> None:
    from bullswarm import __version__

    out = cli("--version")
    assert (out.code, out.stdout) == (0, f"bullswarm, version {__version__}\n")


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (["rnu"], "Did you mean 'run'?"),
        (["polls"], "Did you mean 'pools'?"),
        (["assigments"], "Did you mean 'assignments'?"),
        (["pools", "paus", "echo:a"], "Did you mean 'pause'?"),
        (["strategy", "asign", "echo:a"], "Did you mean 'assign'?"),
        (["provider", "lst"], "Did you mean 'list'?"),
        (["pools", "--jsno"], "--json"),
        (["run", "--lan", "analyze", "x"], "--lane"),
        (["run", "--lane", "analyze", "--dry-rnu", "x"], "--dry-run"),
        (["health", "--jason"], "--json"),
        (["pools", "--home", "x"], "bullswarm --home DIR"),
    ],
    ids=" ".join,
)
def test_a_word_that_is_nearly_right_is_named(cli: Cli, argv: list[str], hint: str) -> None:
    before = cli.settled()
    out = cli(*argv)
    assert out.code == 2
    assert out.stdout == "" and hint in out.stderr
    assert cli.settled() == before


@pytest.mark.parametrize(
    "argv", [["frobnicate"], ["pools", "frobnicate"], ["strategy", "frobnicate"]], ids=" ".join
)
def test_a_word_that_is_near_nothing_lists_what_there_is(cli: Cli, argv: list[str]) -> None:
    out = cli(*argv)
    assert out.code == 2 and "frobnicate" in out.stderr and "Did you mean" not in out.stderr
    assert "There are:" in out.stderr or "lists the verbs" in out.stderr


def test_no_words_at_all_show_the_help(cli: Cli) -> None:
    out = cli()
    assert "Verbs:" in out.text and out.code in (0, 2)
