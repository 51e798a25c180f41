"""Random graphs under random events: what must hold whatever happens."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from workflow_rig import NOW, program, quota

from bullswarm.workflow import events as ev
from bullswarm.workflow.commands import (
    Command,
    Finish,
    Merge,
    RunEvidence,
    SetTimer,
    StartAttempt,
    StopWorker,
)
from bullswarm.workflow.completion import complete, counts
from bullswarm.workflow.defaults import role_of
from bullswarm.workflow.graph import overlap
from bullswarm.workflow.kernel import advance, replay, start
from bullswarm.workflow.program import Program
from bullswarm.workflow.result import result, summary
from bullswarm.workflow.state import ACTIVE, ENDED, PASSED, CheckResult, decode, encode, find_step

KINDS = ("process", "provider", "stalled", "not-produced", "schema", "quota", "throttle", "auth")


def random_program(rng: Random) -> Program:
    n = rng.randint(1, 7)
    steps: list[dict[str, Any]] = []
    for i in range(n):
        earlier = [s["id"] for s in steps]
        needs = [e for e in earlier if rng.random() < 0.35]
        one: dict[str, Any] = {"id": f"s{i}", "prompt": "go", "dependsOn": needs}
        roll = rng.random()
        if roll < 0.15:
            one["role"] = "act"
        elif roll < 0.35 and earlier:
            makers = [s["id"] for s in steps if "evidenceFor" not in s]
            if makers:
                one["evidenceFor"] = [rng.choice(["R1", "R2", rng.choice(makers)])]
        if "evidenceFor" not in one:
            one["requirements"] = [r for r in ("R1", "R2") if rng.random() < 0.4]
            if rng.random() < 0.3:
                one["deliverable"] = {"type": "files", "paths": [f"out/{i}"]}
            if one.get("role") != "act" and rng.random() < 0.25:
                one["workspace"] = "own"
        if rng.random() < 0.4:
            one["evidence"] = [{"type": "command", "command": "true"}]
        steps.append(one)
    options: dict[str, Any] = {
        "concurrency": rng.randint(1, 4),
        "verifyRounds": rng.randint(0, 2),
        "onLimit": rng.choice(["reroute", "return", "wait"]),
    }
    if rng.random() < 0.15:
        options["maxAttempts"] = rng.randint(1, 6)
    return program(*steps, goal="1. one\n2. two", options=options)


class World:
    """Carries out commands in a random order, with random ends; what it says is always true."""

    def __init__(self, rng: Random, plan: Program) -> None:
        self.rng = rng
        self.now = NOW
        self.count = 0
        self.log: list[ev.Event] = []
        self.seen_ids: dict[str, int] = {}
        self.finished = 0
        self.todo: dict[str, Command] = {}
        self.workers: set[str] = set()
        self.started: set[str] = set()
        self.allowed: dict[str, int] = {}
        self.state, commands = start(plan, run_id="r", now=NOW)
        self.first = self.state
        self.take(commands)

    def send(self, kind: Any, **fields: Any) -> None:
        self.count += 1
        self.now += timedelta(seconds=self.rng.randint(0, 40))
        event = kind(id=f"e{self.count}", at=self.now, **fields)
        self.log.append(event)
        before = self.state
        self.state, commands = advance(before, event)
        if self.rng.random() < 0.1:
            again, none = advance(self.state, event)
            assert again is self.state and none == ()
        self.take(commands, restarted=kind is ev.KernelRestarted)
        self.check()

    def take(self, commands: tuple[Command, ...], restarted: bool = False) -> None:
        for one in commands:
            if isinstance(one, StartAttempt):
                self.check_start(one, restarted)
                self.todo[one.attempt_id] = one
            elif isinstance(one, RunEvidence | Merge):
                self.todo[one.attempt_id] = one
            elif isinstance(one, StopWorker):
                self.todo[f"stop {one.attempt_id}"] = one
            elif isinstance(one, SetTimer):
                self.todo[one.timer] = one
            elif isinstance(one, Finish):
                self.finished += 1
                assert self.state.phase == one.state

    def check_start(self, one: StartAttempt, restarted: bool) -> None:
        state = self.state
        for need in state.deps[one.step]:
            # A review that waits for nothing else may be looked for again after a restart.
            assert restarted or state.steps[need].status in PASSED, (one.step, need)
        attempts = state.steps[one.step].attempts
        mine = attempts[-1]
        assert mine.id == one.attempt_id and mine.n == one.n == len(attempts)
        assert one.n == 1 or one.reason != "first"
        if len(attempts) > 1 and role_of(find_step(state, one.step)) == "act":
            assert not attempts[-2].started or mine.by_caller
        if one.attempt_id in self.started:
            assert one.reattach or restarted

    def check(self) -> None:
        state = self.state
        active = [s for s in state.steps.values() if s.status in ACTIVE]
        working = [s for s in active if s.status != "merging"]
        assert len(working) <= self.width()
        for i, one in enumerate(active):
            for other in active[i + 1 :]:
                assert overlap(one.owns, other.owns) is None
        count = counts(state)
        parts = count.done + count.accepted + count.needs_caller + count.blocked
        assert count.total == parts + count.pending + count.active + count.cancelled
        for found in state.steps.values():
            cycle = [a for a in found.attempts[found.cycle :] if a.spent and a.ok is False]
            hard = [
                a
                for a in cycle
                if a.failure_kind not in ("quota", "throttle", "auth", "unavailable")
            ]
            assert len(hard) <= 2, [a.failure_kind for a in hard]
        if state.phase in ENDED:
            assert not active
            # A partial end always names somebody or something that can be steered.
            assert state.phase != "partial" or count.needs_caller or state.stopped_by
            assert (state.phase == "completed") == (complete(state) and state.phase != "cancelled")

    def width(self) -> int:
        return self.state.program.options.concurrency

    def act(self) -> None:
        """Answer one outstanding command."""
        key = self.rng.choice(sorted(self.todo))
        one = self.todo[key]
        rng = self.rng
        if isinstance(one, StartAttempt):
            self.work(key, one)
        elif isinstance(one, RunEvidence):
            del self.todo[key]
            good = rng.random() < 0.7
            checks = tuple(
                CheckResult(index=i, type="command", ok=good, why="passed" if good else "exit 1")
                for i, _ in enumerate(one.evidence)
            )
            self.send(ev.EvidenceRan, step=one.step, attempt_id=one.attempt_id, checks=checks)
        elif isinstance(one, Merge):
            del self.todo[key]
            good = rng.random() < 0.7
            self.send(ev.Merged, step=one.step, attempt_id=one.attempt_id, ok=good, why="x")
        elif isinstance(one, StopWorker):
            del self.todo[key]
            ask = self.todo.get(one.attempt_id)
            if isinstance(ask, StartAttempt):
                del self.todo[one.attempt_id]
                self.workers.discard(one.attempt_id)
                outcome = ev.Outcome(
                    ok=False,
                    failure_kind="cancelled",
                    why="stopped",
                    started=one.attempt_id in self.started,
                )
                self.send(
                    ev.AttemptEnded, step=one.step, attempt_id=one.attempt_id, outcome=outcome
                )
        elif isinstance(one, SetTimer):
            del self.todo[key]
            self.now = max(self.now, one.at)
            self.send(ev.TimerFired, timer=one.timer)

    def work(self, key: str, one: StartAttempt) -> None:
        rng = self.rng
        where = {"step": one.step, "attempt_id": one.attempt_id}
        if key not in self.workers:
            if rng.random() < 0.12 and not one.reattach:
                del self.todo[key]
                until = self.now + timedelta(minutes=5)
                self.send(ev.Held, **where, why="full", until=rng.choice([None, until]))
                return
            assert key not in self.started or one.reattach
            self.workers.add(key)
            self.started.add(key)
            pool = rng.choice(["claude", "codex"])
            self.send(ev.AttemptStarted, **where, pool=pool, provider=pool)
            return
        del self.todo[key]
        self.workers.discard(key)
        pool = rng.choice(["claude", "codex"])
        if rng.random() < 0.7:
            answer = None
            if one.answer_schema:
                ids = one.answer_schema["properties"]["requirements"]["items"]["properties"]["id"]
                answer = {
                    "requirements": [
                        {"id": i, "pass": rng.random() < 0.6, "reason": "so"}
                        for i in ids["enum"][: rng.randint(1, 9)]
                    ]
                }
            outcome = ev.Outcome(ok=True, pool=pool, provider=pool, answer=answer)
        else:
            kind: Any = rng.choice(KINDS)
            notice = quota(self.now + timedelta(hours=1)) if kind == "quota" else None
            outcome = ev.Outcome(
                ok=False, failure_kind=kind, why="no", pool=pool, provider=pool, notice=notice
            )
            if rng.random() < 0.1:
                outcome = ev.Outcome(
                    ok=False,
                    failure_kind="unavailable",
                    why="nobody",
                    started=False,
                    retry_at=self.now + timedelta(hours=1),
                )
        self.send(ev.AttemptEnded, **where, outcome=outcome)

    def meddle(self) -> None:
        """The caller says something, sensible or not."""
        rng = self.rng
        needy = [n for n, s in self.state.steps.items() if s.status == "needs-caller"]
        names = needy if needy and rng.random() < 0.7 else [*self.state.steps, "R1", "R2", "none"]
        name = rng.choice(names)
        roll = rng.randint(0, 9)
        if roll == 0:
            self.send(ev.Paused, now=rng.random() < 0.5)
        elif roll in (1, 2):
            self.send(ev.Resumed)
        elif roll in (3, 4):
            self.send(ev.StepRerun, step=name, reason="again", dependents=rng.random() < 0.5)
        elif roll == 5:
            self.send(ev.StepAccepted, target=name, reason="fine")
        elif roll == 6:
            self.send(ev.KernelRestarted, live=tuple(k for k in self.todo if rng.random() < 0.5))
        elif roll == 7:
            self.revise(name)
        elif roll == 8:
            self.send(ev.Released)
        elif rng.random() < 0.06:
            self.send(ev.CancelRequested, level=rng.randint(1, 2))

    def revise(self, name: str) -> None:
        rng = self.rng
        fields: dict[str, Any] = {"base_revision": self.state.revision - (rng.random() < 0.2)}
        what = rng.randint(0, 4)
        if what == 0:
            needs = [s.id for s in self.state.program.steps if rng.random() < 0.3]
            new = {"id": f"n{self.count}", "prompt": "more", "dependsOn": needs}
            fields["add"] = ({**new, "requirements": ["R1"]},)
        elif what == 1:
            fields["amend"] = ({"id": name, "prompt": "otherwise"},)
        elif what == 2:
            fields["remove"] = (name,)
        elif what == 3:
            fields["rerun"] = (name,)
        else:
            fields["options"] = {"maxAttempts": 60}
        self.send(ev.PlanRevised, **fields)


@settings(
    max_examples=250,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
@given(seed=st.integers(min_value=0, max_value=2**32))
def test_every_run_keeps_its_rules_and_ends(seed: int) -> None:
    rng = Random(seed)
    world = World(rng, random_program(rng))
    for _ in range(rng.randint(0, 120)):
        if world.todo and rng.random() < 0.8:
            world.act()
        else:
            world.meddle()
    # From here on the world only answers: the run has to come to its end by itself.
    if world.state.phase == "paused":
        world.send(ev.Resumed)
    for _ in range(4000):
        if world.state.phase in ENDED and not world.todo:
            break
        assert world.todo, ("stuck", world.state.phase, summary(world.state))
        world.act()
    assert world.state.phase in ENDED
    assert replay(world.first, world.log) == world.state
    assert decode(encode(world.state)) == world.state
    assert [ev.decode_event(ev.encode_event(e)) for e in world.log] == world.log
    assert result(world.state)["state"] == world.state.phase
