"""``run``: one task from snapshot to verdict, with what follows a failed attempt."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import msgspec

from bullswarm.dispatch import DepthError, check_depth
from bullswarm.dispatch.types import FailureKind, Usage
from bullswarm.errors import BullswarmError, UsageError
from bullswarm.judge import Before, compare
from bullswarm.judge.schema import Schema, load_schema
from bullswarm.judge.types import Attempt, Pick, Verdict
from bullswarm.routing import route
from bullswarm.routing.types import Decision, Request
from bullswarm.runs.after import LimitsMode, Next, Tried, after
from bullswarm.runs.app import App
from bullswarm.runs.attempt import Outcome, RunAttempt, Terms, first_look, run_attempt
from bullswarm.runs.files import AttemptFiles, new_stamp
from bullswarm.runs.handover import hand_over, partial_of
from bullswarm.runs.placing import NotPlaced, Placed, Want, decide, ignore_progress, place
from bullswarm.runs.record import write_record
from bullswarm.runs.settle import learn_limit, learn_windows, record_end
from bullswarm.runs.snapshot import read_pools, take_snapshot
from bullswarm.runs.types import AttemptSpec, Cancelled, OnProgress, Progress, Task
from bullswarm.store import RunRecord, me, routing_policy, short_id
from bullswarm.store.files import atomic_write

PURPOSE_CHARS = 80


def dry_run(app: App, task: Task) -> Decision:
    """The pick as it would be now, with its forecast. Registers and starts nothing."""
    check(app, task)
    return decide(app, _want(app, task, "dry-run", "dry-run", (), Next(action="elsewhere")))[1]


def pick(app: App, task: Task) -> Decision:
    """Who would get the task now if it had to go somewhere: caps and holds aside. Registers and
    starts nothing. Raises ``UsageError`` as ``run_task`` does."""
    check(app, task)
    want = _want(app, task, "pick", "pick", (), Next(action="elsewhere"))
    return route(take_snapshot(app, read_pools(app)), want.request, want.policy)


def check(app: App, task: Task) -> Schema | None:
    """Refuse what can't work before anything starts. Raises ``UsageError`` naming the field."""
    if not Path(task.cwd).is_dir():
        raise UsageError(f"cwd: {task.cwd} is not a folder")
    try:
        task.cwd.encode()
    except UnicodeEncodeError:
        raise UsageError(f"cwd: {task.cwd!a} is not a name in UTF-8, as records are") from None
    if task.pool is not None:
        app.pool(task.pool)
    for field in ("use", "avoid"):
        for name in getattr(task, field):
            app.resolve(name, field)
    if task.permission_mode is not None and task.pool is None and not _one_vendor(app, task):
        raise UsageError(
            "permission mode: its words differ from vendor to vendor, so pin a pool (--pool), "
            "or leave only one provider to choose from (--use)"
        )
    for path in task.deliverables:
        folder = Path(task.cwd).resolve()
        if not (folder / path).resolve().is_relative_to(folder):
            raise UsageError(f"deliverable: {path} is outside the working folder")
    return load_schema(task.answer_schema) if task.answer_schema else None


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
        want = _want(self.app, self.task, self.run_id, f"{self.run_id}.{n}", self.tried, following)
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
                retry_at=decision.retry_at.isoformat() if decision.retry_at else None,
            )
        )

    def _verdict(self, outcome: Outcome, following: Next) -> Verdict:
        judgement = outcome.judgement
        notes = [*outcome.attempt.notes]
        if not judgement.ok and following.why not in ("", judgement.failure_kind):
            notes.append(following.why)
        if self.last_decision is not None and self.last_decision.note:
            notes.append(self.last_decision.note)
        retry_at = outcome.notice.resets_at if outcome.notice else None
        return self._closed(
            Verdict(
                ok=judgement.ok,
                why=judgement.why,
                failure_kind=judgement.failure_kind,
                content_usable_despite_exit=judgement.content_usable_despite_exit,
                gates=judgement.gates,
                answer=judgement.answer,
                reason=self.last_decision.reason if self.last_decision else "",
                retry_at=retry_at.isoformat() if retry_at and not judgement.ok else None,
                notes=tuple(dict.fromkeys(notes)),
            )
        )

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
        try:
            self.app.store.put_run(record)
            write_record(self.app.home, record)
        except BullswarmError as error:
            # The work has been done and judged: that counts, on record or not.
            notes = (*verdict.notes, f"the record is not whole: {error}")
            verdict = msgspec.structs.replace(verdict, notes=notes)
        return verdict

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


def incumbency(task: Task) -> str:
    """Who does this work already: the pool that last did this lane in this folder."""
    return f"{task.lane}:{os.path.realpath(task.cwd)}"


def purpose_of(prompt: str) -> str:
    first = next((line.strip() for line in prompt.splitlines() if line.strip()), "")
    return first if len(first) <= PURPOSE_CHARS else first[: PURPOSE_CHARS - 1] + "…"


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


def _one_vendor(app: App, task: Task) -> bool:
    if not task.use:
        return False
    names = {app.resolve(name, "use") for name in task.use}
    providers = {
        account.provider
        for pool, (_, account) in app.accounts.items()
        if names & {pool, account.provider}
    }
    return len(providers) == 1


def _want(
    app: App,
    task: Task,
    run_id: str,
    agent_id: str,
    tried: Sequence[Tried],
    following: Next,
) -> Want:
    now = app.now()
    again = following.action == "same" and bool(tried)
    mode = task.on_limit or app.settings.limits.mode
    request = Request(
        lane=task.lane,
        capabilities=task.capabilities,
        model=task.model,
        effort=task.effort,
        domain=task.domain,
        pin=tried[-1].pool if again else task.pool,
        use=tuple(app.resolve(name, "use") for name in task.use),
        avoid=tuple(app.resolve(name, "avoid") for name in task.avoid),
        exclude=following.exclude if mode != "wait" else _not_limited(tried, following),
        exclude_groups=following.exclude_groups,
        caller=task.caller,
        incumbent=app.store.incumbent(incumbency(task)),
        waiting_since=now,
    )
    return Want(
        agent_id=agent_id,
        run_id=run_id,
        request=request,
        policy=app.known(task.policy or routing_policy(app.settings)),
        admission=app.admission(task.hold, task.patience_minutes),
        cwd=task.cwd,
        purpose=purpose_of(task.prompt),
        priority=task.priority,
        wait_for_reset=mode == "wait",
        wait_margin_s=app.settings.limits.wait_margin_seconds,
        fresh=following.reread,
        not_before=now + timedelta(seconds=following.wait_s) if following.wait_s else None,
    )


def _not_limited(tried: Sequence[Tried], following: Next) -> tuple[str, ...]:
    """In ``wait`` mode a pool that hit its limit is only benched: once its reset has passed it is a
    candidate again, and its session can be gone on with."""
    limited = {t.pool for t in tried if t.failure_kind == "quota"}
    return tuple(pool for pool in following.exclude if pool not in limited)
