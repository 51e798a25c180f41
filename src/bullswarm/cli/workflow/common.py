"""What the workflow verbs share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import click

from bullswarm.cli.common import home_of
from bullswarm.cli.output import note, print_json
from bullswarm.errors import BullswarmError, UsageError

ADVICE_LINES = 20
"""Of a long program's advice people are shown so much."""


def app_of(ctx: click.Context) -> Any:
    from bullswarm.runs.app import App

    return App.open(home=home_of(ctx))


def find_run(ctx: click.Context, given: str) -> tuple[Any, Any]:
    """The application and the run's folder."""
    from bullswarm.workflow.control import find

    app = app_of(ctx)
    return app, find(app, given)


def state_of(folder: Any) -> Any:
    """The run's newest state. Raises ``BullswarmError`` where there is none, and says why."""
    from bullswarm.workflow.control import carried, last_words

    folder.check()
    state = folder.read_state()
    if state is not None:
        return state
    if carried(folder):
        raise BullswarmError("the run has not begun yet; try again in a moment")
    raise BullswarmError(
        f"the run has not begun and nobody carries it ({last_words(folder)}): "
        f"bullswarm workflow resume {folder.path.name}"
    )


def check_name(folder: Any, given: str, *, requirements: bool = False) -> None:
    """Raises ``UsageError`` with the nearest name where the run has no such step."""
    from bullswarm.workflow.faults import near

    state = state_of(folder)
    known = [*state.steps, *([r.id for r in state.requirements] if requirements else [])]
    if given not in known:
        what = "step or requirement" if requirements else "step"
        raise UsageError(f"the run has no {what} {given!r}; {near(given, known)}")


def tell(
    app: Any,
    folder: Any,
    make: Callable[[str, datetime], Any],
    *,
    json: bool,
    done: str,
) -> int:
    """Send an event to the run's kernel and print its answer."""
    from bullswarm.workflow import control

    reply = control.tell(app, folder, make)
    if reply is None:
        why = "the kernel has not answered yet; the request stands in its mailbox"
        if json:
            print_json({"ok": None, "why": why})
        else:
            note(why)
        return 1
    if json:
        print_json(reply)
    elif reply.ok:
        click.echo(done + (f": {reply.why}" if reply.why else ""))
    else:
        note(f"refused: {reply.why}")
        for fault in reply.faults:
            fix = f" ({fault['fix']})" if fault.get("fix") else ""
            note(f"  {fault.get('path')}: {fault.get('message')}{fix}")
    return 0 if reply.ok else 2 if reply.faults else 1


def print_faults(faults: Sequence[Any], advice: Sequence[Any]) -> None:
    for fault in faults:
        fix = f" ({fault.fix})" if fault.fix else ""
        click.echo(f"{fault.path}: {fault.message}{fix}", err=True)
    print_advice(advice)


def print_advice(advice: Sequence[Any]) -> None:
    for one in advice[:ADVICE_LINES]:
        click.echo(f"advice: {one.path}: {one.message}", err=True)
    if len(advice) > ADVICE_LINES:
        rest = len(advice) - ADVICE_LINES
        click.echo(f"advice: and {rest} more (--json shows all of it)", err=True)
