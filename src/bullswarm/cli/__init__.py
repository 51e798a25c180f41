"""The command line: parse, call, print. No rule lives here, and each verb is imported only when
it is asked for, because agents call us in a loop."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import Any, NoReturn, TextIO

import click

from bullswarm import __version__

VERBS: dict[str, tuple[str, str]] = {
    "run": ("bullswarm.cli.run:run", "Send one task to the pool with quota to spare and judge it."),
    "pools": (
        "bullswarm.cli.pools:pools",
        "Show what every pool has left; pause, resume, release.",
    ),
    "workflow": ("bullswarm.cli.workflow:workflow", "Run a graph of steps that survives anything."),
    "assignments": ("bullswarm.cli.assignments:assignments", "Show what is running or waiting."),
    "cancel": ("bullswarm.cli.assignments:cancel", "End a running, waiting or held piece of work."),
    "runs": ("bullswarm.cli.records:runs", "List recorded runs, newest first."),
    "explain": ("bullswarm.cli.records:explain", "Read a routing decision back, number by number."),
    "health": (
        "bullswarm.cli.records:health",
        "Check the home, and judge every saved answer again.",
    ),
    "strategy": (
        "bullswarm.cli.strategy:strategy",
        "Configure assignments, subscriptions, limits.",
    ),
    "provider": (
        "bullswarm.cli.provider:provider",
        "List, validate, scaffold and probe providers.",
    ),
    "simulate": (
        "bullswarm.cli.simulate:simulate",
        "Compare policies on a simulated fleet, or on your own history.",
    ),
    "demo": ("bullswarm.cli.demo:demo", "See a routed, judged run without any CLI or login."),
}


class ReaderLeft(Exception):
    """Whoever read our output went away."""


class LazyGroup(click.Group):
    """A group that maps a verb to a module and imports it when it is called."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            # Before click takes it for a failure of ours.
            raise ReaderLeft from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = VERBS.get(cmd_name)
        if entry is None:
            return None
        from importlib import import_module

        module, _, attribute = entry[0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Help must not import every verb to print its first line.
        with formatter.section("Verbs"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in VERBS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in VERBS:
            from difflib import get_close_matches

            near = get_close_matches(name, VERBS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(
                f"No verb '{name}'.{hint} 'bullswarm --help' lists the verbs.", ctx
            )
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=(
        "Start with 'bullswarm demo', then 'bullswarm pools' and "
        "'bullswarm run --lane analyze \"...\"'. Exit codes: 0 it worked, 1 it did not, "
        "2 the input was wrong and nothing was started."
    ),
)
@click.option(
    "--home",
    metavar="DIR",
    help="Where bullswarm keeps its state (default: $BULLSWARM_HOME, else ~/.bullswarm).",
)
@click.version_option(__version__, prog_name="bullswarm")
@click.pass_context
def cli(ctx: click.Context, home: str | None) -> None:
    """Send coding work to whichever of your agent CLIs has subscription quota to spare, watch it
    to the end, and get the truth about what came back."""
    if home is not None and not home.strip():
        raise click.BadParameter("it is empty; name a folder, or leave it out", param_hint="--home")
    ctx.obj = home


def main(argv: list[str] | None = None) -> NoReturn:
    """The console script. Never shows a traceback for what a person can act on."""
    _ready_streams()
    code = _flushed(invoke(argv))
    if _nothing_waits_for_the_end():
        # Taking an interpreter apart costs as much as starting one, and agents call us in a loop.
        os._exit(code)
    sys.exit(code)


def _ready_streams() -> None:
    """Started with a closed stdin, stdout or stderr, the next file we open would take its number:
    what a worker or a library says there would land in it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A letter that the terminal does not have is shown in another way, never a failure.
        sys.stdout.reconfigure(errors="backslashreplace")


def _flushed(code: int) -> int:
    """The exit code once everything is written; 1 where it could not be, a full disk say."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            _let_go(stream)
        except OSError as error:
            _let_go(stream)
            if stream is sys.stdout:
                _say(f"the output could not be written: {error}")
                code = code or 1
    return code


def _let_go(stream: TextIO) -> None:
    """Whoever read it (head, less) went away, or there is no room for it: what is left has nowhere
    to go, and must not be tried again as the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        print(f"bullswarm: {text}", file=sys.stderr, flush=True)


def _nothing_waits_for_the_end() -> bool:
    """Whether no thread and no exit handler is left that an abrupt end would cut off."""
    import atexit
    import threading

    handlers = getattr(atexit, "_ncallbacks", None)
    return handlers is not None and handlers() == 0 and threading.active_count() == 1


def invoke(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    from bullswarm.errors import BullswarmError

    try:
        result: Any = cli.main(args=argv, prog_name="bullswarm", standalone_mode=False)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.Abort:
        _say("interrupted")
        return 130
    except click.ClickException as error:
        with contextlib.suppress(OSError):
            error.show()
            if isinstance(error, click.NoSuchOption) and error.option_name == "--home":
                print("It goes before the verb: bullswarm --home DIR ...", file=sys.stderr)
        return error.exit_code
    except BullswarmError as error:
        _say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        _say("interrupted")
        return 130
    except ReaderLeft:
        _let_go(sys.stdout)
        return 0
    except SystemExit as error:
        # What click does where the reader leaves in the middle of a help text.
        _let_go(sys.stdout)
        return 0 if error.code == 1 else int(error.code or 0)
    except OSError as error:
        # A full disk, a file that was taken away: the words name it. Only the current folder has no
        # name when it is gone.
        gone = isinstance(error, FileNotFoundError) and error.filename is None
        _say("the current folder is no longer there; go to one that is" if gone else str(error))
        return 1
    return result if isinstance(result, int) else 0
