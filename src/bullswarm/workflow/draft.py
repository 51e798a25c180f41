"""A state in the making: what one event changes, gathered before it is handed back."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from bullswarm.workflow.commands import Command, Reply
from bullswarm.workflow.defaults import role_of
from bullswarm.workflow.faults import Fault
from bullswarm.workflow.graph import judged
from bullswarm.workflow.program import Options, Step
from bullswarm.workflow.state import ACTIVE, AttemptState, RunState, StepState


class Draft:
    """Copies what it changes; the state it came from stays as it was."""

    def __init__(self, state: RunState, at: datetime) -> None:
        self.base = state
        self.at = at
        self.steps: dict[str, StepState] = dict(state.steps)
        self.commands: list[Command] = []
        self.defs: dict[str, Step] = {s.id: s for s in state.all_steps}
        self.poke = False

    @property
    def options(self) -> Options:
        return self.base.program.options

    def change(self, **fields: Any) -> None:
        self.base = msgspec.structs.replace(self.base, **fields)
        if fields.keys() & {"program", "generated"}:
            self.defs = {s.id: s for s in self.base.all_steps}

    def put(self, name: str, **fields: Any) -> StepState:
        self.steps[name] = msgspec.structs.replace(self.steps[name], **fields)
        return self.steps[name]

    def put_last(self, name: str, **fields: Any) -> AttemptState:
        """Change the step's last attempt."""
        attempts = self.steps[name].attempts
        last = msgspec.structs.replace(attempts[-1], **fields)
        self.put(name, attempts=(*attempts[:-1], last))
        return last

    def current(self, name: str, attempt_id: str) -> AttemptState | None:
        """The step's last attempt where it is the one that is meant and has not ended."""
        step = self.steps.get(name)
        last = step.last if step is not None else None
        return (
            last if last is not None and last.id == attempt_id and last.state != "ended" else None
        )

    def active(self) -> list[str]:
        return [name for name, step in self.steps.items() if step.status in ACTIVE]

    def is_act(self, name: str) -> bool:
        return role_of(self.defs[name]) == "act"

    def judged(self, name: str) -> tuple[str, ...]:
        return judged(self.defs[name], self.defs)

    def writers(self, item: str) -> tuple[str, ...]:
        """The steps that work on a requirement, or the step itself where a review judges that."""
        return writers(self.defs, item)

    def reply(self, event_id: str, why: str = "", faults: tuple[Fault, ...] = ()) -> None:
        """Answer a caller: taken where nothing is said."""
        ok = not why and not faults
        self.commands.append(
            Reply(event_id=event_id, ok=ok, why=why, faults=faults, revision=self.base.revision)
        )

    def state(self) -> RunState:
        return msgspec.structs.replace(self.base, steps=self.steps)


def writers(defs: dict[str, Step], item: str) -> tuple[str, ...]:
    """The steps, reviews aside, that affect a requirement; or the step of that name."""
    if item in defs:
        return (item,)
    return tuple(n for n, s in defs.items() if item in s.requirements and not s.evidence_for)
