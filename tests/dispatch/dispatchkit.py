"""Real workers for the dispatch tests: small shell scripts, watched with cheap readers."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from bullswarm.dispatch import Watch, end_group, start
from bullswarm.dispatch.notices import Classifier
from bullswarm.dispatch.types import Ended, Event, Launch, Limits, Worker

QUICK = Limits(
    startup_silence_s=20.0, silence_s=20.0, final_grace_s=0.2, kill_grace_s=0.3, loop_repeats=40
)


def read_event(raw: dict[str, Any]) -> tuple[Event, ...]:
    """The stream is our own events, as JSON objects; others say nothing."""
    return (Event(**raw),) if "kind" in raw else ()


def launch_of(folder: Path, argv: list[str], **more: Any) -> Launch:
    """A launch with all its files in ``folder`` and an id of its own."""
    env = dict(os.environ) | more.pop("env", {})
    env.pop("BULLSWARM_DEPTH", None)
    return Launch(
        attempt_id=more.pop("attempt_id", f"t-{uuid4().hex[:12]}"),
        argv=tuple(argv),
        env=env,
        cwd=str(more.pop("cwd", folder)),
        stdout=str(folder / "stream.jsonl"),
        stderr=str(folder / "stderr.log"),
        exit_file=str(folder / "exit"),
        pid_file=str(folder / "pid"),
        **more,
    )


def sh(folder: Path, script: str, **more: Any) -> Launch:
    """A launch of a shell script."""
    return launch_of(folder, ["sh", "-c", script], **more)


def python(folder: Path, code: str, *args: str) -> Launch:
    """A launch of a Python program, with as little start-up as there can be."""
    return launch_of(folder, [sys.executable, "-S", "-E", "-c", code, *args])


def watch_of(worker: Worker, limits: Limits = QUICK, **more: Any) -> Watch:
    """A watch with the real classifier."""
    more.setdefault("read_event", read_event)
    more.setdefault("classifier", Classifier())
    return Watch(worker, limits=limits, **more)


def finish(watch: Watch, within_s: float = 15.0) -> Ended:
    """Poll to the end, quickly."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        ended = watch.poll()
        if ended is not None:
            return ended
        time.sleep(0.01)
    end_group(watch.worker, 0.0)
    raise AssertionError(f"the worker had not ended after {within_s} s")


def run(launch: Launch, limits: Limits = QUICK, **more: Any) -> Ended:
    """Start and watch to the end."""
    return finish(watch_of(start(launch), limits, **more))


def until(true: Callable[[], Any], within_s: float = 5.0) -> Any:
    """Wait for it; gives what it gave."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        value = true()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError("it did not come true in time")


def runs(pid: int) -> bool:
    """Whether the process is there and no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat[stat.rindex(")") + 2] not in "ZX"
