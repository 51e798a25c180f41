"""Requirements out of a goal: its numbered clauses, with the lines that belong to each."""

from __future__ import annotations

import re

from bullswarm.workflow.program import Program, Requirement

_CLAUSE = re.compile(r"^(?P<indent>[ \t]*)(?P<n>\d{1,3})[.)][ \t]+(?P<text>\S.*)$")
_FENCE = re.compile(r"^\s*(```|~~~)")


def clauses(goal: str) -> tuple[Requirement, ...]:
    """The goal's numbered clauses as R1, R2, ... in their order.

    A clause is a line that starts with ``1.`` or ``1)``. Lines below it that are indented deeper,
    or that go on without a blank line, belong to it; so does a nested numbered list. Numbers in
    a code block are none. A goal without numbers has no requirements.
    """
    found: list[list[str]] = []
    level: int | None = None
    open_, gap, fenced = False, False, False
    for line in goal.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        match = None if fenced else _CLAUSE.match(line)
        indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        if match is not None and (level is None or indent <= level):
            level = indent if level is None else level
            found.append([match["text"].rstrip()])
            open_, gap = True, False
        elif not line.strip():
            gap = True
        elif open_ and (not gap or fenced or indent > (level or 0)):
            if gap:
                found[-1].append("")
            found[-1].append(line.rstrip())
            gap = False
        else:
            open_ = False
    return tuple(
        Requirement(id=f"R{n}", text=_dedent(lines)) for n, lines in enumerate(found, start=1)
    )


def requirements_of(program: Program) -> tuple[Requirement, ...]:
    """The program's own list where it has one, else the goal's clauses."""
    return program.requirements if program.requirements is not None else clauses(program.goal)


def _dedent(lines: list[str]) -> str:
    from textwrap import dedent

    rest = dedent("\n".join(lines[1:]))
    return f"{lines[0]}\n{rest}".rstrip() if rest else lines[0]
