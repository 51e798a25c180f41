"""The discrete-event simulation: one scenario under one policy.

Nothing is decided here. Whenever something happens that can let waiting work go (an arrival, an
end, a new reading, a released bench, the time that a hold named), the line is served by
``bullswarm.routing.serve`` on a snapshot of what a home would know at that minute.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf

from bullswarm.dispatch.notices import bench, released_by
from bullswarm.dispatch.types import Notice
from bullswarm.routing import Waiting, serve
from bullswarm.routing.types import Admission, Config, Decision, Request, Snapshot, Work
from bullswarm.simulate.account import Account
from bullswarm.simulate.calendar import Clock
from bullswarm.simulate.learned import DurationRecords
from bullswarm.simulate.line import Line
from bullswarm.simulate.outcome import Outcome, Tally, Trace
from bullswarm.simulate.policies import Chooser
from bullswarm.simulate.states import Attempt, PoolState, Sample
from bullswarm.simulate.types import Scenario

ARRIVAL, END, TURN, SAMPLE, READ, WAKE, OUTAGE, RECOVERY, EARLY, START = range(10)

DIES_AFTER = 0.1
"""Minutes until an attempt on a dead login or a spent window is told so."""
ASK_AGAIN = 10.0
"""Minutes until work is handed in again where nobody knows when a pool comes back."""
LONGEST_CHUNK = 16
LOOK_AGAIN = 2.5
"""The least minutes until a hold is looked at again for nothing but its time: what it named may be
a second away, again and again."""


def simulate(scenario: Scenario, policy: str, *, trace: bool = False) -> Outcome:
    """Run ``scenario`` under the policy of that name (see ``policies``). The same arguments always
    give the same outcome. ``trace`` keeps every window's use over time, for a picture."""
    return _World(scenario, policy, trace).run()


