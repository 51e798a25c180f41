"""``bullswarm run``: one task, one verdict."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

import click

from bullswarm.cli.common import (
    NAME,
    PATIENCE,
    SECONDS,
    Number,
    OnLimit,
    agent_of,
    as_json,
    examples,
    home_of,
    policy_options,
    preferred,
    read_prompt,
)
from bullswarm.errors import UsageError

LANES = click.Choice(["analyze", "build", "chore"])


@click.command(
    epilog=examples(
        'bullswarm run --lane analyze "Where is the config parsed?"',
        "bullswarm run --lane build --file task.md --timeout 1800",
        'bullswarm run --lane build "Fix the failing test" --dry-run',
        "echo 'Rename Foo to Bar everywhere' | bullswarm run --lane chore --json",
    )
)
@click.argument("prompt", required=False)
@click.option(
    "--lane",
    type=LANES,
    required=True,
    help="What kind of work it is: analyze reads, build edits, chore makes small mechanical edits.",
)
@click.option(
    "--file", "file", type=NAME, metavar="PATH", help="Read the prompt from a file; - is stdin."
)
@click.option("--cwd", type=NAME, metavar="DIR", help="Where the agent works (default: here).")
@click.option("--pool", type=NAME, metavar="POOL", help="Use this pool or none (a strict pin).")
@click.option(
    "--use",
    type=NAME,
    multiple=True,
    metavar="NAME",
    help="Only these pools or providers. Can be given several times.",
)
@click.option(
    "--avoid", type=NAME, multiple=True, metavar="NAME", help="None of these pools or providers."
)
@click.option("--model", type=NAME, metavar="MODEL", help="The model, in that CLI's own words.")
@click.option(
    "--effort", type=NAME, metavar="EFFORT", help="low, medium, high or what the CLI knows."
)
@click.option(
    "--capability", type=NAME, multiple=True, metavar="WORD", help="What the pool must declare."
)
@click.option(
    "--domain", type=NAME, metavar="WORD", help="The kind of problem, for a policy's domain lists."
)
@click.option(
    "--caller", type=NAME, metavar="NAME", help="The agent that called us (default: detected)."
)
@click.option("--no-caller", is_flag=True, help="Never hand the work back to the calling agent.")
@policy_options
@click.option(
    "--on-limit",
    type=OnLimit(),
    help="What a limit does to this run: bench and move on (also called reroute), hand it back, or"
    " wait for the reset (default: limits.mode of the configuration).",
)
@click.option("--hold/--no-hold", default=None, help="Hold the work until a pool has room.")
@click.option(
    "--patience",
    metavar="MINUTES",
    type=PATIENCE,
    help="Hold the work for so long at most, then give it to the least loaded pool.",
)
@click.option(
    "--timeout", metavar="SECONDS", type=SECONDS, help="End an attempt that takes longer."
)
@click.option(
    "--silence",
    metavar="SECONDS",
    type=SECONDS,
    help="End an attempt that says nothing for so long (default: the connector's).",
)
@click.option(
    "--heartbeat",
    metavar="SECONDS",
    type=Number(min=1, max=86400),
    help="Say on stderr, so often, that the agent is still at work.",
)
@click.option(
    "--retries",
    type=click.IntRange(0, 5),
    default=1,
    show_default=True,
    help="How often a failed attempt is tried again; limits never spend one.",
)
@click.option(
    "--answer-schema",
    type=NAME,
    metavar="FILE",
    help="The answer must be JSON of this JSON Schema.",
)
@click.option(
    "--deliverable",
    type=NAME,
    multiple=True,
    metavar="PATH",
    help="A file the run must produce. Can be given several times.",
)
@click.option(
    "--permission-mode",
    type=NAME,
    metavar="MODE",
    help="Passed on as it is, in that CLI's own words; needs --pool, or --use of one provider.",
)
@click.option("--dry-run", is_flag=True, help="Print the pick and its forecast; start nothing.")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
@as_json
@click.pass_context
def run(ctx: click.Context, /, prompt: str | None, file: str | None, **options: Any) -> int:
    """Send one task to the pool with quota to spare, watch it, and judge what came back.

    Exit 0: the verdict is ok. Exit 1: it is not, and says why. Exit 2: the input was wrong and
    nothing was started. Ctrl-C ends the agent and keeps the record; twice kills at once.
    """
    from bullswarm.cli.progress import Progress
    from bullswarm.cli.signals import Interrupts
    from bullswarm.runs import App, Task, dry_run, run_task

    text = read_prompt(prompt, file)
    app = App.open(home=home_of(ctx))
    if options["no_caller"] and options["caller"]:
        raise UsageError("--caller and --no-caller contradict each other: give one of them")
    if options["patience"] is not None and options["hold"] is False:
        raise UsageError("--patience is how long work is held: it can't go with --no-hold")
    named = options["caller"]
    caller = agent_of(app, named, "--caller") if named else app.caller()
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
        caller=None if options["no_caller"] else caller,
        policy=app.policy(
            strategy=options["strategy"],
            prefer=preferred(app, options["prefer"]) if options["prefer"] else None,
            quota_ceiling=options["quota_ceiling"],
            latency=options["latency"],
        ),
        on_limit=options["on_limit"],
        # Who says for how long wants it held.
        hold=True if options["patience"] is not None else options["hold"],
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
    # Whether somebody still reads it or not, the exit code is the verdict's.
    with contextlib.suppress(BrokenPipeError):
        if options["json"]:
            from bullswarm.cli.output import print_json

            print_json(verdict)
        else:
            from bullswarm.cli.verdict import print_verdict

            print_verdict(verdict)
    if interrupts.exit_code is not None:
        return interrupts.exit_code
    return 0 if verdict.ok else 1
