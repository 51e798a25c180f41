"""Carry out what the kernel wants: place and run attempts, run evidence. Each can be done twice
without harm, because what was begun is written down before it is waited for."""

from __future__ import annotations

import contextlib
import os
import signal
from datetime import datetime
from pathlib import Path

import msgspec

from bullswarm.dispatch import members
from bullswarm.dispatch.environment import mark
from bullswarm.dispatch.types import FailureKind, Launch, Worker
from bullswarm.errors import BullswarmError, UsageError
from bullswarm.judge.schema import Schema, load_schema, make_schema
from bullswarm.judge.types import Attempt
from bullswarm.routing.types import Request
from bullswarm.runs.app import App
from bullswarm.runs.attempt import Outcome as Ran
from bullswarm.runs.attempt import Terms, first_look, run_attempt
from bullswarm.runs.files import AttemptFiles, new_stamp
from bullswarm.runs.handover import hand_over, partial_of
from bullswarm.runs.placing import NotPlaced, Placed, Want, ignore_progress, place
from bullswarm.runs.settle import learn_limit, learn_windows, record_end
from bullswarm.runs.types import AttemptSpec
from bullswarm.store import routing_policy
from bullswarm.store.files import atomic_write
from bullswarm.workflow.commands import RunEvidence, StartAttempt
from bullswarm.workflow.events import Outcome
from bullswarm.workflow.folder import Meta, RunFolder, safe
from bullswarm.workflow.program import CommandCheck, SchemaCheck
from bullswarm.workflow.state import CheckResult
from bullswarm.workflow.workspace import GitError, Workspaces

KEPT_ANSWER_CHARS = 6000


