"""Workflows: a program of steps, checked before it starts, carried by a pure reducer.

For authors: ``validate.validate``, ``contract.contract``. The kernel: ``start`` and ``advance``.
What a run has come to: ``result.result``, ``summary``. Functions that are called like their module
are imported from it. The durable engine is imported by who runs it, never from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullswarm.lazy import exports

if TYPE_CHECKING:
    from bullswarm.workflow.faults import Advice, Fault
    from bullswarm.workflow.kernel import advance, replay, start
    from bullswarm.workflow.program import Program, Step, export, parse, read
    from bullswarm.workflow.result import options_for, summary
    from bullswarm.workflow.schema import program_schema
    from bullswarm.workflow.state import RunState

# A face that only prints a contract must not pay for the kernel.
__getattr__ = exports(
    __name__,
    {
        "faults": ("Advice", "Fault"),
        "kernel": ("advance", "replay", "start"),
        "program": ("Program", "Step", "export", "parse", "read"),
        "result": ("options_for", "summary"),
        "schema": ("program_schema",),
        "state": ("RunState",),
    },
)


__all__ = [
    "Advice",
    "Fault",
    "Program",
    "RunState",
    "Step",
    "advance",
    "export",
    "options_for",
    "parse",
    "program_schema",
    "read",
    "replay",
    "start",
    "summary",
]
