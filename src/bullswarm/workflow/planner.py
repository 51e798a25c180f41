"""An agent proposes the program. It only proposes: the same validation applies to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from bullswarm.errors import BullswarmError
from bullswarm.judge.schema import NotFound, find_json
from bullswarm.runs.app import App
from bullswarm.runs.engine import run_task
from bullswarm.runs.types import Cancelled, OnProgress, Task
from bullswarm.workflow.contract import contract
from bullswarm.workflow.control import unknown_pools
from bullswarm.workflow.requirements import clauses
from bullswarm.workflow.validate import validate

ROUNDS = 2
"""One proposal, and one more that is told every fault of the first."""

SCOUT = """Survey this folder for somebody who will plan work in it. Read only; change nothing.
Say what is there, how it is built and tested, what is fragile, and what the goal below will touch.
At most two pages.

The goal:
{goal}
"""

PLAN = """Plan the work for the goal below as a bullswarm workflow program: one JSON object, and
nothing else in your answer. Do none of the work yourself; change no file.

Each step goes to one coding agent that sees only its own prompt, so say there all it needs. Steps
without a dependency run at once; two that write the same file must depend on each other. Give every
step evidence that a command can prove where that is possible, and add a review for what no command
can prove.

The JSON Schema of a program:
{schema}

A valid example for this goal:
{example}

The goal:
{goal}
"""


def propose(
    app: App,
    goal: str,
    *,
    cwd: str,
    pool: str | None,
    scout: bool,
    on_progress: OnProgress,
    cancelled: Cancelled,
) -> Any:
    """A program for the goal by an agent on ``pool`` (None: the best one), after a survey where one
    is wanted. Gives the document, valid or not: the caller validates it like any other. Raises
    ``BullswarmError`` where the agent failed."""

    def ask(prompt: str) -> str:
        task = Task(prompt=prompt, lane="analyze", cwd=cwd, pool=pool, effort=None)
        verdict = run_task(app, task, on_progress=on_progress, cancelled=cancelled)
        if not verdict.ok or verdict.out_file is None:
            raise BullswarmError(f"no program was proposed: {verdict.why}")
        return Path(verdict.out_file).read_text(encoding="utf-8")

    terms = contract(goal)
    prompt = PLAN.format(
        schema=msgspec.json.encode(terms["schema"]).decode(),
        example=msgspec.json.format(msgspec.json.encode(terms["example"]), indent=1).decode(),
        goal=goal,
    )
    if scout:
        prompt += f"\nA survey of the folder:\n{ask(SCOUT.format(goal=goal))}\n"
    document: Any = None
    told = prompt
    for _ in range(ROUNDS):
        answer = ask(told)
        try:
            document = _for_goal(find_json(answer, "object"), goal)
        except NotFound as error:
            told = f"{prompt}\nYour last answer held no JSON object ({error}). Answer with one.\n"
            continue
        valid, faults, _advice = validate(document, folder=cwd)
        faults = unknown_pools(app, valid) if valid is not None else faults
        if not faults:
            break
        lines = "\n".join(f"- {fault.path}: {fault.message}" for fault in faults)
        told = f"{prompt}\nYour last program was refused:\n{lines}\nSend the whole program again.\n"
    if document is None:
        raise BullswarmError("no program was proposed: the answers held no JSON object")
    return document


def _for_goal(document: Any, goal: str) -> Any:
    """The proposal under the caller's own goal: what has to be met is not the planner's to say."""
    if not isinstance(document, dict):
        return document
    mine = {k: v for k, v in document.items() if k != "requirements" or not clauses(goal)}
    return {**mine, "goal": goal}
