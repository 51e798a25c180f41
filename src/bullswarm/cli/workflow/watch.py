"""``bullswarm workflow watch``: one line an event."""

from __future__ import annotations

import time
from typing import Any

import click
import msgspec

from bullswarm.cli.common import NAME, Number, as_json, examples
from bullswarm.cli.output import coloured, note, paint
from bullswarm.cli.workflow.common import find_run

LOOK_S = 0.2
QUIET_S = 3.0
"""How long a run may be without a kernel before that is said: one may be on its way up."""
UNTIL = ("end", "attention", "completed")


@click.command(
    epilog=examples(
        "bullswarm workflow watch k3v9qa",
        "bullswarm workflow watch k3v9qa --until attention --timeout 600",
    )
)
@click.argument("run", type=NAME)
@click.option("--next", "next_", is_flag=True, help="Print the next event, then stop.")
@click.option(
    "--until",
    type=click.Choice(UNTIL),
    default="end",
    show_default=True,
    help="Stop at the end, as soon as a step needs you, or only when all is done.",
)
@click.option("--from-start/--new", default=True, help="Past events first (default), or not.")
@click.option("--timeout", type=Number(min=0), metavar="SECONDS", help="Stop after this.")
@as_json
@click.pass_context
def watch(
    ctx: click.Context,
    run: str,
    next_: bool,
    until: str,
    from_start: bool,
    timeout: float | None,
    json: bool,
) -> int:
    """Follow a run. Ctrl-C stops watching, not the run. Exit 0: it completed (or the event came);
    1: it ended otherwise, needs you, or the time was up. --json prints one document a line."""
    app, folder = find_run(ctx, run)
    folder.check()
    return follow(
        app,
        folder,
        json=json,
        next_=next_,
        until=until,
        timeout_s=timeout,
        after=0 if from_start and not next_ else folder.events_written(),
    )


def follow(
    app: Any,
    folder: Any,
    *,
    json: bool,
    next_: bool = False,
    until: str = "end",
    timeout_s: float | None = None,
    after: int = 0,
) -> int:
    """Print events until the run ends, needs the caller, or time is up."""
    from bullswarm.workflow import control
    from bullswarm.workflow.state import ENDED

    told: set[str] = set()
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    quiet_since: float | None = None
    while True:
        for n, event in folder.events(after):
            after = n
            _print(n, event, json)
            if next_:
                return 0
        state = folder.read_state()
        if state is not None and not folder.events(after):
            needy = {s.id for s in state.steps.values() if s.status == "needs-caller"}
            over = state.phase in (ENDED if until != "completed" else ENDED - {"partial"})
            if not over and not next_ and not (until == "attention" and needy):
                for name in sorted(needy - told):
                    _needs(state, name, json)
            told = needy
            if over:
                return _end(folder, state, json)
            if until == "attention" and needy:
                return _end(folder, state, json)
        waits = state is not None and state.phase in ENDED
        if control.carried(folder) or waits:
            quiet_since = None
        else:
            quiet_since = quiet_since or time.monotonic()
            if time.monotonic() - quiet_since > QUIET_S or _is_up(deadline):
                folder.check()
                note(
                    f"nobody carries this run ({control.last_words(folder)}); "
                    f"'bullswarm workflow resume {folder.path.name[-6:]}' goes on"
                )
                return 1
        if _is_up(deadline):
            note("still going; the time to watch is up")
            return 1
        time.sleep(LOOK_S)


def _is_up(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


def _end(folder: Any, state: Any, json: bool) -> int:
    from bullswarm.workflow.control import await_end, document
    from bullswarm.workflow.result import summary
    from bullswarm.workflow.state import ENDED

    if state.phase in ENDED:
        await_end(folder, state)
    if json:
        line = {"end": document(folder, state)}
        click.echo(msgspec.json.encode(line).decode())
    else:
        for text in summary(state):
            click.echo(text)
        for one in folder.kept():
            click.echo(f"  kept {one.path} ({one.branch}): {one.why}")
    return 0 if state.phase == "completed" else 1


def _needs(state: Any, name: str, json: bool) -> None:
    """A step came to need the caller while others go on."""
    from bullswarm.workflow.result import needs, result

    if json:
        found = next(s for s in result(state)["steps"] if s["id"] == name)
        click.echo(msgspec.json.encode({"needsCaller": found}).decode())
        return
    on = coloured()
    click.echo(paint(f"{name}: needs you", "bad", on))
    for line in needs(state, name):
        click.echo(line)


def _print(n: int, event: Any, json: bool) -> None:
    if json:
        click.echo(msgspec.json.encode({"n": n, "event": event}).decode())
        return
    words, tone = describe(event)
    on = coloured()
    stamp = event.at.astimezone().strftime("%H:%M:%S")
    click.echo(f"{paint(stamp, 'dim', on)} {paint(words, tone, on)}")


def describe(event: Any) -> tuple[str, str | None]:
    """One event in one line, and its tone."""
    name = type(event).__name__
    step = getattr(event, "step", None) or ""
    if name == "AttemptStarted":
        return f"{step}: started on {event.pool}", "key"
    if name == "AttemptEnded":
        o = event.outcome
        kind = f" [{o.failure_kind}]" if o.failure_kind else ""
        where = f" on {o.pool}" if o.pool else ""
        return f"{step}: {'ok' if o.ok else 'failed'}{kind}{where}: {o.why}", (
            "good" if o.ok else "bad"
        )
    if name == "EvidenceRan":
        bad = [c for c in event.checks if not c.ok]
        words = "passed" if not bad else f"failed: {bad[0].why}"
        return f"{step}: {len(event.checks)} check(s) {words}", "bad" if bad else "good"
    if name == "Held":
        until = f" until about {event.until.astimezone():%a %H:%M}" if event.until else ""
        return f"{step}: held{until}: {event.why}", "warn"
    if name == "Merged":
        return f"{step}: {'merged' if event.ok else 'not merged: ' + event.why}", (
            "good" if event.ok else "bad"
        )
    others = {
        "Paused": "paused" + (" at once" if getattr(event, "now", False) else ""),
        "Resumed": "resumed",
        "CancelRequested": "cancel asked for",
        "StepRerun": f"{step}: asked for again: {getattr(event, 'reason', '')}",
        "StepAccepted": f"{getattr(event, 'target', '')}: accepted by choice: "
        f"{getattr(event, 'reason', '')}",
        "PlanRevised": f"plan revised: {getattr(event, 'reason', '')}",
        "TimerFired": f"time for {getattr(event, 'timer', '')}",
        "Released": "room may be free again",
        "KernelRestarted": "carried on by a new process",
    }
    return others.get(name, name), "dim" if name in ("Released", "TimerFired") else "warn"
