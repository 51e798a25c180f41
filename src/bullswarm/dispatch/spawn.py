"""Start a worker so that any process can find it, read its end, and never start it twice.

A shell of a few lines stands between us and the worker. It leads the worker's session, claims the
attempt's pid file (which can be claimed once), runs the command and writes down its exit status. So
the status outlives us, and a crash between "start it" and "write down that it was started" can't
lead to a second start.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO

from bullswarm.dispatch.environment import ATTEMPT, mark
from bullswarm.dispatch.errors import AlreadyStarted, SpawnError
from bullswarm.dispatch.types import Launch, Worker

CLAIM_S = 10.0
"""How long the shell may take to claim the attempt before it counts as failed."""

CLAIMING_S = 1.0
"""How long a claim may take from the file to the number in it."""

_CLAIMED = 125

# Traps, not ignores: a signal that is ignored would be ignored by the command, too.
# What the shell itself says ("Terminated") does not belong into the worker's stderr.
# The worker's own files get the umask it would have had without us; ours are private.
_SHIM = """
mask=$(umask)
umask 077
set -C
{ printf '%s\\n' "$$" > "$1"; } 2>/dev/null || exit 125
set +C
out=$2
shift 2
trap : TERM INT HUP
umask "$mask"
exec 3>&2 2> /dev/null
(exec "$@" 2>&3 3>&-)
code=$?
umask 077
printf '%s\\n' "$code" > "$out"
exit "$code"
"""

# Only signals that end a process; a CLI may exit with a number above 128 of its own accord.
_ENDING = frozenset(
    int(getattr(signal, name))
    for name in (
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGSEGV",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
    )
    if hasattr(signal, name)
)

_children: dict[int, subprocess.Popen[bytes]] = {}


def start(launch: Launch) -> Worker:
    """Start the worker in a session of its own, its streams going straight to its files.

    Raises ``SpawnError`` where it can't be started (no such command, no such folder) and
    ``AlreadyStarted`` where the attempt was started before.
    """
    argv = (_command(launch), *launch.argv[1:])
    if not Path(launch.cwd).is_dir():
        raise SpawnError(f"the working folder {launch.cwd} is not there")
    if Path(launch.pid_file).exists():
        raise AlreadyStarted(f"attempt {launch.attempt_id} was started before")
    env = mark(launch.env, launch.attempt_id)
    made = [name for name in (launch.stdout, launch.stderr) if not Path(name).exists()]
    try:
        return _claimed(launch, *_spawned(launch, argv, env))
    except SpawnError:
        _forget(launch, made)
        raise


def _spawned(
    launch: Launch, argv: tuple[str, ...], env: dict[str, str]
) -> tuple[subprocess.Popen[bytes], float]:
    with contextlib.ExitStack() as stack:
        try:
            stdin = stack.enter_context(_stdin(launch.stdin))
            stdout = stack.enter_context(_append(launch.stdout))
            stderr = stack.enter_context(_append(launch.stderr))
            child = subprocess.Popen(
                [*_shell(env), _SHIM, "bullswarm", launch.pid_file, launch.exit_file, *argv],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=launch.cwd,
                env=env,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise SpawnError(f"{launch.argv[0]} could not be started: {error}") from error
    _children[child.pid] = child
    # At once: later it may have ended.
    return child, _start_time(child.pid) or 0.0


def _shell(env: dict[str, str]) -> tuple[str, ...]:
    """The shell of the shim. Some drop variables whose names they could not use; bash hands them
    on."""
    if all(name.isidentifier() for name in env):
        return ("/bin/sh", "-c")
    bash = shutil.which("bash", path=os.defpath)
    # As a POSIX shell it reads no start-up file.
    return (bash, "--posix", "-c") if bash is not None else ("/bin/sh", "-c")


def _forget(launch: Launch, made: list[str]) -> None:
    """Take back the empty streams of a worker that never started."""
    if Path(launch.pid_file).exists():
        return
    for name in made:
        with contextlib.suppress(OSError):
            if Path(name).stat().st_size == 0:
                Path(name).unlink()


def find(launch: Launch) -> Worker | None:
    """The worker of an attempt that was started before, alive or ended; None where it never was."""
    pid = _pid_in(launch.pid_file)
    while pid is None:
        try:
            age = time.time() - Path(launch.pid_file).stat().st_mtime
        except OSError:
            return None
        if not 0 <= age < CLAIMING_S:
            return None
        # Its shell has made the file and is about to write into it.
        time.sleep(0.005)
        pid = _pid_in(launch.pid_file)
    return Worker(
        attempt_id=launch.attempt_id,
        pid=pid,
        started=_started_as(pid, launch.attempt_id),
        launch=launch,
    )


def read_exit(worker: Worker) -> int | None:
    """The exit status that the worker left, negative for a signal; None where there is none
    (yet)."""
    try:
        fd = os.open(worker.launch.exit_file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    with open(fd, "rb") as file:
        text = file.read(64)
    if not text.endswith(b"\n") or not text.strip().isdigit():
        return None
    code = int(text)
    return -(code - 128) if code > 128 and code - 128 in _ENDING else code


def alive(worker: Worker) -> bool:
    """Whether the worker's leading process still runs; a zombie does not."""
    from bullswarm.store.process import alive as runs

    child = _children.get(worker.pid)
    if child is not None:
        if child.poll() is None:
            return True
        _children.pop(worker.pid, None)
        return False
    return worker.started > 0 and runs(worker.pid, worker.started)


