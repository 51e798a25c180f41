"""``bullswarm demo``: a fleet with meters, a routed run and a verdict, without any CLI or login."""

from __future__ import annotations

import click

from bullswarm.cli.common import NAME, as_json, examples


@click.command(epilog=examples("bullswarm demo", "bullswarm demo --keep ./demo"))
@click.option(
    "--keep", type=NAME, metavar="DIR", help="Keep the demo's home there, to look around in."
)
@click.option(
    "--task",
    "prompt",
    type=NAME,
    default="Write a greeting into hello.md",
    show_default=True,
    help="What the demo's agent is asked to do.",
)
@as_json
def demo(keep: str | None, prompt: str, json: bool) -> int:
    """See bullswarm at work in a throwaway home: what every pool has left, which one is picked and
    why, an agent that really edits a file, and the verdict. Takes a few seconds; needs no login."""
    import shutil
    import tempfile
    from pathlib import Path

    from bullswarm.errors import UsageError

    if keep is not None:
        home = Path(keep).expanduser().absolute()
        if home.exists() and any(home.iterdir()):
            raise UsageError(f"--keep: {home} is not empty; name a new folder")
        home.mkdir(parents=True, exist_ok=True)
    else:
        home = Path(tempfile.mkdtemp(prefix="bullswarm-demo-"))
    try:
        return _demo(home, prompt, kept=keep is not None, json=json)
    finally:
        if keep is None:
            shutil.rmtree(home, ignore_errors=True)


def _demo(home: object, prompt: str, *, kept: bool, json: bool) -> int:
    import os
    import sys
    from pathlib import Path

    from bullswarm.cli.explain import print_decision
    from bullswarm.cli.output import coloured, paint, print_json
    from bullswarm.cli.pools import pools
    from bullswarm.cli.progress import Progress
    from bullswarm.cli.signals import Interrupts
    from bullswarm.cli.verdict import print_verdict
    from bullswarm.providers.demo import set_up
    from bullswarm.runs import App, Task, dry_run, run_task
    from bullswarm.runs.overview import overview

    path = Path(str(home))
    work = set_up(path)
    # No caller: the demo shows a routed run, whoever starts it.
    env = {k: v for k, v in os.environ.items() if k != "BULLSWARM_DEPTH"}
    app = App.open(str(path), env=env)
    task = Task(prompt=prompt, lane="build", cwd=str(work))

    def title(text: str) -> None:
        if not json:
            click.echo(paint(f"\n{text}", "key", coloured()))

    if not json:
        title("1. What every pool has left   (bullswarm pools)")
        context = click.Context(pools, obj=str(path))
        with context:
            pools.main(args=[], prog_name="bullswarm pools", standalone_mode=False, obj=str(path))
    rows = overview(app)
    title(f'2. Which pool, and why         (bullswarm run --lane build "{prompt}" --dry-run)')
    decision = dry_run(app, task)
    if not json:
        print_decision(decision, json=False)
    title(f'3. The run and its verdict     (bullswarm run --lane build "{prompt}")')
    progress = Progress(quiet=json, heartbeat_s=None)
    sys.stdout.flush()
    with Interrupts() as interrupts:
        verdict = run_task(app, task, on_progress=progress, cancelled=interrupts.cancelled)
    if json:
        print_json({"home": str(path), "pools": rows, "decision": decision, "verdict": verdict})
    else:
        print_verdict(verdict)
        if verdict.out_file:
            click.echo("\nWhat the agent said:")
            for line in Path(verdict.out_file).read_text(encoding="utf-8").splitlines():
                click.echo(f"  {line}")
        click.echo(
            f"\nLook around with: bullswarm --home {path} pools"
            if kept
            else "\nThat home is gone now; keep one with 'bullswarm demo --keep DIR'. "
            "With a real agent CLI installed, start with 'bullswarm pools'."
        )
    if interrupts.exit_code is not None:
        return interrupts.exit_code
    return 0 if verdict.ok else 1
