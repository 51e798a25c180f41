"""Start, find and steer runs from any process. Cheap: the durable engine is never imported here."""

from __future__ import annotations

import contextlib
import difflib
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from bullswarm.errors import BullswarmError, UsageError
from bullswarm.runs.app import App
from bullswarm.store import RunRecord, short_id
from bullswarm.workflow.database import database_url
from bullswarm.workflow.events import Event
from bullswarm.workflow.faults import Fault, near
from bullswarm.workflow.folder import Meta, Reply, RunFolder, answer_of
from bullswarm.workflow.host import BUSY, is_carried
from bullswarm.workflow.plan import mode_of
from bullswarm.workflow.program import Program
from bullswarm.workflow.state import ENDED, RunState
from bullswarm.workflow.workspace import Leftover, Workspaces

START_S = 60.0
REPLY_S = 20.0
LEAVE_S = 10.0
STEP_S = 0.05
FULL_BYTES = 1 << 20
"""With less than this left nothing can be written down any more."""


def create(app: App, program: Program, *, cwd: str) -> Meta:
    """A new run's folder and record; nothing starts yet. Raises ``UsageError``."""
    if not Path(cwd).is_dir():
        raise UsageError(f"cwd: {cwd} is not a folder")
    now = app.now()
    run_id = app.store.new_run_id(now)
    mode = mode_of(program, app.settings.limits.mode)
    purpose = (program.goal.strip().splitlines() or [program.steps[0].id])[0][:80]
    meta = Meta(
        run_id=run_id, cwd=os.path.realpath(cwd), limits_mode=mode, created_at=now, purpose=purpose
    )
    folder = RunFolder(app.home.workflows / run_id)
    record = RunRecord(
        run_id=run_id,
        short_id=short_id(run_id),
        started_at=now,
        kind="workflow",
        cwd=meta.cwd,
        purpose=purpose,
        folder=str(folder.path),
    )
    try:
        folder.create(meta, program)
        app.store.put_run(record)
    except (BullswarmError, OSError):
        # A disk that is full: half a run must not be left behind.
        shutil.rmtree(folder.path, ignore_errors=True)
        raise
    return meta


def unknown_pools(app: App, program: Program) -> tuple[Fault, ...]:
    """A fault for every pool or provider in the program that this machine does not know."""
    found = []
    known = {account.provider for _, account in app.accounts.values()} | set(app.accounts)
    for index, step in enumerate(program.steps):
        for key in ("use", "avoid"):
            for place, name in enumerate(getattr(step.route, key)):
                try:
                    app.resolve(name, "route")
                except UsageError:
                    path = f"$.steps[{index}].route.{key}[{place}]"
                    found.append(
                        Fault(path, f"there is no pool or provider {name!r}", near(name, known))
                    )
    return tuple(found)


def find(app: App, given: str) -> RunFolder:
    """A workflow by its id, short id or a prefix. Raises ``UsageError`` where there is none, with
    the nearest there is."""
    record = app.store.run(given)
    if record is not None and record.kind == "workflow":
        return RunFolder(app.home.workflows / record.run_id)
    if record is not None:
        raise UsageError(f"{given} is a single run, no workflow; see 'bullswarm runs'")
    known = [r for r in app.store.runs(None) if r.kind == "workflow"]
    if not known:
        raise UsageError(f"no workflow run {given!r}; there is none yet")
    names = {n for r in known for n in (r.run_id, r.short_id)}
    close = difflib.get_close_matches(given, names, n=1)
    newest = ", ".join(r.short_id for r in known[:5])
    hint = f"did you mean {close[0]!r}?" if close else f"the newest are: {newest}"
    raise UsageError(f"no workflow run {given!r}; {hint} 'bullswarm workflow runs' lists them")


def carried(folder: RunFolder) -> bool:
    """Whether a kernel process carries the run now."""
    return is_carried(folder.lock)


