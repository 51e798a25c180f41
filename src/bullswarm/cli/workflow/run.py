"""``bullswarm workflow run``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from bullswarm.cli.common import NAME, OnLimit, as_json, examples
from bullswarm.cli.output import note, print_json
from bullswarm.cli.workflow.common import app_of, print_advice, print_faults
from bullswarm.errors import UsageError


@click.command(
    epilog=examples(
        "bullswarm workflow run program.yaml --watch",
        "cat program.json | bullswarm workflow run - --json",
        "bullswarm workflow run --orchestrator auto --scout --goal @goal.md",
    )
)
@click.argument("program", type=NAME, required=False)
@click.option(
    "--goal", type=NAME, help="With --orchestrator: what the program is for; @FILE reads a file."
)
@click.option(
    "--orchestrator", type=NAME, metavar="POOL", help="Let an agent propose the program; or 'auto'."
)
@click.option("--scout", is_flag=True, help="With --orchestrator: survey the folder first.")
@click.option("--cwd", type=NAME, metavar="DIR", help="Where the steps work (default: here).")
@click.option("--concurrency", type=click.IntRange(1, 256), help="Steps at once, at most.")
@click.option(
    "--verify-rounds",
    type=click.IntRange(0, 3),
    help="Fix and review again after a failed review, at most.",
)
@click.option(
    "--on-limit",
    type=OnLimit(),
    help="After a usage limit: go elsewhere, come back to you, or wait for the reset.",
)
@click.option("--watch", is_flag=True, help="Follow the run until it ends or needs you.")
@click.option("--dry-run", is_flag=True, help="Validate (or plan) and stop; nothing starts.")
@as_json
@click.pass_context
def run(
    ctx: click.Context,
    program: str | None,
    goal: str | None,
    orchestrator: str | None,
    scout: bool,
    cwd: str | None,
    concurrency: int | None,
    verify_rounds: int | None,
    on_limit: str | None,
    watch: bool,
    dry_run: bool,
    json: bool,
) -> int:
    """Start a PROGRAM (JSON or YAML; - is stdin), detached unless --watch.

    Exit 0: started (with --watch: completed). 1: it needs you or failed. 2: the program was
    refused, every fault named, nothing started.
    """
    from bullswarm.dispatch.environment import check_depth
    from bullswarm.dispatch.errors import DepthError
    from bullswarm.workflow import control
    from bullswarm.workflow.database import database_url
    from bullswarm.workflow.folder import RunFolder
    from bullswarm.workflow.program import parse, read
    from bullswarm.workflow.validate import validate

    app = app_of(ctx)
    folder = str(Path(cwd or ".").resolve())
    if not Path(folder).is_dir():
        raise UsageError(f"--cwd: {folder} is not a folder")
    try:
        check_depth(app.env, app.settings.config.depth_limit)
    except DepthError as error:
        note(str(error))
        return 1
    for name, given in (("--goal", goal is not None), ("--scout", scout)):
        if given and orchestrator is None:
            raise UsageError(f"{name} goes with --orchestrator; a program has its own goal")
    if (program is None) == (orchestrator is None):
        raise UsageError("give a program, or --orchestrator with --goal to have one proposed")
    if orchestrator is not None:
        from bullswarm.cli.progress import Progress
        from bullswarm.cli.signals import Interrupts
        from bullswarm.workflow.planner import propose

        text = _goal(goal)
        with Interrupts() as interrupts:
            document = propose(
                app,
                text,
                cwd=folder,
                pool=None if orchestrator == "auto" else orchestrator,
                scout=scout,
                on_progress=Progress(quiet=json, heartbeat_s=30),
                cancelled=interrupts.cancelled,
            )
    elif program == "-":
        document = parse(sys.stdin.read(), name="stdin")
    else:
        document = read(program or "")
    flags = {"concurrency": concurrency, "verifyRounds": verify_rounds, "onLimit": on_limit}
    wanted = {key: value for key, value in flags.items() if value is not None}
    if wanted and isinstance(document, dict):
        options = document.get("options", {})
        if isinstance(options, dict):
            document = {**document, "options": {**options, **wanted}}
    valid, faults, advice = validate(document, folder=folder)
    if valid is not None:
        faults = control.unknown_pools(app, valid)
    if valid is None or faults:
        if json:
            print_json({"ok": False, "faults": faults, "advice": advice})
        else:
            print_faults(faults, advice)
            note(f"refused: {len(faults)} fault(s); nothing was started")
        return 2
    if not json:
        print_advice(advice)
    if dry_run:
        if json:
            print_json({"ok": True, "advice": advice, "program": document})
        else:
            from bullswarm.workflow.program import export

            click.echo(export(valid, yaml=True))
        return 0
    database_url(app.env)
    meta = control.create(app, valid, cwd=folder)
    where = RunFolder(app.home.workflows / meta.run_id)
    control.start_kernel(app, where)
    short = meta.run_id[-6:]
    if not watch:
        if json:
            print_json({"runId": meta.run_id, "shortId": short, "folder": str(where.path)})
        else:
            click.echo(f"{short} started: bullswarm workflow watch {short}")
        return 0
    from bullswarm.cli.workflow.watch import follow

    if not json:
        click.echo(f"{short} started; Ctrl-C stops watching, not the run", err=True)
    return follow(app, where, json=json)


def _goal(goal: str | None) -> str:
    text = goal or ""
    if text.startswith("@"):
        path = Path(text[1:]).expanduser()
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--goal {goal}: can't be read ({error})") from error
    if not text.strip():
        raise UsageError("--orchestrator needs --goal: the text, or @FILE; it must not be empty")
    return text
