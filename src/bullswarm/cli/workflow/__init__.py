"""``bullswarm workflow``: run a program of steps across pools, watch it, steer it, read it back."""

from __future__ import annotations

from importlib import import_module

import click

from bullswarm.cli.common import Group, examples

VERBS: dict[str, tuple[str, str]] = {
    "run": ("run:run", "Start a program; detached, or followed with --watch."),
    "watch": ("watch:watch", "Follow a run, one line an event."),
    "runs": ("show:runs", "List workflow runs, newest first."),
    "show": ("show:show", "Where a run and its steps stand, and what is asked of you."),
    "result": ("show:result", "The versioned result document; --summary in lines."),
    "pause": ("steer:pause", "Start nothing new; --now also ends the workers."),
    "resume": ("steer:resume", "Go on after a pause, a crash or a reboot."),
    "cancel": ("steer:cancel", "End the workers, then the run."),
    "step": ("steer:step", "Do a step again, or accept it as it is."),
    "plan": ("plan:plan", "The program's contract; validate, export, revise."),
    "delete": ("steer:delete", "Remove a run that is over."),
    "doctor": ("steer:doctor", "Find and clean what a crash left."),
}


class Lazy(Group):
    """Imports a verb when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module, _, name = VERBS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f"{__name__}.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, line) for name, (_, line) in VERBS.items()])


@click.group(
    cls=Lazy,
    epilog=examples(
        'bullswarm workflow plan contract --goal "1. The parser accepts tabs"',
        "bullswarm workflow run program.yaml --watch",
        "bullswarm workflow show k3v9qa",
        "bullswarm workflow resume k3v9qa",
    ),
)
def workflow() -> None:
    """Run a graph of steps across pools: validated, proven where it can be proven, durable."""
