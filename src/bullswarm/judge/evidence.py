"""Evidence that the kernel runs itself after a worker: a command, or a schema over a file or the
answer. Doctrine rule 3: what the worker says of its own work is never proof."""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bullswarm.judge.schema import (
    MAX_FAULTS,
    Fault,
    NotFound,
    Schema,
    container_of,
    find_json,
    make_schema,
    parse_file,
)
from bullswarm.judge.schema import check_schema as _check
from bullswarm.judge.snapshot import Budget, file_digest, walk

if TYPE_CHECKING:
    import subprocess

OUTPUT = "$output"
"""The source that stands for the worker's answer."""

TAIL_BYTES = 4000
KILL_GRACE_S = 2.0
REAPED_S = 1.0
DRAIN_S = 0.5
"""Seconds that output is still read after the end: a child that slipped away may hold the pipe."""


class CommandEvidence(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a command showed. ``exit_code`` is negative for a signal, None where it never started.
    ``tail`` is the end of its output, both streams together. ``why`` is "passed" when ``ok``."""

    ok: bool
    exit_code: int | None
    tail: str
    wall_s: float
    timed_out: bool = False
    why: str = "passed"
    changed: tuple[str, ...] = ()


class SchemaEvidence(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a schema check showed. At most 20 faults are listed."""

    ok: bool
    source: str
    faults: tuple[Fault, ...] = ()
    why: str = "passed"


def run_command(
    command: Sequence[str] | str,
    cwd: str | Path,
    timeout_s: float,
    tail_bytes: int = TAIL_BYTES,
    *,
    protect: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> CommandEvidence:
    """Run a check. A string goes through ``/bin/sh``, a list is started as it is.

    Exit 0 within ``timeout_s`` seconds passes. The whole process group is ended at the timeout, and
    what it left running is ended too. ``protect`` are the deliverable's paths, relative to ``cwd``:
    a check that changes what it checks has failed. Never raises for what the command does.
    """
    import subprocess

    argv = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    before = _digests(cwd, protect)
    begun = time.monotonic()
    try:
        child = subprocess.Popen(
            argv,
            cwd=cwd,
            env=dict(env) if env is not None else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError, IndexError) as error:
        why = f"the check could not be started: {error}"
        return CommandEvidence(ok=False, exit_code=None, tail="", wall_s=0.0, why=why)
    try:
        tail, stopped = _follow(child, begun + timeout_s, tail_bytes, cancelled)
    finally:
        _end_group(child)
        if child.stdout is not None:
            child.stdout.close()
    wall = round(time.monotonic() - begun, 3)
    after = _digests(cwd, protect)
    changed = tuple(path for path in protect if before[path] != after[path])
    code = child.returncode
    if stopped == "timeout":
        why = f"the check timed out after {timeout_s:g}s"
    elif stopped == "cancelled":
        why = "cancelled"
    elif code != 0:
        why = f"the check ended by signal {-code}" if code < 0 else f"the check exited {code}"
    elif changed:
        why = f"the check changed the deliverable: {', '.join(changed)}"
    else:
        why = "passed"
    return CommandEvidence(
        ok=why == "passed",
        exit_code=code,
        tail=_text(tail),
        wall_s=wall,
        timed_out=stopped == "timeout",
        why=why,
        changed=changed,
    )


def check_schema(
    instance: Any, schema: Schema | dict[str, Any] | bool, *, limit: int = MAX_FAULTS
) -> tuple[Fault, ...]:
    """Every fault of an instance with its path, at most ``limit``. Raises ``UsageError`` for a bad
    schema."""
    return _check(instance, schema, limit=limit)


def run_schema(
    source: str,
    schema: Schema | dict[str, Any] | bool,
    *,
    cwd: str | Path,
    output: str = "",
    limit: int = MAX_FAULTS,
) -> SchemaEvidence:
    """Check a file (relative to ``cwd``; JSON, or YAML by its name) or ``$output``, the answer,
    against a schema. Raises ``UsageError`` for a bad schema only."""
    known = schema if isinstance(schema, Schema) else make_schema(schema)
    try:
        if source == OUTPUT:
            instance = find_json(output, container_of(known))
        else:
            instance = parse_file(Path(cwd, source))
    except NotFound as error:
        return SchemaEvidence(ok=False, source=source, why=str(error))
    except FileNotFoundError:
        return SchemaEvidence(ok=False, source=source, why=f"{source} is missing")
    except OSError as error:
        why = f"{source} can't be read: {error.strerror or error}"
        return SchemaEvidence(ok=False, source=source, why=why)
    except ValueError as error:
        return SchemaEvidence(ok=False, source=source, why=f"{source} can't be parsed: {error}")
    faults = _check(instance, known, limit=limit)
    if not faults:
        return SchemaEvidence(ok=True, source=source)
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return SchemaEvidence(
        ok=False, source=source, faults=faults, why=f"{source}: {faults[0]}{more}"
    )


def _follow(
    child: subprocess.Popen[bytes],
    deadline: float,
    keep: int,
    cancelled: Callable[[], bool] | None,
) -> tuple[bytes, str | None]:
    """Read the output until the end, keeping its last ``keep`` bytes; and what cut it short."""
    assert child.stdout is not None
    fd = child.stdout.fileno()
    os.set_blocking(fd, False)
    tail = b""
    open_ = True
    drain_until: float | None = None
    with selectors.DefaultSelector() as ready:
        ready.register(fd, selectors.EVENT_READ)
        while True:
            if open_:
                if ready.select(0.05):
                    try:
                        chunk = os.read(fd, 1 << 16)
                    except BlockingIOError:
                        chunk = None
                    if chunk == b"":
                        open_ = False
                        ready.unregister(fd)
                    elif chunk:
                        tail = (tail + chunk)[-keep:] if keep > 0 else b""
            elif child.poll() is None:
                time.sleep(0.01)
            now = time.monotonic()
            if child.poll() is not None:
                if not open_:
                    return tail, None
                if drain_until is None:
                    drain_until = now + DRAIN_S
                    _signal(child.pid, signal.SIGTERM)
                if now >= drain_until:
                    return tail, None
            elif now >= deadline:
                return tail, "timeout"
            elif cancelled is not None and cancelled():
                return tail, "cancelled"


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """TERM, then KILL, to the whole group, also where only grandchildren are left."""
    _signal(child.pid, signal.SIGTERM)
    if _gone(child, KILL_GRACE_S):
        return
    _signal(child.pid, signal.SIGKILL)
    child.wait()
    # A grandchild dies a moment after its signal; one that nobody reaps would hold us for ever.
    _gone(child, REAPED_S)


def _gone(child: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether the whole group is gone within ``seconds``."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if child.poll() is not None and not _signal(child.pid, 0):
            return True
        time.sleep(0.02)
    return False


def _signal(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _digests(cwd: str | Path, paths: Sequence[str]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for path in paths:
        full = Path(cwd, path)
        if full.is_dir():
            files = walk(full, Budget()).files
            found[path] = repr(
                sorted((p, s.digest or (s.size, s.mtime_ns)) for p, s in files.items())
            )
        else:
            found[path] = file_digest(full)
    return found


def _text(tail: bytes) -> str:
    """The tail as text: a character that the cut went through is dropped, not garbled."""
    start = 0
    while start < min(4, len(tail)) and tail[start] & 0xC0 == 0x80:
        start += 1
    return tail[start:].decode("utf-8", errors="replace")
