"""The durable half of the kernel: DBOS workflows around the pure reducer.

One workflow a run, whose only wait is its mailbox; one child an attempt, on the queue of the host
that holds the logins. A crash replays the events that were taken in, so the reducer comes to the
same state, and goes on from there. Imported by the kernel's own process alone.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NoReturn, ParamSpec, TypeVar

import msgspec
from dbos import DBOS, SetWorkflowID

from bullswarm.store.files import atomic_write
from bullswarm.workflow import kernel
from bullswarm.workflow import state as states
from bullswarm.workflow.carry import Carried, Carrier, InLine, explain_crash
from bullswarm.workflow.commands import (
    Command,
    DropWorkspace,
    Finish,
    Merge,
    Notify,
    Reply,
    RunEvidence,
    SetTimer,
    StartAttempt,
    StopWorker,
)
from bullswarm.workflow.control import document, leftovers
from bullswarm.workflow.events import (
    AttemptEnded,
    AttemptStarted,
    Event,
    EvidenceRan,
    Held,
    Merged,
    Outcome,
    TimerFired,
    decode_event,
    encode_event,
)
from bullswarm.workflow.folder import answer_of
from bullswarm.workflow.listing import list_run

T = TypeVar("T")
P = ParamSpec("P")
TOPIC = "events"
IDLE_S = 24 * 3600.0
OPENING_S = 5.0
QUEUE_POLL_S = 0.1

_here: dict[str, Any] = {}


def use(carrier: Carrier, queue: str) -> None:
    """Say whose run this process carries, before ``DBOS.launch``."""
    _here.update(carrier=carrier, queue=queue, lock=threading.Lock())


def run_id_of(carrier: Carrier, generation: int) -> str:
    """The durable workflow of a run; one that is opened again after its end is a new one."""
    return f"{carrier.meta.run_id}~{generation}"


def _carrier() -> Carrier:
    carrier: Carrier = _here["carrier"]
    return carrier


def _or_crash(work: Callable[[], T]) -> T:
    """What fails in here is our own trouble (a full disk, a folder that is gone), not the run's.
    DBOS would write it down as the workflow's end; a process that dies instead is resumed."""
    try:
        return work()
    except Exception as error:
        crash(error)


def crash(error: BaseException) -> NoReturn:
    """End this process at once, saying why; the run can be resumed."""
    while "over" in _here:
        # The run has ended and its engine is being put away; what a child meets there is nothing.
        time.sleep(1)
    try:
        why = explain_crash(error)
        with contextlib.suppress(OSError):
            _carrier().folder.error_file.write_text(why + "\n")
        with contextlib.suppress(OSError):
            print(f"kernel stopped: {why}", file=sys.stderr)
            traceback.print_exception(error)
            sys.stderr.flush()
    finally:
        # On a full disk not even that may be possible.
        os._exit(70)


def over() -> None:
    """The run has ended: from here on nothing is a crash."""
    _here["over"] = True