class Carried(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An attempt that was placed: its spec, and what the kernel is told of where it runs."""

    spec: AttemptSpec
    group: str | None = None
    decision_reason: str = ""


class InLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """No pool has room now; the attempt stands in line and is asked for again."""

    until: datetime
    why: str


class Kept(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the next attempt may have to be told of this one."""

    attempt: Attempt
    partial: str


class Carrier:
    """What one run's kernel does in the world."""

    def __init__(self, app: App, folder: RunFolder, meta: Meta) -> None:
        self.app, self.folder, self.meta = app, folder, meta
        self.workspaces = Workspaces(folder.worktrees, meta.cwd, meta.run_id)

    # stopping

    def stop(self, attempt_id: str, level: int) -> None:
        """Ask for an attempt's end, whether it is in line, starting or running."""
        self.app.store.set_value(f"stop {attempt_id}", level)
        self.app.store.cancel(attempt_id, level)

    def stopped(self, attempt_id: str) -> int:
        return int(self.app.store.get_value(f"stop {attempt_id}", 0))

    def leave_line(self) -> None:
        """Let go of every place in line: a run that is paused or over must keep nobody waiting."""
        for agent in self.app.store.line():
            if agent.run_id == self.meta.run_id:
                self.app.store.drop(agent.id)

    # attempts

    def place(self, command: StartAttempt) -> Carried | InLine | Outcome:
        """Find a pool and write the attempt down, or read what was written down before."""
        spec_file = self._spec_file(command.attempt_id)
        if spec_file.exists():
            return msgspec.json.decode(spec_file.read_bytes(), type=Carried)
        if command.reattach:
            return Outcome(
                ok=False,
                why="its worker was started, and nothing of it can be found any more",
                failure_kind="process",
            )
        try:
            cwd = self._cwd(command)
            self._keep_schema(command, cwd)
            placed = self._placed(command, cwd)
        except (UsageError, GitError) as error:
            return Outcome(ok=False, why=str(error), failure_kind="unavailable", started=False)
        if isinstance(placed, NotPlaced) and placed.until is not None:
            return InLine(until=placed.until, why=placed.why)
        if isinstance(placed, NotPlaced):
            kind: FailureKind = "cancelled" if placed.cancelled else "unavailable"
            return Outcome(
                ok=False,
                why=placed.decision.reason,
                failure_kind=kind,
                started=False,
                retry_at=placed.decision.retry_at,
            )
        decision, account = placed.decision, placed.account
        resume = _resumable(command, account.pool)
        if not placed.provider.connector.resume_args:
            resume = None
        spec = AttemptSpec(
            attempt_id=command.attempt_id,
            run_id=self.meta.run_id,
            n=command.n,
            pool=account.pool,
            provider=account.provider,
            lane=command.lane,
            cwd=cwd,
            folder=str(self.folder.attempts),
            stamp=f"{new_stamp(self.app.now())}-{safe(command.step)}",
            stream_format=placed.provider.connector.stream.format,
            step_id=command.step,
            model=decision.model,
            effort=command.effort if command.effort in placed.provider.connector.efforts else None,
            resume_session=resume,
            timeout_s=command.time_box_s,
            purpose=command.purpose,
        )
        files = AttemptFiles(self.folder.attempts, spec.stamp, spec.stream_format)
        atomic_write(files.task, self._prompt(command).encode())
        first_look(spec, self._before_file(command.step), command.deliverables)
        carried = Carried(
            spec=spec, group=account.credential_group, decision_reason=decision.reason
        )
        atomic_write(spec_file, msgspec.json.encode(carried))
        return carried

    def work(self, command: StartAttempt, carried: Carried) -> Outcome:
        """Run a placed attempt to its end, or carry on with the worker that is there."""
        spec = carried.spec
        provider, account = self.app.pool(spec.pool)
        before = first_look(spec, self._before_file(command.step), command.deliverables)
        terms = Terms(
            prompt=command.prompt,
            schema=self._kept_schema(command.attempt_id),
            deliverables=command.deliverables,
            must_change=command.must_change,
        )
        ran = run_attempt(
            self.app,
            spec,
            provider,
            account,
            terms,
            before,
            reason=carried.decision_reason,
            on_progress=ignore_progress,
            cancelled=lambda: self.stopped(spec.attempt_id),
        )
        record_end(self.app, ran)
        learn_windows(self.app, ran, account)
        if ran.judgement.ok:
            self.app.store.set_incumbent(f"{spec.lane}:{self.meta.cwd}", spec.pool)
        learn_limit(self.app, ran, provider, account, command.limits_mode)
        self._keep(ran)
        return Outcome(
            ok=ran.judgement.ok,
            why=ran.judgement.why,
            failure_kind=ran.judgement.failure_kind,
            started=ran.ended.ended_by != "spawn-failed",
            pool=spec.pool,
            provider=spec.provider,
            group=carried.group,
            model=ran.attempt.model,
            session=ran.ended.session,
            notice=ran.notice,
            changes=ran.changes,
            answer=ran.judgement.answer,
            usage=ran.ended.usage,
            out_file=ran.attempt.out_file,
            retry_at=ran.notice.resets_at if ran.notice else None,
        )

    # evidence

    def evidence(self, command: RunEvidence) -> tuple[CheckResult, ...]:
        """Run the checks in order, up to the first that fails."""
        self._end_earlier_checks(command.attempt_id)
        try:
            cwd = self._workspace(command.step, command.workspace)
        except UsageError as error:
            return (CheckResult(index=0, type="command", ok=False, why=str(error)),)
        results: list[CheckResult] = []
        for index, check in enumerate(command.evidence):
            results.append(self._check(index, check, command, cwd))
            if not results[-1].ok:
                break
        return tuple(results)

    def _end_earlier_checks(self, attempt_id: str) -> None:
        """A kernel that died left its check running; two at once would trip over each other."""
        begun = self.folder.attempts / f"evidence-{safe(attempt_id)}"
        if begun.exists():
            nothing = Launch(
                attempt_id=attempt_id,
                argv=(),
                env={},
                cwd=self.meta.cwd,
                stdout="",
                stderr="",
                exit_file="",
                pid_file="",
            )
            left = Worker(attempt_id=_check_mark(attempt_id), pid=0, started=0.0, launch=nothing)
            for pid in members(left):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        begun.touch(mode=0o600)

    def _check(
        self, index: int, check: CommandCheck | SchemaCheck, command: RunEvidence, cwd: str
    ) -> CheckResult:
        from bullswarm.judge.evidence import run_command, run_schema

        if isinstance(check, CommandCheck):
            line = check.command if isinstance(check.command, str) else list(check.command)
            ran = run_command(
                line,
                cwd,
                check.timeout_s,
                protect=command.protect,
                env=mark(dict(self.app.env), _check_mark(command.attempt_id)),
                cancelled=lambda: self.stopped(command.attempt_id) > 0,
            )
            return CheckResult(
                index=index,
                type="command",
                ok=ran.ok,
                why=ran.why,
                tail=ran.tail,
                wall_s=ran.wall_s,
            )
        output = ""
        if command.out_file is not None and Path(command.out_file).exists():
            output = Path(command.out_file).read_text(encoding="utf-8", errors="replace")
        try:
            schema = _schema_of(check.schema, cwd)
            found = run_schema(check.file, schema, cwd=cwd, output=output)
        except UsageError as error:
            return CheckResult(index=index, type="schema", ok=False, why=str(error))
        return CheckResult(
            index=index,
            type="schema",
            ok=found.ok,
            why=found.why,
            tail="\n".join(str(fault) for fault in found.faults),
        )

    # inside

    def _placed(self, command: StartAttempt, cwd: str) -> Placed | NotPlaced:
        firm = (*command.avoid, *command.not_providers)
        shy = (*firm, *command.rather_not)
        pins = (command.pool, None) if command.pool is not None else (None,)
        tries = dict.fromkeys((avoid, pin) for pin in pins for avoid in (shy, firm))
        for avoid, pin in tries:
            found = place(
                self.app,
                self._want(command, cwd, avoid, pin),
                cancelled=lambda: self.stopped(command.attempt_id),
            )
            if isinstance(found, Placed) or found.cancelled or found.until is not None:
                return found
        return found

    def _want(
        self, command: StartAttempt, cwd: str, avoid: tuple[str, ...], pin: str | None
    ) -> Want:
        app = self.app
        app.reload()
        request = Request(
            lane=command.lane,
            model=command.model,
            effort=command.effort,
            pin=pin,
            use=tuple(app.resolve(name, "route.use") for name in command.use),
            avoid=tuple(app.resolve(name, "route.avoid") for name in avoid),
            exclude=command.exclude,
            exclude_groups=command.exclude_groups,
            incumbent=app.store.incumbent(f"{command.lane}:{self.meta.cwd}"),
            waiting_since=command.held_since or app.now(),
        )
        return Want(
            agent_id=command.attempt_id,
            run_id=self.meta.run_id,
            step_id=command.step,
            request=request,
            policy=app.known(routing_policy(app.settings)),
            admission=app.admission(None, unset="hold"),
            cwd=cwd,
            purpose=command.purpose,
            wait_for_reset=command.limits_mode == "wait",
            wait_margin_s=app.settings.limits.wait_margin_seconds,
            block=False,
        )

    def _cwd(self, command: StartAttempt) -> str:
        if not Path(self.meta.cwd).is_dir():
            raise UsageError(f"the working folder {self.meta.cwd} is gone")
        if command.workspace == "own":
            return self.workspaces.make(command.step)
        return self.meta.cwd

    def _workspace(self, step: str, workspace: str) -> str:
        return self.workspaces.path(step) if workspace == "own" else self.meta.cwd

    def _keep_schema(self, command: StartAttempt, cwd: str) -> None:
        """Write down the schema that the answer has to fit: its file may be changed meanwhile."""
        if command.answer_schema is None:
            return
        found = _schema_of(command.answer_schema, cwd)
        kept = {"document": found.document, "folder": found.folder}
        atomic_write(self._schema_file(command.attempt_id), msgspec.json.encode(kept))

    def _kept_schema(self, attempt_id: str) -> Schema | None:
        try:
            kept = msgspec.json.decode(self._schema_file(attempt_id).read_bytes())
        except FileNotFoundError:
            return None
        return Schema(kept["document"], kept["folder"])

    def _prompt(self, command: StartAttempt) -> str:
        before = command.before
        if before is None:
            return command.prompt
        why = f"{before.why}\n\n{before.tail}" if before.tail else before.why
        kept = self._kept(before.attempt_id)
        if kept is None:
            return f"{command.prompt}\n\nAn earlier attempt did not pass: {why}\n"
        attempt = msgspec.structs.replace(kept.attempt, why=why)
        same = before.kind == "failure"
        return hand_over(command.prompt, attempt, kept.partial, same_worker=same)

    def _keep(self, ran: Ran) -> None:
        kept = Kept(attempt=ran.attempt, partial=partial_of(ran.ended)[-KEPT_ANSWER_CHARS:])
        atomic_write(self._kept_file(ran.spec.attempt_id), msgspec.json.encode(kept))

    def _kept(self, attempt_id: str) -> Kept | None:
        try:
            return msgspec.json.decode(self._kept_file(attempt_id).read_bytes(), type=Kept)
        except FileNotFoundError:
            return None

    def _kept_file(self, attempt_id: str) -> Path:
        return self.folder.attempts / f"attempt-{safe(attempt_id)}.json"

    def _spec_file(self, attempt_id: str) -> Path:
        return self.folder.attempts / f"spec-{safe(attempt_id)}.json"

    def _schema_file(self, attempt_id: str) -> Path:
        return self.folder.attempts / f"schema-{safe(attempt_id)}.json"

    def _before_file(self, step: str) -> Path:
        return self.folder.attempts / f"before-{safe(step)}.json"


def _check_mark(attempt_id: str) -> str:
    """What the processes of an attempt's checks are found by."""
    return f"{attempt_id}.evidence"


def _resumable(command: StartAttempt, pool: str) -> str | None:
    """The CLI session to go on with, where the pick is the pool that holds it."""
    resume = command.resume
    return resume.session if resume is not None and resume.pool == pool else None


def _schema_of(given: object, cwd: str) -> Schema:
    if isinstance(given, str):
        return load_schema(Path(cwd, given))
    return make_schema(given, folder=cwd)


def explain_crash(error: BaseException) -> str:
    """Why the kernel stops, for people."""
    if isinstance(error, BullswarmError):
        return str(error)
    return f"{type(error).__name__}: {error}"
