"""``bullswarm run``: one task, one verdict."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from bullswarm.cli.common import as_json, home_of, policy_options, read_prompt

LANES = click.Choice(["analyze", "build", "chore"])


@click.command()
@click.argument("prompt", required=False)
@click.option(
    "--lane",
    type=LANES,
    required=True,
    help="What kind of work it is: analyze reads, build edits, chore makes small mechanical edits.",
)
@click.option("--file", "file", metavar="PATH", help="Read the prompt from a file; - is stdin.")
@click.option("--cwd", metavar="DIR", help="Where the agent works (default: here).")
@click.option("--pool", metavar="POOL", help="Use this pool or none (a strict pin).")
@click.option("--use", multiple=True, metavar="NAME", help="Only these pools or providers.")
@click.option("--avoid", multiple=True, metavar="NAME", help="None of these pools or providers.")
@click.option("--model", metavar="MODEL", help="The model, in that CLI's own words.")
@click.option("--effort", metavar="EFFORT", help="low, medium, high or what the CLI knows.")
@click.option("--capability", multiple=True, metavar="WORD", help="What the pool must declare.")
@click.option("--domain", metavar="WORD", help="The kind of problem, for a policy's domain lists.")
@click.option("--caller", metavar="NAME", help="The agent that called us (default: detected).")
@click.option("--no-caller", is_flag=True, help="Never hand the work back to the calling agent.")
@policy_options
@click.option(
    "--on-limit",
    type=click.Choice(["reroute", "return", "wait"]),
    help="What a limit does to this run (default: limits.mode of the configuration).",
)
@click.option("--hold/--no-hold", default=None, help="Hold the work until a pool has room.")
@click.option("--patience", metavar="MINUTES", type=click.FloatRange(min=0), help="With --hold.")
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True))
@click.option("--silence", metavar="SECONDS", type=click.FloatRange(min=0, min_open=True))
@click.option("--heartbeat", metavar="SECONDS", type=click.FloatRange(min=1))
@click.option("--retries", type=click.IntRange(0, 5), default=1, show_default=True)
@click.option(
    "--answer-schema", metavar="FILE", help="The answer must be JSON of this JSON Schema."
)
@click.option("--deliverable", multiple=True, metavar="PATH", help="A file the run must produce.")
@click.option("--permission-mode", metavar="MODE", help="Passed on as it is; needs --pool.")
@click.option("--dry-run", is_flag=True, help="Print the pick and its forecast; start nothing.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
@as_json
@click.pass_context
def run(ctx: click.Context, /, prompt: str | None, file: str | None, **options: Any) -> int:
    """Send one task to the pool with quota to spare, watch it, and judge what came back.

    \b
      bullswarm run --lane analyze "Where is the config parsed?"
      bullswarm run --lane build --file task.md --timeout 1800
      bullswarm run --lane build "Fix the failing test" --dry-run

    Exit 0: the verdict is ok. Exit 1: it is not, and says why. Exit 2: the input was wrong and
    nothing was started. Ctrl-C ends the agent and keeps the record; twice kills at once.
    """
    from bullswarm.cli.progress import Progress
    from bullswarm.cli.signals import Interrupts
    from bullswarm.runs import App, Task, dry_run, run_task

    text = read_prompt(prompt, file)
    app = App.open(home=home_of(ctx))
    task = Task(
        prompt=text,
        lane=options["lane"],
        cwd=str(Path(options["cwd"] or ".").resolve()),
        pool=options["pool"],
        use=tuple(options["use"]),
        avoid=tuple(options["avoid"]),
        model=options["model"],
        effort=options["effort"],
        capabilities=tuple(options["capability"]),
        domain=options["domain"],
        caller=None if options["no_caller"] else (options["caller"] or app.caller()),
        policy=app.policy(
            strategy=options["strategy"],
            prefer=options["prefer"],
            quota_ceiling=options["quota_ceiling"],
            latency=options["latency"],
        ),
        on_limit={"reroute": "quarantine"}.get(options["on_limit"], options["on_limit"]),
        hold=options["hold"],
        patience_minutes=options["patience"],
        timeout_s=options["timeout"],
        silence_s=options["silence"],
        retries=options["retries"],
        answer_schema=options["answer_schema"],
        deliverables=tuple(options["deliverable"]),
        permission_mode=options["permission_mode"],
    )
    if options["dry_run"]:
        from bullswarm.cli.explain import print_decision

        decision = dry_run(app, task)
        print_decision(decision, json=options["json"])
        return 0 if decision.pool is not None or decision.hold is not None else 1
    quiet = options["quiet"] or (options["json"] and not sys.stderr.isatty())
    progress = Progress(quiet=quiet, heartbeat_s=options["heartbeat"])
    with Interrupts() as interrupts:
        verdict = run_task(app, task, on_progress=progress, cancelled=interrupts.cancelled)
    if options["json"]:
        from bullswarm.cli.output import print_json

        print_json(verdict)
    else:
        from bullswarm.cli.verdict import print_verdict

        print_verdict(verdict)
    if interrupts.exit_code is not None:
        return interrupts.exit_code
    return 0 if verdict.ok else 1
