"""A run's folder in the home: everything of one workflow, readable by people."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bullswarm.errors import BullswarmError
from bullswarm.runs.after import LimitsMode
from bullswarm.store.files import atomic_write
from bullswarm.workflow import commands
from bullswarm.workflow import state as states
from bullswarm.workflow.events import Event, decode_event, encode_event
from bullswarm.workflow.program import Program
from bullswarm.workflow.workspace import Leftover

T = TypeVar("T")

UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


class Meta(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a run was started with. ``generation`` counts how often it was opened again after an
    end."""

    run_id: str
    cwd: str
    limits_mode: LimitsMode
    created_at: datetime
    generation: int = 1
    purpose: str = ""


class Reply(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The kernel's answer to what a caller sent."""

    event_id: str
    ok: bool
    why: str = ""
    faults: tuple[dict[str, Any], ...] = ()
    revision: int = 1


def answer_of(said: commands.Reply) -> Reply:
    """The reducer's answer as it is kept for the caller."""
    return Reply(
        event_id=said.event_id,
        ok=said.ok,
        why=said.why,
        faults=tuple(msgspec.to_builtins(said.faults)),
        revision=said.revision,
    )


class RunFolder:
    """Paths and files of one run. Raises ``BullswarmError`` for a folder that is gone or
    damaged."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self, meta: Meta, program: Program) -> None:
        for folder in (self.path, self.attempts, self.inbox, self.replies):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic_write(self.program, _pretty(program))
        self.write_meta(meta)

    @property
    def program(self) -> Path:
        return self.path / "program.json"

    @property
    def meta_file(self) -> Path:
        return self.path / "meta.json"

    @property
    def state_file(self) -> Path:
        return self.path / "state.json"

    @property
    def events_file(self) -> Path:
        return self.path / "events.jsonl"

    @property
    def result_file(self) -> Path:
        return self.path / "result.json"

    @property
    def attempts(self) -> Path:
        return self.path / "attempts"

    @property
    def inbox(self) -> Path:
        return self.path / "inbox"

    @property
    def replies(self) -> Path:
        return self.path / "replies"

    @property
    def worktrees(self) -> Path:
        return self.path / "worktrees"

    @property
    def kept_file(self) -> Path:
        return self.path / "kept.json"

    @property
    def lock(self) -> Path:
        return self.path / "kernel.lock"

    @property
    def up_file(self) -> Path:
        """Holds the process id of the newest kernel whose engine came up."""
        return self.path / "kernel.up"

    @property
    def log(self) -> Path:
        return self.path / "kernel.log"

    @property
    def error_file(self) -> Path:
        return self.path / "kernel-error.txt"

    @property
    def database(self) -> Path:
        return self.path / "dbos.sqlite"

    def check(self) -> None:
        """Raises ``BullswarmError`` where the run's folder is not there any more."""
        if not self.meta_file.is_file():
            raise BullswarmError(
                f"the run's folder {self.path} is gone or was emptied, so this run can't go on; "
                "'bullswarm workflow delete' removes its record"
            )

    def read_meta(self) -> Meta:
        self.check()
        return _read(self.meta_file, Meta)

    def write_meta(self, meta: Meta) -> None:
        atomic_write(self.meta_file, _pretty(meta))

    def read_program(self) -> Program:
        return _read(self.program, Program)

    def read_state(self) -> states.RunState | None:
        """The newest state, None before the kernel's first word."""
        try:
            return states.decode(self.state_file.read_bytes())
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise BullswarmError(f"{self.state_file} is damaged: {error}") from error

    def write_state(self, state: states.RunState) -> None:
        atomic_write(self.state_file, states.encode(state))

    # events

    def append_event(self, n: int, event: Event) -> None:
        """Write event number ``n`` unless it stands there already: a kernel that comes after a
        crash goes through its events again."""
        if n <= self.events_written():
            return
        line = msgspec.json.encode({"n": n, "event": msgspec.Raw(encode_event(event))}) + b"\n"
        try:
            with self.events_file.open("ab") as file:
                file.write(line)
        except OSError as error:
            raise BullswarmError(f"{self.events_file} can't be written: {error}") from error

    def events_written(self) -> int:
        """The number of the last event in the file. A torn last line is cut off."""
        try:
            with self.events_file.open("rb+") as file:
                size = file.seek(0, 2)
                back = 1 << 16
                while True:
                    back = min(size, back)
                    file.seek(size - back)
                    tail = file.read(back)
                    whole = tail.rfind(b"\n") + 1
                    # The last whole line, however long, and the break before it.
                    if back == size or tail.rfind(b"\n", 0, max(whole - 1, 0)) >= 0:
                        break
                    back *= 4
                if whole < len(tail):
                    file.truncate(size - len(tail) + whole)
                lines = tail[:whole].splitlines()
        except FileNotFoundError:
            self.events_file.touch(mode=0o600)
            return 0
        try:
            return int(msgspec.json.decode(lines[-1])["n"]) if lines else 0
        except (msgspec.DecodeError, KeyError, TypeError) as error:
            raise BullswarmError(f"{self.events_file} is damaged: {error}") from error

    def events(self, after: int = 0) -> list[tuple[int, Event]]:
        """The events numbered above ``after``."""
        found = []
        try:
            lines = self.events_file.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return []
        for line in lines:
            if not line.endswith(b"\n"):
                break
            try:
                item = msgspec.json.decode(line)
                if item["n"] > after:
                    found.append((item["n"], decode_event(msgspec.json.encode(item["event"]))))
            except (msgspec.DecodeError, KeyError, TypeError) as error:
                raise BullswarmError(f"{self.events_file} is damaged: {error}") from error
        return found

    # worktrees that hold work nobody merged

    def write_kept(self, kept: Sequence[Leftover]) -> None:
        if kept or self.kept_file.exists():
            atomic_write(self.kept_file, _pretty(kept))

    def kept(self) -> tuple[Leftover, ...]:
        """The worktrees that were kept when they were last looked at."""
        try:
            found = msgspec.json.decode(self.kept_file.read_bytes(), type=tuple[Leftover, ...])
        except (FileNotFoundError, msgspec.DecodeError):
            return ()
        return tuple(one for one in found if Path(one.path).exists())

    # the mailbox

    def send(self, event: Event) -> None:
        """Put an event into the mailbox; the kernel takes it in when it runs."""
        self.check()
        self.inbox.mkdir(mode=0o700, exist_ok=True)
        stamp = f"{event.at.timestamp():017.6f}"
        atomic_write(self.inbox / f"{stamp}-{safe(event.id)}.json", encode_event(event))

    def mail(self) -> Iterator[tuple[Path, Event]]:
        """What waits in the mailbox, oldest first. A message that can't be read is set aside."""
        with contextlib.suppress(FileNotFoundError):
            for path in sorted(self.inbox.glob("*.json")):
                try:
                    yield path, decode_event(path.read_bytes())
                except msgspec.DecodeError:
                    path.rename(path.with_suffix(".unreadable"))

    def taken(self, event_id: str) -> None:
        """The message was taken in."""
        for path in self.inbox.glob(f"*-{safe(event_id)}.json"):
            path.unlink(missing_ok=True)

    def answer(self, reply: Reply) -> None:
        self.replies.mkdir(mode=0o700, exist_ok=True)
        atomic_write(self.replies / f"{safe(reply.event_id)}.json", msgspec.json.encode(reply))

    def reply(self, event_id: str) -> Reply | None:
        try:
            path = self.replies / f"{safe(event_id)}.json"
            return msgspec.json.decode(path.read_bytes(), type=Reply)
        except FileNotFoundError:
            return None


def safe(name: str) -> str:
    """A name that is one path component."""
    return UNSAFE.sub("_", name)


def _pretty(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _read(path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError as error:
        raise BullswarmError(f"{path} is gone; the run can't go on without it") from error
    except msgspec.DecodeError as error:
        raise BullswarmError(f"{path} is damaged: {error}") from error
