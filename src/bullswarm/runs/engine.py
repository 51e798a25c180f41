"""``run``: one task from snapshot to verdict, with what follows a failed attempt."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from bullswarm.dispatch import DepthError, check_depth
from bullswarm.dispatch.types import FailureKind, Usage
from bullswarm.errors import BullswarmError
from bullswarm.judge import Before, compare
from bullswarm.judge.schema import Schema
from bullswarm.judge.types import Attempt, Pick, Verdict
from bullswarm.routing.types import Decision
from bullswarm.runs.after import LimitsMode, Next, Tried, after
from bullswarm.runs.app import App
from bullswarm.runs.asking import check, incumbency, purpose_of, want_of
from bullswarm.runs.attempt import Outcome, RunAttempt, Terms, first_look, run_attempt
from bullswarm.runs.files import AttemptFiles, new_stamp
from bullswarm.runs.handover import hand_over, partial_of
from bullswarm.runs.placing import NotPlaced, Placed, ignore_progress, place
from bullswarm.runs.record import write_record
from bullswarm.runs.settle import learn_limit, learn_windows, record_end
from bullswarm.runs.types import AttemptSpec, Cancelled, OnProgress, Progress, Task
from bullswarm.store import RunRecord, me, short_id
from bullswarm.store.files import atomic_write


def run_task(
    app: App,
    task: Task,
    *,
    on_progress: OnProgress = ignore_progress,
    cancelled: Cancelled = lambda: 0,
    attempt: RunAttempt = run_attempt,
) -> Verdict:
    """Send one task to a pool, watch it, judge it, record it. Returns the one verdict; raises
    ``UsageError`` for bad input, before anything started. ``attempt`` runs one attempt, for who
    has workers that are no process."""
    schema = check(app, task)
    run = _Run(app, task, schema, on_progress, cancelled, attempt)
    try:
        check_depth(app.env, app.settings.config.depth_limit)
    except DepthError as error:
        return run.finish(Verdict(ok=False, why=str(error), failure_kind="depth"))
    run.open()
    try:
        verdict = run.finish(run.go())
    except BaseException as error:
        run.abandon(error)
        raise
    run.tidy()
    return verdict


class _Run:
    def __init__(
        self,
        app: App,
        task: Task,
        schema: Schema | None,
        on_progress: OnProgress,
        cancelled: Cancelled,
        attempt: RunAttempt,
    ) -> None:
        self.app, self.task, self.schema = app, task, schema
        self.on_progress, self.cancelled = on_progress, cancelled
        self.run_attempt = attempt
        self.mode: LimitsMode = task.on_limit or app.settings.limits.mode
        self.started_at = app.now()
        self.clock = time.monotonic()
        self.run_id = app.store.new_run_id(self.started_at)
        self.short_id = short_id(self.run_id)
        self.folder = app.home.runs
        self.attempts: list[Attempt] = []
        self.tried: list[Tried] = []
        self.last: Outcome | None = None
        self.last_decision: Decision | None = None
        self.before: Before | None = None
        self.unkept: list[str] = []
        self.pool: str | None = None
        self.files: list[AttemptFiles] = []

    def open(self) -> None:
        self.app.store.put_run(self._record("running", None))

    def go(self) -> Verdict:
        following = Next(action="elsewhere")
        prompt = self.task.prompt
        while True:
            placed = self._place(following)
            if isinstance(placed, NotPlaced):
                return self._not_placed(placed)
            outcome = self._attempt(placed, prompt, following)
            following = after(
                self.tried,
                mode=self.mode,
                retries=self.task.retries,
                backoff_s=self.app.settings.limits.throttle_pauses_seconds,
            )
            if outcome.ended.jumped:
                # The machine slept, or its clock was set: no reading is as fresh as it looks.
                following = msgspec.structs.replace(following, reread=True)
            self._learn(outcome, placed, following)
            if following.action == "done":
                return self._verdict(outcome, following)
            if following.wait_s:
                self.on_progress(
                    Progress(
                        kind="waiting",
                        pool=outcome.spec.pool,
                        text=f"{following.wait_s:.0f} s on {outcome.spec.pool}: {following.why}",
                    )
                )
            else:
                self.on_progress(Progress(kind="retrying", text=following.why))
            prompt = hand_over(
                self.task.prompt,
                outcome.attempt,
                partial_of(outcome.ended),
                same_worker=following.attach_failure,
            )

    def _place(self, following: Next) -> Placed | NotPlaced:
        n = len(self.attempts) + 1
        want = want_of(
            self.app, self.task, self.run_id, f"{self.run_id}.{n}", self.tried, following
        )
        return place(self.app, want, on_progress=self.on_progress, cancelled=self.cancelled)

    def _attempt(self, placed: Placed, prompt: str, following: Next) -> Outcome:
        task, decision = self.task, placed.decision
        n = len(self.attempts) + 1
        self.last_decision = decision
        self.on_progress(Progress(kind="routed", pool=decision.pool, text=decision.reason))
        resume = self._session(placed)
        spec = AttemptSpec(
            attempt_id=f"{self.run_id}.{n}",
            run_id=self.run_id,
            n=n,
            pool=placed.account.pool,
            provider=placed.account.provider,
            lane=task.lane,
            cwd=task.cwd,
            folder=str(self.folder),
            stamp=new_stamp(self.app.now()),
            stream_format=placed.provider.connector.stream.format,
            model=decision.model,
            effort=task.effort,
            permission_mode=task.permission_mode,
            resume_session=resume,
            timeout_s=task.timeout_s,
            silence_s=task.silence_s,
            purpose=purpose_of(task.prompt),
        )
        files = AttemptFiles(self.folder, spec.stamp, spec.stream_format)
        self.files.append(files)
        self.pool = spec.pool
        self.open()
        atomic_write(files.task, prompt.encode())
        if self.before is None:
            self.before = first_look(spec, files.before, task.deliverables)
        terms = Terms(prompt=task.prompt, schema=self.schema, deliverables=task.deliverables)
        outcome = self.run_attempt(
            self.app,
            spec,
            placed.provider,
            placed.account,
            terms,
            self.before,
            reason=decision.reason,
            on_progress=self.on_progress,
            cancelled=self.cancelled,
        )
        with self._kept():
            record_end(self.app, outcome)
        self.last = outcome
        self.attempts.append(outcome.attempt)
        self.tried.append(
            Tried(
                pool=spec.pool,
                failure_kind=outcome.judgement.failure_kind,
                group=placed.account.credential_group,
                notice=outcome.notice,
                started=outcome.ended.ended_by != "spawn-failed",
            )
        )
        what = "ok" if outcome.judgement.ok else outcome.judgement.why
        self.on_progress(
            Progress(
                kind="ended",
                pool=spec.pool,
                text=f"{spec.pool}: {what}",
                elapsed_s=outcome.ended.wall_s,
            )
        )
        return outcome

    def _session(self, placed: Placed) -> str | None:
        """The CLI session to go on with: asked for, or the one that a limit broke off here."""
        if not self.attempts:
            return self.task.resume_session
        last = self.attempts[-1]
        if last.failure_kind != "quota" or last.pool != placed.account.pool:
            return None
        return last.session if placed.provider.connector.resume_args else None

    def _learn(self, outcome: Outcome, placed: Placed, following: Next) -> None:
        line = None
        with self._kept():
            learn_windows(self.app, outcome, placed.account)
            if outcome.judgement.ok:
                self.app.store.set_incumbent(incumbency(self.task), outcome.spec.pool)
            line = learn_limit(self.app, outcome, placed.provider, placed.account, self.mode)
        if line:
            self.on_progress(Progress(kind="benched", pool=outcome.spec.pool, text=line))

    def _not_placed(self, placed: NotPlaced) -> Verdict:
        decision = placed.decision
        self.last_decision = self.last_decision or decision
        if placed.cancelled:
            return self._closed(Verdict(ok=False, why="cancelled", failure_kind="cancelled"))
        if decision.keep_on_caller:
            return self._closed(
                Verdict(
                    ok=True,
                    keep_on_claude=True,
                    why="the calling agent is the best there is for this; nothing ran",
                    pick=Pick(pool=decision.pool or ""),
                    reason=decision.reason,
                )
            )
        kind: FailureKind = "unavailable"
        why = decision.reason
        if self.last is not None:
            kind = self.last.judgement.failure_kind or "unavailable"
            why = self.last.judgement.why
            if self.task.pool is None:
                why += f"; no other pool can take it: {decision.reason}"
        return self._closed(
            Verdict(
                ok=False,
                why=why,
                failure_kind=kind,
                reason=decision.reason,
                retry_at=self._comes_back(decision.retry_at),
            )
        )

    def _verdict(self, outcome: Outcome, following: Next) -> Verdict:
        judgement = outcome.judgement
        notes = [*outcome.attempt.notes]
        if not judgement.ok and following.why not in ("", judgement.failure_kind):
            notes.append(following.why)
        if self.last_decision is not None and self.last_decision.note:
            notes.append(self.last_decision.note)
        reset = outcome.notice.resets_at if outcome.notice else None
        return self._closed(
            Verdict(
                ok=judgement.ok,
                why=judgement.why,
                failure_kind=judgement.failure_kind,
                content_usable_despite_exit=judgement.content_usable_despite_exit,
                gates=judgement.gates,
                answer=judgement.answer,
                reason=self.last_decision.reason if self.last_decision else "",
                retry_at=None if judgement.ok else self._comes_back(reset),
                notes=tuple(dict.fromkeys(notes)),
            )
        )

    def _comes_back(self, known: datetime | None) -> str | None:
        """The earliest time at which a pool comes back: of those that the decision knows, and of
        those that this run was thrown off."""
        backs = [] if known is None else [known]
        benches = self.app.store.quarantines(self.app.now())
        for pool in {tried.pool for tried in self.tried}:
            mine = [bench.until for bench in benches if bench.pool == pool]
            backs += [max(mine)] if mine else []
        return min(backs).isoformat() if backs else None

    def _closed(self, verdict: Verdict) -> Verdict:
        """With what every verdict carries: the attempts, the files, the changes and the cost."""
        last = self.last
        if last is not None:
            files = AttemptFiles(self.folder, last.spec.stamp, last.spec.stream_format)
            verdict = msgspec.structs.replace(
                verdict,
                pick=verdict.pick
                or Pick(
                    pool=last.spec.pool,
                    command=last.command,
                    model=last.attempt.model,
                    effort=last.spec.effort,
                ),
                out_file=last.attempt.out_file,
                task_file=str(files.task),
                stream_file=last.attempt.stream_file,
                exit_code=last.ended.exit_code,
                changes=compare(self.before) if self.before and not verdict.ok else last.changes,
            )
        return msgspec.structs.replace(
            verdict,
            attempts=tuple(self.attempts),
            usage=total([a.usage for a in self.attempts]),
        )

    def finish(self, verdict: Verdict) -> Verdict:
        verdict = msgspec.structs.replace(
            verdict,
            run_id=self.run_id,
            short_id=self.short_id,
            wall_s=round(time.monotonic() - self.clock, 3),
        )
        state = "ok" if verdict.ok else "failed"
        if verdict.keep_on_claude:
            state = "kept"
        elif verdict.failure_kind == "cancelled":
            state = "cancelled"
        record = self._record(state, verdict)
        with self._kept():
            self.app.store.put_run(record)
            write_record(self.app.home, record)
        if self.unkept:
            notes = (*verdict.notes, f"the record is not whole: {self.unkept[0]}")
            verdict = msgspec.structs.replace(verdict, notes=notes)
        return verdict

    @contextlib.contextmanager
    def _kept(self) -> Iterator[None]:
        """The work has been done and judged: that counts, on record or not."""
        try:
            yield
        except BullswarmError as error:
            self.unkept.append(str(error))

    def tidy(self) -> None:
        """Every worker has ended and the run is on record: what was there for whoever would have
        had to find a worker again is of no more use. Prompt, answer and capture stay."""
        for files in self.files:
            files.tidy()

    def abandon(self, error: BaseException) -> None:
        """Our own failure must not leave a run that looks as if it were still going, nor a place
        in line or on a pool: in a program that goes on, nobody else would clear it."""
        store, id = self.app.store, f"{self.run_id}.{len(self.attempts) + 1}"
        # What goes wrong here must not hide what went wrong before.
        with contextlib.suppress(BullswarmError):
            agent = store.agent(id)
            if agent is not None and agent.pid is None:
                store.drop(id)
        why = f"bullswarm failed: {type(error).__name__}: {error}"
        self.finish(self._closed(Verdict(ok=False, why=why, failure_kind="process")))

    def _record(self, state: str, verdict: Verdict | None) -> RunRecord:
        pid, started = me()
        return RunRecord(
            run_id=self.run_id,
            short_id=self.short_id,
            kind="run",
            lane=self.task.lane,
            pool=self.pool,
            cwd=self.task.cwd,
            purpose=purpose_of(self.task.prompt),
            started_at=self.started_at,
            ended_at=None if verdict is None else self.app.now(),
            state=state,
            verdict=None if verdict is None else msgspec.to_builtins(verdict),
            folder=str(self.folder),
            owner_pid=pid,
            owner_started=started,
        )


def total(usages: Sequence[Usage]) -> Usage:
    """The sum of what is known; None where nothing is."""

    def add(values: list[float | None]) -> float | None:
        known = [v for v in values if v is not None]
        return sum(known) if known else None

    def whole(values: list[int | None]) -> int | None:
        known = [v for v in values if v is not None]
        return sum(known) if known else None

    return Usage(
        input_tokens=whole([u.input_tokens for u in usages]),
        output_tokens=whole([u.output_tokens for u in usages]),
        cached_tokens=whole([u.cached_tokens for u in usages]),
        cost_usd=add([u.cost_usd for u in usages]),
    )