def lived(worker: Worker) -> float:
    """For how many seconds the worker has run (or had run, where it has ended). Time that the
    machine slept does not count while it runs, as far as is known; 0 where nothing is."""
    try:
        claimed = Path(worker.launch.pid_file).stat().st_mtime
        if not alive(worker):
            return max(0.0, Path(worker.launch.exit_file).stat().st_mtime - claimed)
    except OSError:
        return 0.0
    # Start times of this size count from the start of the machine, as the monotonic clock does.
    by_start = (time.monotonic() if worker.started < 1e9 else time.time()) - worker.started
    return max(0.0, min(by_start, time.time() - claimed))


def reap(worker: Worker) -> None:
    """Let no zombie stand where the worker was our child."""
    child = _children.get(worker.pid)
    if child is not None and child.poll() is not None:
        _children.pop(worker.pid, None)


def _command(launch: Launch) -> str:
    name = launch.argv[0]
    path = launch.env.get("PATH", os.defpath)
    found = shutil.which(str(Path(launch.cwd) / name) if "/" in name else name, path=path)
    if found is None:
        raise SpawnError(f"command not found: {name}")
    return str(Path(found).absolute())


def _append(path: str) -> IO[bytes]:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    return os.fdopen(fd, "ab", buffering=0)


def _stdin(text: str | None) -> IO[bytes]:
    if text is None:
        return open(os.devnull, "rb")
    # A file, not a pipe: nobody has to stay alive to feed it.
    file = tempfile.TemporaryFile()  # noqa: SIM115
    file.write(text.encode("utf-8", "replace"))
    file.seek(0)
    return file


def _claimed(launch: Launch, child: subprocess.Popen[bytes], started: float) -> Worker:
    deadline = time.monotonic() + CLAIM_S
    pause = 0.001
    while True:
        pid = _pid_in(launch.pid_file)
        if pid == child.pid:
            return Worker(attempt_id=launch.attempt_id, pid=pid, started=started, launch=launch)
        code = child.poll()
        if code is not None and _pid_in(launch.pid_file) != child.pid:
            _children.pop(child.pid, None)
            if pid is not None or (code == _CLAIMED and Path(launch.pid_file).exists()):
                raise AlreadyStarted(f"attempt {launch.attempt_id} was started before")
            raise SpawnError(f"the worker could not claim {launch.pid_file} (exit {code})")
        if time.monotonic() > deadline:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            _children.pop(child.pid, None)
            if _pid_in(launch.pid_file) == child.pid:
                Path(launch.pid_file).unlink()
            raise SpawnError("the worker did not come up")
        time.sleep(pause)
        pause = min(pause * 2, 0.02)


def _pid_in(path: str) -> int | None:
    try:
        text = Path(path).read_text()
    except OSError:
        return None
    return int(text) if text.endswith("\n") and text[:-1].isdecimal() and text.isascii() else None


def _start_time(pid: int) -> float | None:
    from bullswarm.store.process import started

    return started(pid)


def _started_as(pid: int, attempt_id: str) -> float:
    """When the process of that pid started, if it is this attempt's; 0 where it is gone and the
    number may belong to somebody else by now."""
    started = _start_time(pid)
    if started is None:
        return 0.0
    try:
        if os.getsid(pid) != pid:
            return 0.0
    except OSError:
        return 0.0
    try:
        block = Path(f"/proc/{pid}/environ").read_bytes()
    except FileNotFoundError:
        return started if not Path("/proc/self").exists() else 0.0
    except OSError:
        return 0.0
    for entry in block.split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name == ATTEMPT.encode():
            return started if attempt_id.encode() in value.split() else 0.0
    return 0.0
