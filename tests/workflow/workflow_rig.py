"""A pretended engine for the reducer: small programs, events by hand, and a world that answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from bullswarm.dispatch.types import Notice, Usage
from bullswarm.workflow import events as ev
from bullswarm.workflow.commands import Command, Finish, Notify, Reply, StartAttempt
from bullswarm.workflow.kernel import advance, start
from bullswarm.workflow.program import Program
from bullswarm.workflow.state import CheckResult, RunState, StepState
from bullswarm.workflow.validate import validate

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def step(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "prompt": f"do {name}", "dependsOn": list(needs), **more}


def document(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"schemaVersion": 3, "steps": list(steps), **more}


def program(*steps: dict[str, Any], **more: Any) -> Program:
    made, faults, _ = validate(document(*steps, **more))
    assert made is not None, faults
    return made


def command_check(line: str = "true") -> dict[str, Any]:
    return {"type": "command", "command": line}


def review(name: str, *judges: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "prompt": "look hard", "evidenceFor": list(judges), **more}


class Run:
    """A run under test: every event goes through the reducer, every command is kept."""

    def __init__(self, *steps: dict[str, Any], mode: Any = "quarantine", **more: Any) -> None:
        self.now = NOW
        self.events: list[ev.Event] = []
        self.state, commands = start(
            program(*steps, **more), run_id="r1", now=NOW, limits_mode=mode
        )
        self.first: RunState = self.state
        self.last: tuple[Command, ...] = commands
        self.commands: list[Command] = list(commands)

    def send(self, event: ev.Event) -> tuple[Command, ...]:
        self.events.append(event)
        self.state, self.last = advance(self.state, event)
        self.commands += self.last
        return self.last

    def make(self, kind: Any, **fields: Any) -> tuple[Command, ...]:
        return self.send(kind(id=f"e{len(self.events) + 1}", at=self.now, **fields))

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def of(self, name: str) -> StepState:
        return self.state.steps[name]

    def status(self, name: str) -> str:
        return self.of(name).status

    def attempt(self, name: str) -> str:
        last = self.of(name).last
        assert last is not None
        return last.id

    def started(self, name: str, pool: str = "claude") -> tuple[Command, ...]:
        return self.make(
            ev.AttemptStarted, step=name, attempt_id=self.attempt(name), pool=pool, provider=pool
        )

    def ended(self, name: str, ok: bool = True, pool: str = "claude", **fields: Any) -> Any:
        provider = fields.pop("provider", pool)
        outcome = ev.Outcome(ok=ok, pool=pool, provider=provider, **fields)
        return self.make(ev.AttemptEnded, step=name, attempt_id=self.attempt(name), outcome=outcome)

    def fails(self, name: str, kind: Any = "process", **fields: Any) -> tuple[Command, ...]:
        fields.setdefault("why", f"{kind} it was")
        found: tuple[Command, ...] = self.ended(name, ok=False, failure_kind=kind, **fields)
        return found

    def checked(self, name: str, *ok: bool, kinds: str = "", tail: str = "") -> Any:
        results = tuple(
            CheckResult(
                index=i,
                type="schema" if kinds[i : i + 1] == "s" else "command",
                ok=good,
                why="passed" if good else "the check exited 1",
                tail="" if good else tail,
            )
            for i, good in enumerate(ok)
        )
        return self.make(ev.EvidenceRan, step=name, attempt_id=self.attempt(name), checks=results)

    def says(self, name: str, pool: str = "codex", **verdicts: bool) -> tuple[Command, ...]:
        """The review answers: R1=True, ..."""
        answer = {
            "requirements": [
                {"id": i, "pass": good, "reason": f"{i} was looked at"}
                for i, good in verdicts.items()
            ]
        }
        found: tuple[Command, ...] = self.ended(name, pool=pool, answer=answer)
        return found


def starts(commands: Any) -> list[str]:
    return [c.step for c in commands if isinstance(c, StartAttempt)]


def only(commands: Any, kind: Any) -> Any:
    found = [c for c in commands if isinstance(c, kind)]
    assert len(found) == 1, commands
    return found[0]


def finish(commands: Any) -> Finish | None:
    return next((c for c in commands if isinstance(c, Finish)), None)


def reply(commands: Any) -> Reply:
    found: Reply = only(commands, Reply)
    return found


def notices(commands: Any) -> list[Notify]:
    return [c for c in commands if isinstance(c, Notify)]


def quota(resets_at: datetime | None = None) -> Notice:
    return Notice(kind="quota", text="limit reached", source="text", resets_at=resets_at)


def dollars(amount: float) -> Usage:
    return Usage(cost_usd=amount)