def _durable(name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A DBOS workflow that never ends with an error of ours; see ``_or_crash``."""

    def make(flow: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(flow)
        def whole(*args: P.args, **kwargs: P.kwargs) -> T:
            return _or_crash(lambda: flow(*args, **kwargs))

        return DBOS.workflow(name=name, max_recovery_attempts=None)(whole)

    return make


# the run


class Asks:
    """Names for the children. What is asked for again (held work, a merge that the caller takes
    after a conflict, anything in a run that was opened again) is a new child for the same one
    attempt; DBOS would take the old one's end for its answer."""

    def __init__(self, generation: int) -> None:
        self._generation = generation
        self._asked: dict[str, int] = {}

    def next(self, work: str) -> str:
        n = self._asked[work] = self._asked.get(work, 0) + 1
        return f"{work}#{self._generation}.{n}"


@_durable("run")
def run_flow(run_id: str, generation: int) -> str:
    state, commands = _opened(generation)
    n = DBOS.run_step({"name": "events"}, lambda: _or_crash(_carrier().folder.events_written))
    timers: dict[str, datetime] = {}
    asks = Asks(generation)
    # Who opens an ended run again has something to say; its message may be on its way.
    last_word_s = OPENING_S if generation > 1 else 0.0
    while True:
        for command in commands:
            _carry(command, timers, asks)
        event = _next_event(timers, last_word_s if state.phase in states.ENDED else None)
        last_word_s = 0.0
        if event is None:
            return state.phase
        state, commands = kernel.advance(state, event)
        n += 1
        DBOS.run_step({"name": "record"}, _record, n, encode_event(event).decode(), state)


def _opened(generation: int) -> tuple[states.RunState, tuple[Command, ...]]:
    def load() -> str:
        folder = _carrier().folder
        if generation == 1:
            return ""
        state = folder.read_state()
        if state is None:
            raise RuntimeError("a run that was opened again has no state")
        return states.encode(state).decode()

    text = DBOS.run_step({"name": "open"}, lambda: _or_crash(load))
    if text:
        return states.decode(text), ()
    carrier = _carrier()
    meta = carrier.meta
    state, commands = kernel.start(
        carrier.folder.read_program(),
        run_id=meta.run_id,
        limits_mode=meta.limits_mode,
        now=meta.created_at,
    )
    DBOS.run_step({"name": "record"}, _record, 0, "", state)
    return state, commands


def _record(n: int, event: str, state: states.RunState) -> None:
    def write() -> None:
        folder = _carrier().folder
        folder.check()
        taken = decode_event(event) if event else None
        if taken is not None:
            # Before the state: who follows both must not see the end without what led to it.
            folder.append_event(n, taken)
        folder.write_state(state)
        if state.phase != "running":
            _carrier().leave_line()
        if taken is not None:
            folder.taken(taken.id)

    _or_crash(write)


def _next_event(timers: dict[str, datetime], last_word_s: float | None) -> Event | None:
    """The next event. For a run that has ended ``last_word_s`` is set: None where nobody had a
    word within that time."""
    if last_word_s is not None:
        last = DBOS.recv(TOPIC, timeout_seconds=last_word_s)
        return None if last is None else decode_event(last)
    while True:
        wait = IDLE_S
        name = min(timers, key=lambda t: timers[t], default=None)
        if name is not None:
            wait = max(0.0, (timers[name] - datetime.now(UTC)).total_seconds())
        message = DBOS.recv(TOPIC, timeout_seconds=wait)
        if message is not None:
            return decode_event(message)
        if name is not None:
            at = timers.pop(name)
            return TimerFired(id=f"timer {name} {at.isoformat()}", at=at, timer=name)


def _carry(command: Command, timers: dict[str, datetime], asks: Asks) -> None:
    text = msgspec.json.encode(command).decode()
    match command:
        case StartAttempt():
            _child(attempt_flow, asks.next(command.attempt_id), text)
        case RunEvidence():
            _child(evidence_flow, asks.next(f"{command.attempt_id} evidence"), text)
        case Merge():
            _child(merge_flow, asks.next(f"{command.attempt_id} merged"), text)
        case StopWorker():
            DBOS.run_step(
                {"name": "stop"},
                lambda: _or_crash(lambda: _carrier().stop(command.attempt_id, command.level)),
            )
        case SetTimer():
            timers[command.timer] = command.at
        case DropWorkspace():
            DBOS.run_step({"name": "drop"}, lambda: _or_crash(lambda: _drop(command.step)))
        case Reply():
            answer = answer_of(command)
            DBOS.run_step(
                {"name": "reply"}, lambda: _or_crash(lambda: _carrier().folder.answer(answer))
            )
        case Finish():
            DBOS.run_step({"name": "finish"}, lambda: _or_crash(_finished))
        case Notify():
            pass


def _child(flow: Any, name: str, text: str) -> None:
    """Start a child by its name, which also names the event that it reports."""
    with SetWorkflowID(name):
        DBOS.enqueue_workflow(_here["queue"], flow, DBOS.workflow_id or "", name, text)


def _drop(step: str) -> None:
    left = _carrier().workspaces.drop(step)
    if left is not None:
        print(f"kept {left.path}: {left.why}", file=sys.stderr)


def _finished() -> None:
    carrier = _carrier()
    state = carrier.folder.read_state()
    if state is None:
        return
    leftovers(carrier.folder)
    # Before the result: who sees that finds the run listed as over.
    list_run(carrier.app, carrier.folder, carrier.meta, state.phase)
    text = msgspec.json.format(msgspec.json.encode(document(carrier.folder, state)), indent=2)
    atomic_write(carrier.folder.result_file, text + b"\n")


# the children


@_durable("attempt")
def attempt_flow(parent: str, ask: str, text: str) -> None:
    command = msgspec.json.decode(text, type=StartAttempt)
    name, step = command.attempt_id, command.step
    placed = DBOS.run_step({"name": "place"}, _place, text)
    at = datetime.fromisoformat(placed["at"])
    if "in line" in placed:
        wait = msgspec.json.decode(placed["in line"], type=InLine)
        _send(
            parent,
            Held(
                id=f"{ask} held",
                at=at,
                step=step,
                attempt_id=name,
                why=wait.why,
                until=wait.until,
            ),
        )
        return
    if "carried" in placed:
        carried = msgspec.json.decode(placed["carried"], type=Carried)
        spec = carried.spec
        _send(
            parent,
            AttemptStarted(
                id=f"{name} started",
                at=at,
                step=step,
                attempt_id=name,
                pool=spec.pool,
                provider=spec.provider,
                group=carried.group,
                model=spec.model,
            ),
        )
        worked = DBOS.run_step({"name": "work"}, _work, text, placed["carried"])
        at, ended = datetime.fromisoformat(worked["at"]), worked["outcome"]
    else:
        ended = placed["outcome"]
    outcome = msgspec.json.decode(ended, type=Outcome)
    _send(
        parent,
        AttemptEnded(id=f"{name} ended", at=at, step=step, attempt_id=name, outcome=outcome),
    )


def _place(text: str) -> dict[str, str]:
    command = msgspec.json.decode(text, type=StartAttempt)
    found = _or_crash(lambda: _carrier().place(command))
    kind = {Carried: "carried", InLine: "in line"}.get(type(found), "outcome")
    return {"at": _now(), kind: msgspec.json.encode(found).decode()}


def _work(text: str, carried: str) -> dict[str, str]:
    command = msgspec.json.decode(text, type=StartAttempt)
    placed = msgspec.json.decode(carried, type=Carried)
    outcome = _or_crash(lambda: _carrier().work(command, placed))
    return {"at": _now(), "outcome": msgspec.json.encode(outcome).decode()}


@_durable("evidence")
def evidence_flow(parent: str, ask: str, text: str) -> None:
    command = msgspec.json.decode(text, type=RunEvidence)
    ran = DBOS.run_step({"name": "evidence"}, _evidence, text)
    _send(parent, _ran(ask, command, ran))


def _evidence(text: str) -> dict[str, str]:
    command = msgspec.json.decode(text, type=RunEvidence)
    checks = _or_crash(lambda: _carrier().evidence(command))
    return {"at": _now(), "checks": msgspec.json.encode(checks).decode()}


def _ran(ask: str, command: RunEvidence, ran: dict[str, str]) -> EvidenceRan:
    return EvidenceRan(
        id=ask,
        at=datetime.fromisoformat(ran["at"]),
        step=command.step,
        attempt_id=command.attempt_id,
        checks=msgspec.json.decode(ran["checks"], type=tuple[states.CheckResult, ...]),
    )


@_durable("merge")
def merge_flow(parent: str, ask: str, text: str) -> None:
    command = msgspec.json.decode(text, type=Merge)
    done = DBOS.run_step({"name": "merge"}, _merge, command.step, command.deliverables)
    _send(
        parent,
        Merged(
            id=ask,
            at=datetime.fromisoformat(done["at"]),
            step=command.step,
            attempt_id=command.attempt_id,
            ok=done["ok"],
            why=done["why"],
            tail=done["tail"],
        ),
    )


def _merge(step: str, keep: tuple[str, ...]) -> dict[str, Any]:
    # Two merges at once into one folder would meet in git's own lock.
    with _here["lock"]:
        carrier = _carrier()
        done = _or_crash(lambda: carrier.workspaces.merge(step, f"bullswarm: {step}", keep))
    return {"at": _now(), "ok": done.ok, "why": done.why, "tail": done.tail}


def _send(parent: str, event: Event) -> None:
    DBOS.send(parent, encode_event(event).decode(), TOPIC)


def _now() -> str:
    return datetime.now(UTC).isoformat()
