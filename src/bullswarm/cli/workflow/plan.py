"""The program's contract, and changing a plan while it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from bullswarm.cli.common import NAME, Group, as_json, examples
from bullswarm.cli.output import print_json
from bullswarm.cli.workflow.common import find_run, print_faults, state_of, tell
from bullswarm.errors import UsageError


@click.group(
    cls=Group,
    epilog=examples(
        'bullswarm workflow plan contract --goal "1. The parser accepts tabs"',
        "bullswarm workflow plan validate program.yaml",
    ),
)
def plan() -> None:
    """Write a program, check it, change it while it runs."""


@plan.command(
    epilog=examples(
        'bullswarm workflow plan contract --goal "1. The parser accepts tabs"',
        "bullswarm workflow plan contract --schema",
    )
)
@click.option("--goal", type=NAME, help="The goal; its numbered clauses become requirements.")
@click.option("--schema", "only_schema", is_flag=True, help="Only the JSON Schema, for an editor.")
@as_json
def contract(goal: str | None, only_schema: bool, json: bool) -> int:
    """Print the program's JSON Schema and an example program for the goal, which validates."""
    from bullswarm.workflow.contract import contract as make

    document = make(goal)
    print_json(document["schema"] if only_schema else document)
    return 0


@plan.command(
    epilog=examples(
        "bullswarm workflow plan validate program.yaml",
        "cat program.json | bullswarm workflow plan validate - --json",
    )
)
@click.argument("program", type=NAME)
@click.option("--cwd", type=NAME, metavar="DIR", help="The working folder, for schema files.")
@as_json
def validate(program: str, cwd: str | None, json: bool) -> int:
    """Check a program (- is stdin): every fault at once, with its path. Exit 2 where there is one.
    Advice is no refusal."""
    from bullswarm.workflow.program import parse, read
    from bullswarm.workflow.validate import validate as check

    document = parse(sys.stdin.read(), name="stdin") if program == "-" else read(program)
    valid, faults, advice = check(document, folder=str(Path(cwd or ".").resolve()))
    if json:
        print_json({"ok": valid is not None, "faults": faults, "advice": advice})
    else:
        print_faults(faults, advice)
        if valid is not None:
            click.echo(f"valid: {len(valid.steps)} steps")
    return 0 if valid is not None else 2


@plan.command(epilog=examples("bullswarm workflow plan export k3v9qa --yaml"))
@click.argument("run", type=NAME)
@click.option("--yaml", "as_yaml", is_flag=True, help="YAML, for people to change.")
@as_json
@click.pass_context
def export(ctx: click.Context, run: str, as_yaml: bool, json: bool) -> int:
    """Print a run's program as it stands, revisions included; as JSON unless --yaml."""
    from bullswarm.workflow.program import export as text

    if as_yaml and json:
        raise UsageError("--yaml or --json, not both")
    _, folder = find_run(ctx, run)
    state = folder.read_state()
    program = state.program if state is not None else folder.read_program()
    click.echo(text(program, yaml=as_yaml), nl=False)
    return 0


@plan.command(
    epilog=examples("bullswarm workflow plan revise k3v9qa changes.yaml --base-revision 1")
)
@click.argument("run", type=NAME)
@click.argument("changes", type=NAME)
@click.option("--base-revision", type=int, help="The revision you looked at (default: in CHANGES).")
@click.option("--reason", default="", help="Why; it is kept with the run.")
@as_json
@click.pass_context
def revise(
    ctx: click.Context, run: str, changes: str, base_revision: int | None, reason: str, json: bool
) -> int:
    """Change the plan while it runs. CHANGES is JSON or YAML (- is stdin) with any of add (steps),
    amend (objects with id and the keys to change), remove (ids), rerun (ids), options, goal. It is
    refused where the plan has moved on since the base revision."""
    from bullswarm.workflow.events import PlanRevised
    from bullswarm.workflow.program import parse, read

    app, folder = find_run(ctx, run)
    document = parse(sys.stdin.read(), name="stdin") if changes == "-" else read(changes)
    if not isinstance(document, dict):
        raise UsageError("CHANGES must be an object with add, amend, remove, rerun, ...")
    base = base_revision if base_revision is not None else document.pop("baseRevision", None)
    document.pop("baseRevision", None)
    if base is None:
        now = state_of(folder).revision
        raise UsageError(f"--base-revision is missing; the plan is at revision {now}")

    def make(id: str, at: Any) -> PlanRevised:
        given = {"reason": reason, **document}
        head = {"event": "PlanRevised", "id": id, "at": at, "baseRevision": base}
        unknown = set(document) - {"add", "amend", "remove", "rerun", "options", "goal", "reason"}
        if unknown:
            raise UsageError(f"CHANGES: unknown key {', '.join(sorted(unknown))}")
        try:
            return msgspec.convert({**given, **head}, PlanRevised)
        except msgspec.ValidationError as error:
            raise UsageError(f"CHANGES: {error}") from error

    return tell(app, folder, make, json=json, done="plan revised")