class _World:
    def __init__(self, scenario: Scenario, policy: str, trace: bool) -> None:
        fleet = scenario.fleet
        self.scenario = scenario
        self.clock = Clock(scenario.began)
        self.now = 0.0
        self.pools: dict[str, PoolState] = {}
        for spec in fleet.pools:
            early = scenario.early_resets.get(spec.name, ())
            account = Account(spec, self.clock, scenario.horizon, early)
            self.pools[spec.name] = PoolState(spec, account, self.clock)
        self.chooser = Chooser(policy, scenario)
        constants = fleet.admission
        self.admission = Admission(
            mode="hold" if self.chooser.holds else "off",
            five_hour_line=constants.five_hour_line,
            pacing_line=constants.pacing_line,
            cap_per_pool=constants.cap_per_pool,
            tail_factor=constants.tail_factor,
            patience_minutes=constants.patience_minutes,
        )
        self.config = Config(inflight_penalty_pct=fleet.inflight_penalty, worker_cap=fleet.cap)
        self.durations = DurationRecords()
        self.tally = Tally(scenario)
        self.trace = Trace() if trace else None

        self._events: list[tuple[float, int, int, object]] = []
        self._count = 0
        self._wakes: set[float] = set()
        self._line = Line()
        self._tries: dict[int, int] = {}
        # How long a limit let it run, at most: what its next run tells routing.
        self._ran: dict[int, float] = {}
        self._dirty = False

    def run(self) -> Outcome:
        self._lay_out()
        events, horizon = self._events, self.scenario.horizon
        while events and events[0][0] <= horizon:
            now = self.now = events[0][0]
            while events and events[0][0] == now:
                _, _, kind, what = heappop(events)
                self._happen(kind, what)
            if self._dirty:
                self._dirty = False
                self._serve()
        self.now = horizon
        for state in self.pools.values():
            state.account.advance(horizon)
            for attempt in state.inflight.values():
                self.tally.running(attempt.task, attempt.start)
        return self.tally.outcome(self.chooser.name, self.trace)

    # ------------------------------------------------------------------ events

    def _push(self, at: float, kind: int, what: object = None) -> None:
        self._count += 1
        heappush(self._events, (at, self._count, kind, what))

    def _lay_out(self) -> None:
        scenario = self.scenario
        for name, at in scenario.plan.items():
            if at > 0.0:
                self.pools[name].paused_until = at
            self._push(at, START, self.pools[name])
        for state in self.pools.values():
            if state.spec.meter:
                state.read(state.sample(), 0.0)
            else:
                state.refresh(0.0)
            self._turn_later(state)
            for begin, end in scenario.outages.get(state.spec.name, ()):
                self._push(begin, OUTAGE, state)
                self._push(end, RECOVERY, state)
            for at in scenario.early_resets.get(state.spec.name, ()):
                self._push(at, EARLY, state)
        self._push(scenario.fleet.meter.every, SAMPLE)
        if scenario.tasks:
            self._push(scenario.tasks[0].at, ARRIVAL, 0)

    def _happen(self, kind: int, what: object) -> None:
        if kind == ARRIVAL:
            assert isinstance(what, int)
            self._arrive(what)
        elif kind == END:
            assert isinstance(what, Attempt)
            if what.alive:
                self._finish(what)
        elif kind == TURN:
            assert isinstance(what, tuple)
            state, version = what
            if state.version == version:
                self._turn(state)
        elif kind == SAMPLE:
            self._sample()
        elif kind == READ:
            assert isinstance(what, list)
            self._read(what)
        elif kind == WAKE:
            self._wakes.discard(self.now)
            self._dirty = True
        else:
            assert isinstance(what, PoolState)
            self._upset(kind, what)

    def _upset(self, kind: int, state: PoolState) -> None:
        account = state.account
        account.advance(self.now)
        state.moved = True
        if kind == OUTAGE:
            state.outages += 1
            for attempt in list(state.inflight.values()):
                self._auth_failure(attempt)
        elif kind == RECOVERY:
            state.outages -= 1
        elif kind == EARLY:
            account.turn()
            account.reset_early()
        elif kind == START:
            state.paused_until = None
            account.touch()
            state.refresh(self.now)
        self._turn_later(state)
        self._dirty = True

    def _arrive(self, index: int) -> None:
        tasks = self.scenario.tasks
        while index < len(tasks) and tasks[index].at <= self.now:
            self._stand_in_line(index)
            index += 1
        if index < len(tasks):
            self._push(tasks[index].at, ARRIVAL, index)

    def _stand_in_line(self, index: int) -> None:
        self._line.put(index, self._file(index))
        self._dirty = True

    def _turn_later(self, state: PoolState) -> None:
        """Look at the account again when its next window ends or fills."""
        state.version += 1
        at = state.account.next_at()
        if at < inf:
            self._push(max(at, self.now), TURN, (state, state.version))

    def _turn(self, state: PoolState) -> None:
        account = state.account
        account.advance(self.now)
        state.moved = True
        account.turn()
        if account.load and account.full_until() is not None:
            self._hit_limit(state)
        self._turn_later(state)

    def _sample(self) -> None:
        meter = self.scenario.fleet.meter
        samples: list[tuple[PoolState, Sample]] = []
        trace = self.trace
        for state in self.pools.values():
            if not state.moved and trace is None:
                continue
            state.account.advance(self.now)
            if trace is not None:
                trace.windows(state.spec.name, self.now, state.sample())
            if state.moved and state.spec.meter:
                samples.append((state, state.sample()))
            # With nobody at work the next sample would be this one.
            state.moved = state.account.load > 0
        if trace is not None:
            trace.waiting.append((self.now, len(self._line)))
        if samples:
            self._push(self.now + meter.late, READ, samples)
        self._push(self.now + meter.every, SAMPLE)

    def _read(self, samples: list[tuple[PoolState, Sample]]) -> None:
        for state, sample in samples:
            state.read(sample, self.now)
            if state.benches:
                self._release_early(state)
        self._dirty = True

    def _release_early(self, state: PoolState) -> None:
        now = self.clock.time(self.now)
        state.benches = [b for b in state.benches if not released_by(b, state.reading, now)]

    # ------------------------------------------------------------------ attempts

    def _dispatch(self, index: int, pool: str) -> None:
        state = self.pools[pool]
        account = state.account
        account.advance(self.now)
        state.moved = True
        task = self.scenario.tasks[index]
        tries = self._tries[index] = self._tries.get(index, 0) + 1
        at = self.clock.time(self.now)
        work = Work(
            id=f"{index}.{tries}",
            pool=pool,
            lane=task.lane,
            started_at=at,
            ran_minutes=self._ran.get(index, 0.0),
        )
        minutes = task.minutes * state.spec.speed
        attempt = Attempt(index, state, self.now, minutes, work)
        state.inflight[work.id] = attempt
        state.rates.put(work)
        spent = account.full_until() is not None
        account.use()
        if state.outages:
            attempt.refused = "auth"
        elif spent:
            attempt.refused = "limit"
        lasts = min(DIES_AFTER, minutes) if attempt.refused else minutes
        self._push(self.now + lasts, END, attempt)
        self._turn_later(state)
        self.chooser.placed()

    def _leave(self, attempt: Attempt) -> float:
        """The attempt is over; its minutes."""
        state = attempt.pool
        state.account.advance(self.now)
        state.account.leave()
        state.moved = True
        attempt.alive = False
        del state.inflight[attempt.work.id]
        one = attempt.work
        ended = Work(
            id=one.id,
            pool=one.pool,
            lane=one.lane,
            started_at=one.started_at,
            ran_minutes=one.ran_minutes,
            ended_at=self.clock.time(self.now),
        )
        state.rates.put(ended)
        if state.reading is not None:
            state.unread.append(ended)
        self._turn_later(state)
        self._dirty = True
        return self.now - attempt.start

    def _finish(self, attempt: Attempt) -> None:
        state = attempt.pool
        state.account.advance(self.now)
        if state.outages or attempt.refused == "auth":
            self._auth_failure(attempt)
            return
        if attempt.refused == "limit":
            if state.account.full_until() is not None:
                self._hit_limit(state)
            else:
                # The window that refused it began anew meanwhile: only this attempt is over.
                self._cut_off(attempt)
            return
        minutes = self._leave(attempt)
        state.health.add(self.now, True, False, minutes)
        self.durations.add(state.spec.name, attempt.work.lane, minutes)
        self.tally.done(attempt.task, state.spec, attempt.start, minutes)

    def _auth_failure(self, attempt: Attempt) -> None:
        state = attempt.pool
        minutes = self._leave(attempt)
        state.health.add(self.now, False, True, minutes)
        self.tally.lost(state.spec, minutes, limit=False)
        self._bench(state, Notice(kind="auth", text="authentication_error", source="event"))
        self._stand_in_line(attempt.task)

    def _hit_limit(self, state: PoolState) -> None:
        """A window is full: everybody on the pool is told so, and is over."""
        until = state.account.full_until()
        kind = state.account.full_kind()
        late = state.late_sample(self.scenario.fleet.meter.late)
        for attempt in list(state.inflight.values()):
            self._cut_off(attempt)
        if state.spec.meter:
            # The meter is read again at once, and is as late as ever.
            state.read(late, self.now)
        named = self.clock.time(until) if until is not None and state.spec.names_reset else None
        text = "You've hit your usage limit"
        notice = Notice(kind="quota", text=text, source="event", resets_at=named, window=kind)
        self._bench(state, notice)

    def _cut_off(self, attempt: Attempt) -> None:
        """One attempt was lost to a limit; its work stands in line again."""
        state, task = attempt.pool, attempt.task
        minutes = self._leave(attempt)
        state.health.add(self.now, False, False, minutes)
        self.tally.lost(state.spec, minutes, limit=True)
        self._ran[task] = max(minutes, self._ran.get(task, 0.0))
        if self.trace is not None:
            self.trace.lost.append((self.now, state.spec.name))
        self._stand_in_line(task)

    def _bench(self, state: PoolState, notice: Notice) -> None:
        now = self.clock.time(self.now)
        made = bench(notice, pool=state.pool, now=now, reading=state.reading)
        if made is None:
            return
        state.benches = [b for b in state.benches if b.until > now and b.kind != made.kind]
        state.benches.append(made.quarantine())
        self._wake(self.clock.minutes(made.until))

    # ------------------------------------------------------------------ the line

    def _snapshot(self) -> Snapshot:
        now = self.clock.time(self.now)
        work: list[Work] = []
        benches = []
        for state in self.pools.values():
            work.extend([attempt.work for attempt in state.inflight.values()])
            work.extend(state.unread)
            if state.benches:
                state.benches = [b for b in state.benches if b.until > now]
                benches.extend(state.benches)
        return Snapshot(
            now=now,
            pools=tuple([state.pool for state in self.pools.values()]),
            work=tuple(work),
            quarantines=tuple(benches),
            durations=self.durations.rows(),
            config=self.config,
        )

    def _file(self, index: int) -> str:
        """Which file of the line it stands in: work that a limit cut off wants more than others of
        its lane, the more the longer it ran (by powers of two)."""
        lane = self.scenario.tasks[index].lane
        ran = self._ran.get(index, 0.0)
        return f"{lane} {int(ran).bit_length()}" if ran else lane

    def _serve(self) -> None:
        """Serve the line until the oldest of every file has to wait. Those behind it want the same
        and have been asking for less long, so they would wait too."""
        live = sum(len(state.inflight) for state in self.pools.values())
        self._line.ask(self.now, self.scenario.fleet.cap - live)
        blocked: set[str] = set()
        deep = 1
        while True:
            chunk = self._line.oldest(blocked, deep, LONGEST_CHUNK)
            if not chunk:
                return
            snapshot = self._snapshot()
            line = [
                self._waiting(index, file, n, snapshot) for n, (index, file) in enumerate(chunk)
            ]
            made = serve(snapshot, line)
            deep = min(2 * deep, LONGEST_CHUNK)
            for (index, file), one in zip(chunk, line, strict=True):
                decision = made[one.id]
                if decision.pool is None:
                    self._hold(file, decision)
                    blocked.add(file)
                    continue
                self._line.take(index, file)
                self._dispatch(index, decision.pool)

    def _waiting(self, index: int, file: str, ahead: int, snapshot: Snapshot) -> Waiting:
        return Waiting(
            id=str(index),
            request=Request(
                lane=self.scenario.tasks[index].lane,
                waiting_since=self.clock.time(self._line.since(index, file, self.now)),
                ran_minutes=self._ran.get(index, 0.0),
            ),
            policy=self.chooser.policy(snapshot, ahead),
            admission=self.admission,
        )

    def _hold(self, file: str, decision: Decision) -> None:
        if decision.hold is not None:
            self._wake(max(self.clock.minutes(decision.hold.until), self.now + LOOK_AGAIN))
            return
        # Nobody can take it, and it's out of patience: it goes back to whoever sent it, who hands
        # it in again when a pool is expected back.
        back = decision.retry_at
        again = self.now + ASK_AGAIN if back is None else self.clock.minutes(back)
        self._line.handed_back(file, max(again, self.now))
        self._wake(again)

    def _wake(self, at: float) -> None:
        if at > self.now and at not in self._wakes and at <= self.scenario.horizon:
            self._wakes.add(at)
            self._push(at, WAKE)