def start_kernel(app: App, folder: RunFolder, *, wait_s: float = START_S) -> bool:
    """Start the run's kernel in a process of its own that outlives us, and wait until its engine is
    up. False where one carries the run already; two that start at once settle it by the run's lock.
    Raises ``BullswarmError`` with the kernel's own words where it does not come up, ``UsageError``
    for a database that can't be one."""
    folder.check()
    if carried(folder):
        return False
    database_url(app.env)
    argv = [sys.executable, "-m", "bullswarm.workflow.host", str(app.home.path), folder.path.name]
    with folder.log.open("ab") as log, open(os.devnull, "rb") as nothing:
        child = subprocess.Popen(
            argv,
            stdin=nothing,
            stdout=log,
            stderr=log,
            env={**app.env, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,
            cwd="/",
        )
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        code = child.poll()
        if code is not None:
            if code in (0, BUSY):
                return code == 0
            raise BullswarmError(
                f"the kernel did not start: {last_words(folder)}; when that is put right: "
                f"bullswarm workflow resume {folder.path.name}"
            )
        if _is_up(folder, child.pid):
            return True
        time.sleep(STEP_S)
    raise BullswarmError(f"the kernel did not start within {wait_s:g} s: see {folder.log}")


def _is_up(folder: RunFolder, pid: int) -> bool:
    try:
        return folder.up_file.read_text().strip() == str(pid)
    except OSError:
        return False


def last_words(folder: RunFolder) -> str:
    """Why the last kernel stopped, as far as it could say."""
    for path in (folder.error_file, folder.log):
        try:
            lines = [line for line in path.read_text(errors="replace").splitlines() if line.strip()]
        except OSError:
            continue
        if lines:
            return lines[-1]
    with contextlib.suppress(OSError):
        if shutil.disk_usage(folder.path).free < FULL_BYTES:
            return f"the disk that holds {folder.path} is full"
    return "its process was killed, or the machine went down"


def tell(
    app: App,
    folder: RunFolder,
    make: Callable[[str, datetime], Event],
    *,
    wait_s: float = REPLY_S,
) -> Reply | None:
    """Send an event and wait for the kernel's answer, starting a kernel where none carries the run,
    unless the answer is a refusal that can be told without one. ``make`` gets the event's id and
    time. None where no answer came in time: the event stands in the mailbox all the same."""
    event_id = f"caller-{secrets.token_hex(6)}"
    event = make(event_id, app.now())
    refused = _refusal(folder, event)
    if refused is not None:
        return refused
    folder.send(event)
    start_kernel(app, folder)
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline:
        reply = folder.reply(event_id)
        if reply is not None:
            return reply
        if not carried(folder) and any(folder.mail()):
            # It ended just as we wrote: another one opens the run again.
            start_kernel(app, folder)
        time.sleep(STEP_S)
    return None


def _refusal(folder: RunFolder, event: Event) -> Reply | None:
    """What a kernel would say against an event; None where it would take it, or where only it can
    know."""
    from bullswarm.workflow.commands import Reply as Said
    from bullswarm.workflow.kernel import advance

    folder.check()
    state = folder.read_state()
    if state is None or carried(folder) or any(folder.mail()):
        return None
    for said in advance(state, event)[1]:
        if isinstance(said, Said) and not said.ok:
            return answer_of(said)
    return None


def delete(app: App, folder: RunFolder, *, discard: bool = False) -> None:
    """Remove a run that nobody carries; with ``discard`` also work that was not merged. Raises
    ``BullswarmError`` where it is carried, or where a worktree of it holds such work."""
    run = folder.path.name
    # One that has ended, or is about to, still has a kernel that puts its things away.
    if carried(folder) and not (_is_over(folder) and goes_down(folder)):
        raise BullswarmError(
            f"the run is still going; end it first: bullswarm workflow cancel {run}"
        )
    left = leftovers(folder)
    if left and not discard:
        names = "; ".join(f"{one.path} ({one.branch}): {one.why}" for one in left)
        raise BullswarmError(
            f"it holds work that was not merged: {names}. Merge it, or throw it away: "
            f"bullswarm workflow delete {run} --discard"
        )
    if left:
        meta = folder.read_meta()
        Workspaces(folder.worktrees, meta.cwd, meta.run_id).discard()
    if folder.path.is_dir():
        shutil.rmtree(folder.path)
    app.store.delete_run(run)


def _is_over(folder: RunFolder) -> bool:
    state = folder.read_state()
    return state is not None and (state.phase in ENDED or state.phase == "cancelling")


def leftovers(folder: RunFolder) -> tuple[Leftover, ...]:
    """Remove the run's worktrees that hold nothing of their own; name the others."""
    if not folder.meta_file.is_file() or not folder.worktrees.exists():
        return ()
    meta = folder.read_meta()
    left = Workspaces(folder.worktrees, meta.cwd, meta.run_id).sweep()
    folder.write_kept(left)
    return left


def await_end(folder: RunFolder, state: RunState) -> None:
    """Wait a moment for what a kernel does when its run has ended: worktrees are put away, and the
    result is written."""
    deadline = time.monotonic() + LEAVE_S
    while carried(folder) and time.monotonic() < deadline:
        with contextlib.suppress(OSError, msgspec.DecodeError):
            if msgspec.json.decode(folder.result_file.read_bytes(), type=_End).ended_at == (
                state.ended_at
            ):
                return
        time.sleep(STEP_S)


def goes_down(folder: RunFolder) -> bool:
    """Whether the kernel of a run that is over lets go of it within a moment."""
    deadline = time.monotonic() + LEAVE_S
    while carried(folder):
        if time.monotonic() >= deadline:
            return False
        time.sleep(STEP_S)
    return True


class _End(msgspec.Struct, rename="camel"):
    ended_at: datetime | None = None


def document(folder: RunFolder, state: RunState) -> dict[str, Any]:
    """The result document, with the worktrees that were kept."""
    from bullswarm.workflow.result import result

    return {**result(state), "worktrees": msgspec.to_builtins(folder.kept())}
