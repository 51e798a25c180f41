"""Steering a run: pause, resume, cancel, rerun, accept, delete, doctor."""

from __future__ import annotations

from typing import Any

import click

from bullswarm.cli.common import NAME, Group, as_json, examples
from bullswarm.cli.output import note, print_json
from bullswarm.cli.workflow.common import app_of, check_name, find_run, tell


@click.command(
    epilog=examples("bullswarm workflow pause k3v9qa", "bullswarm workflow pause k3v9qa --now")
)
@click.argument("run", type=NAME)
@click.option("--now", is_flag=True, help="End the workers, too; they run again on resume.")
@as_json
@click.pass_context
def pause(ctx: click.Context, run: str, now: bool, json: bool) -> int:
    """Start nothing new until 'resume'."""
    from bullswarm.workflow.events import Paused

    app, folder = find_run(ctx, run)
    return tell(app, folder, lambda id, at: Paused(id=id, at=at, now=now), json=json, done="paused")


@click.command(epilog=examples("bullswarm workflow resume k3v9qa"))
@click.argument("run", type=NAME)
@as_json
@click.pass_context
def resume(ctx: click.Context, run: str, json: bool) -> int:
    """Go on: after a pause, or with a new kernel after a crash. Finished steps are not run again,
    and a worker that still lives is found again. Of two at once, one wins."""
    from bullswarm.workflow import control
    from bullswarm.workflow.events import Resumed
    from bullswarm.workflow.state import ENDED

    app, folder = find_run(ctx, run)
    folder.check()
    state = folder.read_state()
    if state is not None and state.phase in ENDED and not any(folder.mail()):
        text = (
            "the run was cancelled, and that is final"
            if state.phase == "cancelled"
            else f"the run has ended ({state.phase}); 'step rerun' or 'plan revise' opens it again"
        )
        if json:
            print_json({"ok": False, "why": text})
        else:
            note(text)
        return 1
    started = control.start_kernel(app, folder)
    if state is not None and state.phase == "paused":
        return tell(app, folder, lambda id, at: Resumed(id=id, at=at), json=json, done="resumed")
    text = "carried on" if started else "a kernel carries this run already"
    if json:
        print_json({"ok": True, "started": started, "why": text})
    else:
        click.echo(text)
    return 0


@click.command(
    epilog=examples("bullswarm workflow cancel k3v9qa", "bullswarm workflow cancel k3v9qa --kill")
)
@click.argument("run", type=NAME)
@click.option("--kill", is_flag=True, help="Kill the workers at once.")
@as_json
@click.pass_context
def cancel(ctx: click.Context, run: str, kill: bool, json: bool) -> int:
    """End the workers, then the run. What was done stays."""
    from bullswarm.workflow.events import CancelRequested

    app, folder = find_run(ctx, run)
    level = 2 if kill else 1
    return tell(
        app,
        folder,
        lambda id, at: CancelRequested(id=id, at=at, level=level),
        json=json,
        done="cancelled",
    )


@click.group(
    cls=Group,
    epilog=examples("bullswarm workflow step rerun k3v9qa write --reason WHY"),
)
def step() -> None:
    """Your word on one step."""


@step.command(
    epilog=examples(
        'bullswarm workflow step rerun k3v9qa write --reason "the fixture is there now"'
    )
)
@click.argument("run", type=NAME)
@click.argument("step_id", type=NAME, metavar="STEP")
@click.option("--reason", type=NAME, required=True, help="Why; it is kept with the run.")
@click.option("--dependents", is_flag=True, help="Also what was built on it.")
@as_json
@click.pass_context
def rerun(
    ctx: click.Context, run: str, step_id: str, reason: str, dependents: bool, json: bool
) -> int:
    """Do a step again. The reviews that judge it follow."""
    from bullswarm.workflow.events import StepRerun

    app, folder = find_run(ctx, run)
    check_name(folder, step_id)

    def make(id: str, at: Any) -> StepRerun:
        return StepRerun(id=id, at=at, step=step_id, reason=reason, dependents=dependents)

    return tell(app, folder, make, json=json, done=f"{step_id} runs again")


@step.command(
    epilog=examples(
        'bullswarm workflow step accept k3v9qa write --reason "good enough"',
        'bullswarm workflow step accept k3v9qa R2 --reason "we do without"',
    )
)
@click.argument("run", type=NAME)
@click.argument("target", type=NAME, metavar="STEP-OR-REQUIREMENT")
@click.option("--reason", type=NAME, required=True, help="Why; it is kept with the run.")
@as_json
@click.pass_context
def accept(ctx: click.Context, run: str, target: str, reason: str, json: bool) -> int:
    """Take a failed step, or a failing requirement, as it is: recorded as your choice, never as
    proof."""
    from bullswarm.workflow.events import StepAccepted

    app, folder = find_run(ctx, run)
    check_name(folder, target, requirements=True)

    def make(id: str, at: Any) -> StepAccepted:
        return StepAccepted(id=id, at=at, target=target, reason=reason)

    return tell(app, folder, make, json=json, done=f"{target} accepted")


@click.command(
    epilog=examples(
        "bullswarm workflow delete k3v9qa", "bullswarm workflow delete k3v9qa --discard"
    )
)
@click.argument("run", type=NAME)
@click.option("--discard", is_flag=True, help="Also work that was not merged, for good.")
@as_json
@click.pass_context
def delete(ctx: click.Context, run: str, discard: bool, json: bool) -> int:
    """Remove a run that is over, with its files. Work that was not merged stays unless --discard
    is given."""
    from bullswarm.workflow import control

    app, folder = find_run(ctx, run)
    control.delete(app, folder, discard=discard)
    if json:
        print_json({"deleted": folder.path.name})
    else:
        click.echo(f"{folder.path.name} is gone")
    return 0


@click.command(epilog=examples("bullswarm workflow doctor", "bullswarm workflow doctor --json"))
@as_json
@click.pass_context
def doctor(ctx: click.Context, json: bool) -> int:
    """Look at every run: end what dead kernels left, remove spent worktrees, name what is kept.
    A run that nobody carries is named with the command that goes on. Exit 1 where something needs
    you."""
    from bullswarm.workflow.doctor import examine

    app = app_of(ctx)
    report = examine(app)
    if json:
        print_json(report)
    else:
        for line in report.lines:
            click.echo(line)
        if not report.lines:
            click.echo("nothing to clean")
    return 1 if report.needs_caller else 0
