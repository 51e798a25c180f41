"""From a piece of work to a pool: route and register in one transaction, or wait in line for it.

Every process serves the same line in the same order: oldest first within a priority. A pick is made
as if everybody ahead had been placed already, so nobody is overtaken and nobody blocks a pool that
those ahead do not want.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from bullswarm.dispatch.clocks import Clocks
from bullswarm.providers.types import Account, Provider
from bullswarm.routing import Waiting, admit, serve
from bullswarm.routing.types import Admission, Decision, Policy, Request, Snapshot, Work
from bullswarm.runs.app import App
from bullswarm.runs.snapshot import read_pools, take_snapshot
from bullswarm.runs.types import Cancelled, OnProgress, Progress
from bullswarm.store import Agent, DecisionRecord, me

Queued = Literal["waiting", "held"]

LOOK_S = 0.2
"""How often a piece of work in line looks whether anything changed."""

LOOK_AGAIN_S = 5.0
"""And how often it is routed again when nothing did: meters move without telling us."""


class Want(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work that wants a pool. ``agent_id`` names the attempt to be. ``block`` False:
    where it has to wait, it stands in line and the caller asks again. ``wait_margin_s``: how long
    after a reset a wait for it ends."""

    agent_id: str
    run_id: str
    request: Request
    policy: Policy
    admission: Admission
    cwd: str
    purpose: str
    step_id: str | None = None
    priority: int = 0
    wait_for_reset: bool = False
    wait_margin_s: float = 30.0
    fresh: bool = False
    not_before: datetime | None = None
    block: bool = True


class Placed(msgspec.Struct, frozen=True, kw_only=True):
    """A pool was found and the work is registered on it."""

    decision: Decision
    decision_id: str
    provider: Provider
    account: Account
    waited_s: float = 0.0


class NotPlaced(msgspec.Struct, frozen=True, kw_only=True):
    """No pool took the work: the caller keeps it, nothing can run it, it was ``cancelled``, or it
    stands in line until about ``until`` (only where ``Want.block`` is False)."""

    decision: Decision
    decision_id: str | None = None
    cancelled: bool = False
    until: datetime | None = None
    why: str = ""


def ignore_progress(_: Progress) -> None:
    """For who does not watch."""


def place(
    app: App,
    want: Want,
    *,
    on_progress: OnProgress = ignore_progress,
    cancelled: Cancelled = lambda: 0,
) -> Placed | NotPlaced:
    """Route ``want`` and register it in one transaction across processes; wait while caps, the
    admission rule or a known reset say so. What waits is shown by ``assignments`` and can be
    cancelled there. After a jump of the clocks the meters are read again before the pick."""
    started = time.monotonic()
    want = _as_long_as_it_was(app, want)
    clocks = Clocks()
    fresh: bool | Collection[str] = want.fresh
    told = ""
    reset: tuple[datetime, str] | None = None
    while True:
        if stopped := _stopped(app, want, cancelled):
            return stopped
        pools = read_pools(app, fresh)
        fresh = False
        with app.store.exclusive():
            snapshot, decision = _decide(app, want, take_snapshot(app, pools))
            until, state, why = _wait(want, decision, app.now())
            if until is None and reset is not None:
                until, state, why = _margin(want, *reset, app.now())
            if until is None:
                return _finish(app, want, snapshot, decision, time.monotonic() - started)
            _stand_in_line(app, want, state, until, why)
            # What happens from here on, while others are told of the wait, must wake it.
            seen = app.store.version()
        if not want.block:
            return NotPlaced(decision=decision, until=until, why=why)
        line = f"{why}; until about {until.astimezone():%a %H:%M:%S}"
        if line != told:
            on_progress(Progress(kind=state, text=line, until=until))
            told = line
        if want.wait_for_reset and decision.pool is None and decision.retry_at is not None:
            reset = (decision.retry_at, why)
        if stopped := _sleep(app, want, until, seen, cancelled):
            return stopped
        if clocks.look():
            fresh = True


def _as_long_as_it_was(app: App, want: Want) -> Want:
    """With what is known of how long it takes: a limit cut an earlier attempt off."""
    piece, _, n = want.agent_id.rpartition(".")
    if not piece or n == "1" or want.request.ran_minutes:
        return want
    ran = app.store.cut_off_minutes(piece)
    request = msgspec.structs.replace(want.request, ran_minutes=ran)
    return msgspec.structs.replace(want, request=request) if ran else want


def decide(app: App, want: Want, *, fresh: bool = False) -> tuple[Snapshot, Decision]:
    """The decision as it would be now; registers nothing."""
    return _decide(app, want, take_snapshot(app, read_pools(app, fresh)))


def ready(app: App, run_id: str) -> frozenset[str]:
    """The ids of a run's work in line that would not have to wait if it asked now, everybody ahead
    served first. Registers nothing; for who does not block in ``place``."""
    line = app.store.line()
    mine = {agent.id for agent in line if agent.run_id == run_id}
    if not mine:
        return frozenset()
    asks = [ask for agent in line for ask in _waiting(agent)]
    made = serve(take_snapshot(app, read_pools(app)), asks)
    # What can't be read was written by another version: let it ask for itself.
    unread = mine - made.keys()
    return frozenset(unread | {i for i in mine & made.keys() if made[i].hold is None})


