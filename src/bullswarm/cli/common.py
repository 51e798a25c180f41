"""What the verbs share: the home, --json, checked values, the policy flags, reading a prompt."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from bullswarm.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])


class Name(click.types.StringParamType):
    """A word that must not be empty: an unset shell variable is a mistake, not a choice. It must
    be UTF-8, because records are."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = words_of(str(value))
        if not encodable(text):
            self.fail(f"{text!a} is not UTF-8", param, ctx)
        if not text.strip():
            self.fail("it is empty; name one, or leave the option out", param, ctx)
        return text


def words_of(text: str) -> str:
    """An argument as it was typed: in a locale without its letters Python hands them on as raw
    bytes."""
    if encodable(text):
        return text
    try:
        return os.fsencode(text).decode()
    except (UnicodeDecodeError, UnicodeEncodeError):
        return text


def encodable(text: str) -> bool:
    """Whether a text has no raw bytes or half letters in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class OnLimit(click.Choice):  # type: ignore[type-arg]
    """A limits mode, the same words wherever one is asked for. Rerouting is what the mode
    ``quarantine`` does, so both words name it."""

    def __init__(self) -> None:
        super().__init__(["quarantine", "reroute", "return", "wait"])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        word: str = super().convert(value, param, ctx)
        return "quarantine" if word == "reroute" else word


class Number(click.FloatRange):
    """A finite number in a range: neither ``nan`` nor ``inf`` is one."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number", param, ctx)
        return number


NAME = Name()
SECONDS = Number(min=0, min_open=True, max=366 * 86400)
PERCENT = Number(min=0, max=100)
PATIENCE = Number(min=0, max=525600)
"""In minutes, up to a year: the bound of the setting."""


class Group(click.Group):
    """A group that says which verb was probably meant, whatever click's version."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        verb = args[0] if args else ""
        known = self.list_commands(ctx)
        if verb and not verb.startswith("-") and verb not in known:
            from difflib import get_close_matches

            near = get_close_matches(verb, known, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            path = ctx.command_path
            raise click.UsageError(
                f"No verb '{verb}' in '{path}'.{hint} There are: {', '.join(known)}.", ctx
            )
        return super().resolve_command(ctx, args)


def examples(*lines: str) -> str:
    """The end of a verb's help: what to type."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def home_of(ctx: click.Context) -> str | None:
    """The --home that was given to the command line, if any."""
    home: str | None = ctx.find_root().obj
    return home


def as_json(command: F) -> F:
    """Adds ``--json``."""
    return click.option("--json", "json", is_flag=True, help="Print one JSON document.")(command)


def policy_options(command: F) -> F:
    """Adds the flags that choose a policy."""
    from bullswarm.routing.types import STRATEGIES

    options = [
        click.option(
            "--strategy",
            type=click.Choice(STRATEGIES),
            help="How to choose (default: policy.strategy of the configuration, else pace).",
        ),
        click.option(
            "--prefer",
            type=NAME,
            metavar="A,B,...",
            help="Pools or providers, best first (prefer-order).",
        ),
        click.option(
            "--quota-ceiling",
            type=PERCENT,
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


def agent_of(app: Any, name: str, field: str) -> str:
    """The provider or pool that a calling agent's name stands for, whether it is on or off.
    Raises ``UsageError`` for a name that is neither."""
    known: str = app.preferred(name, field)
    return known


def preferred(app: Any, text: str, field: str = "--prefer") -> tuple[str, ...]:
    """The pools and providers in a list such as ``codex,claude``. Raises ``UsageError`` for an
    empty list and an unknown name."""
    names = [word.strip() for word in text.split(",") if word.strip()]
    if not names:
        raise UsageError(f"{field}: name pools or providers, best first: codex,claude-code")
    return tuple(app.preferred(name, field) for name in names)


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
        try:
            text = sys.stdin.buffer.read().decode("utf-8", "replace")
        except OSError as error:
            raise UsageError(f"stdin can't be read: {error.strerror or error}") from error
    elif file is not None:
        path = Path(file).expanduser()
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise UsageError(f"--file {file}: {error.strerror or error}") from error
    else:
        # Odd bytes in it are for the agent to make sense of.
        text = words_of(prompt or "").encode("utf-8", "replace").decode()
    if not text.strip():
        raise UsageError("the prompt is empty: say what the agent should do")
    return text
