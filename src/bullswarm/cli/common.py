"""What the verbs share: the home, --json, the policy flags, and reading a prompt."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from bullswarm.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])


def home_of(ctx: click.Context) -> str | None:
    """The --home that was given to the command line, if any."""
    home: str | None = ctx.find_root().obj
    return home


def as_json(command: F) -> F:
    """Adds ``--json``."""
    return click.option("--json", "json", is_flag=True, help="Print one JSON document.")(command)


def policy_options(command: F) -> F:
    """Adds the flags that choose a policy."""
    options = [
        click.option(
            "--strategy",
            type=click.Choice(["pace", "prefer-order", "most-quota", "lowest-latency"]),
            help="How to choose (default: policy.strategy of the configuration, else pace).",
        ),
        click.option(
            "--prefer", metavar="A,B,...", help="Pools or providers, best first (prefer-order)."
        ),
        click.option(
            "--quota-ceiling",
            type=click.FloatRange(0, 100),
            metavar="PCT",
            help="Skip a pool above this used% (not for pace).",
        ),
        click.option(
            "--latency", type=click.Choice(["fast", "slow"]), help="Prefer models of this class."
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def read_prompt(prompt: str | None, file: str | None) -> str:
    """The prompt from the argument, a file, or stdin. Raises ``UsageError`` where there is none,
    or two."""
    if prompt is not None and file is not None:
        raise UsageError("give the prompt as an argument or with --file, not both")
    if prompt is None and file is None:
        if sys.stdin.isatty():
            raise UsageError('the prompt is missing: bullswarm run --lane analyze "your task"')
        file = "-"
    if file == "-" or prompt == "-":
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    elif file is not None:
        path = Path(file).expanduser()
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise UsageError(f"--file {file}: {error.strerror or error}") from error
    else:
        text = prompt or ""
    if not text.strip():
        raise UsageError("the prompt is empty: say what the agent should do")
    return text