def _decide(app: App, want: Want, snapshot: Snapshot) -> tuple[Snapshot, Decision]:
    """The decision, and the snapshot it was made on: with those ahead in line placed already."""
    ahead = []
    for agent in app.store.line():
        if agent.id == want.agent_id:
            break
        if agent.priority >= want.priority:
            ahead.extend(_waiting(agent))
    if ahead:
        made = serve(snapshot, ahead)
        placed = tuple(
            Work(
                id=one.id,
                pool=pool,
                lane=one.request.lane,
                started_at=snapshot.now,
                model=made[one.id].model,
                ran_minutes=one.request.ran_minutes,
            )
            for one in ahead
            if (pool := made[one.id].pool) is not None and not made[one.id].keep_on_caller
        )
        snapshot = msgspec.structs.replace(snapshot, work=(*snapshot.work, *placed))
    return snapshot, admit(snapshot, want.request, want.policy, want.admission)


def _waiting(agent: Agent) -> list[Waiting]:
    if agent.request is None:
        return []
    try:
        return [
            Waiting(
                id=agent.id,
                request=msgspec.convert(agent.request["request"], Request),
                policy=msgspec.convert(agent.request["policy"], Policy),
                admission=msgspec.convert(agent.request["admission"], Admission),
            )
        ]
    except (msgspec.ValidationError, KeyError):
        # Another version wrote it; it will be served by its own process.
        return []


def _wait(want: Want, decision: Decision, now: datetime) -> tuple[datetime | None, Queued, str]:
    if want.not_before is not None and now < want.not_before:
        return want.not_before, "waiting", "a pause before the next attempt"
    hold = decision.hold
    nobody = not decision.keep_on_caller and not any(c.eligible for c in decision.candidates)
    if nobody and want.wait_for_reset and decision.retry_at is not None:
        until = decision.retry_at + timedelta(seconds=want.wait_margin_s)
        return until, "held", f"waiting for a reset: {hold.reason if hold else decision.reason}"
    if hold is not None:
        state: Queued = "waiting" if hold.kind == "cap" else "held"
        return hold.until, state, hold.reason
    return None, "waiting", ""


def _margin(
    want: Want, reset: datetime, why: str, now: datetime
) -> tuple[datetime | None, Queued, str]:
    """A pool is free again. Before the reset that was waited for it was released, and can be
    taken; just after it the provider may be late."""
    until = reset + timedelta(seconds=want.wait_margin_s)
    return (until, "held", why) if reset <= now < until else (None, "waiting", "")


def _stand_in_line(app: App, want: Want, state: Queued, until: datetime, why: str) -> None:
    if app.store.agent(want.agent_id) is not None:
        pid, started = me()
        app.store.change(
            want.agent_id,
            state=state,
            until=until,
            why=why,
            owner_pid=pid,
            owner_started=started,
        )
        return
    pid, started = me()
    request: dict[str, Any] = msgspec.to_builtins(
        {"request": want.request, "policy": want.policy, "admission": want.admission}
    )
    app.store.add(
        Agent(
            id=want.agent_id,
            run_id=want.run_id,
            step_id=want.step_id,
            pool=None,
            lane=want.request.lane,
            model=want.request.model,
            state=state,
            owner_pid=pid,
            owner_started=started,
            queued_at=want.request.waiting_since or app.now(),
            cwd=want.cwd,
            purpose=want.purpose,
            priority=want.priority,
            ran_minutes=want.request.ran_minutes,
            until=until,
            why=why,
            request=request,
        )
    )


def _finish(
    app: App, want: Want, snapshot: Snapshot, decision: Decision, waited_s: float
) -> Placed | NotPlaced:
    record = DecisionRecord(
        id=f"{want.agent_id}.d",
        run_id=want.run_id,
        at=snapshot.now,
        snapshot=snapshot,
        request=want.request,
        policy=want.policy,
        admission=want.admission,
        decision=decision,
    )
    app.store.put_decision(record)
    if decision.pool is None or decision.keep_on_caller:
        app.store.drop(want.agent_id)
        return NotPlaced(decision=decision, decision_id=record.id)
    now = app.now()
    pid, born = me()
    if app.store.agent(want.agent_id) is not None:
        app.store.change(
            want.agent_id,
            state="starting",
            pool=decision.pool,
            model=decision.model,
            started_at=now,
            until=None,
            why="",
            owner_pid=pid,
            owner_started=born,
        )
    else:
        app.store.add(
            Agent(
                id=want.agent_id,
                run_id=want.run_id,
                step_id=want.step_id,
                pool=decision.pool,
                lane=want.request.lane,
                model=decision.model,
                state="starting",
                owner_pid=pid,
                owner_started=born,
                queued_at=want.request.waiting_since or now,
                started_at=now,
                cwd=want.cwd,
                purpose=want.purpose,
                priority=want.priority,
                ran_minutes=want.request.ran_minutes,
            )
        )
    provider, account = app.pool(decision.pool)
    return Placed(
        decision=decision,
        decision_id=record.id,
        provider=provider,
        account=account,
        waited_s=waited_s,
    )


def _stopped(app: App, want: Want, cancelled: Cancelled) -> NotPlaced | None:
    asked = (app.store.cancel_level(want.agent_id), app.store.cancel_level(want.run_id))
    if not max(cancelled(), *asked):
        return None
    app.store.drop(want.agent_id)
    return NotPlaced(decision=Decision(pool=None, reason="cancelled"), cancelled=True)


def _sleep(
    app: App, want: Want, until: datetime, seen: int, cancelled: Cancelled
) -> NotPlaced | None:
    """Until something changed in the store since it was at ``seen``, the time is up, or it is time
    to look again."""
    again = time.monotonic() + LOOK_AGAIN_S
    while time.monotonic() < again and app.now() < until:
        if cancelled():
            return _stopped(app, want, cancelled)
        time.sleep(LOOK_S)
        if app.store.version() != seen:
            break
    return None
