"""Watch one worker to its end: a state machine that is polled, so one thread can watch many."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

from bullswarm.dispatch.clocks import Clocks
from bullswarm.dispatch.facts import Facts
from bullswarm.dispatch.loop import LoopGuard
from bullswarm.dispatch.proc import Ending
from bullswarm.dispatch.spawn import alive, lived, read_exit
from bullswarm.dispatch.tail import Tail
from bullswarm.dispatch.types import Ended, EndedBy, Event, Limits, Notice, Worker

_T = TypeVar("_T")

ALIVE_S = 0.5
"""How often a worker without an exit file is checked to be there at all."""

CHUNKS = 16
"""Chunks read in one poll at most: a flood of output must not keep others waiting."""

RETRY_FACTOR = 2.0
"""Events that only say "trying again" are no progress; they get this much longer than silence."""

FLUSH_S = 0.2
"""After a certain notice, how long its next lines (the reset) may take to arrive."""

LEAVE_S = 0.3
"""After an exit, how long what the worker started may take to leave by itself."""

IDLE_KINDS = frozenset({"retry", "error"})


class Classifies(Protocol):
    """What the watch asks of a classifier of notices."""

    def feed(self, event: Event) -> Notice | None: ...

    def feed_stderr(self, line: str) -> Notice | None: ...

    def finish(self, *, failed: bool) -> Notice | None: ...


class Watch:
    """One worker. Call ``poll`` until it gives ``Ended``.

    ``read_event`` turns a raw JSON object into events. ``text_mode``: stdout is plain text and the
    answer. ``on_event`` sees every event. ``cancelled`` gives 0 (go on), 1 (end it) or 2 (kill it).
    """

    def __init__(
        self,
        worker: Worker,
        *,
        read_event: Callable[[dict[str, Any]], tuple[Event, ...]],
        classifier: Classifies,
        limits: Limits,
        text_mode: bool = False,
        on_event: Callable[[Event], None] = lambda _: None,
        cancelled: Callable[[], int] = lambda: 0,
        clocks: Clocks | None = None,
    ) -> None:
        self.worker = worker
        self.limits = limits
        self._classifier = classifier
        self._on_event = on_event
        self._cancelled = cancelled
        self._clocks = clocks or Clocks()
        self._facts = Facts(read_event, text_mode)
        self._loop = LoopGuard(limits.loop_repeats)
        self._out = Tail(worker.launch.stdout)
        self._err = Tail(worker.launch.stderr)
        log = worker.launch.log_file
        # It may hold other runs: only what is written from now on is this one's.
        self._log = Tail(log, from_end=True) if log is not None else None
        self._began = time.monotonic()
        self._before = lived(worker)
        self._started_at = datetime.now(UTC) - timedelta(seconds=self._before)
        self._text_mode = text_mode
        self._behind = False
        self._last_byte = 0.0
        self._last_progress = 0.0
        self._spoke = False
        self._final_at: float | None = None
        self._checked = -ALIVE_S
        self._gone = False
        self._ended_by: EndedBy | None = None
        self._stop_at: float | None = None
        self._ending: Ending | None = None
        self._done = False
        self._result: Ended | None = None

    def poll(self) -> Ended | None:
        """Look once; the facts when it is over. Never blocks for long, never raises for what a
        worker does."""
        if self._result is not None:
            return self._result
        if self._clocks.look():
            self._jumped()
        more = self._behind = self._drain()
        if self._ending is not None:
            return self._step()
        if self._stop_at is not None:
            if self._clocks.now >= self._stop_at:
                self._begin(self.limits.kill_grace_s)
            return None
        if self._is_over():
            if more:
                return None
            self._gone = True
            self._begin(self.limits.kill_grace_s)
            return self._step()
        level = self._cancelled()
        if level:
            self._end("cancelled", grace_s=0.0 if level > 1 else None)
        else:
            self._check_limits()
        return None

    @property
    def answering(self) -> bool:
        """Whether something came within the last second: worth polling soon again."""
        return self._clocks.now - self._last_byte < 1.0

    @property
    def behind(self) -> bool:
        """Whether more is there already than one poll reads."""
        return self._behind and self._result is None

    # reading

    def _drain(self) -> bool:
        """Read what is new; True where there may be more at once."""
        more = False
        for _ in range(CHUNKS):
            data = self._out.read()
            if data:
                self._heard()
                if self._text_mode:
                    self._last_progress = self._last_byte
                    self._spoke = True
                for event in self._facts.stdout(data):
                    self._take(event)
            error = self._err.read()
            if error:
                self._heard()
                for line in self._facts.stderr(error):
                    self._noticed(self._ask(self._classifier.feed_stderr, line))
            if not data and not error:
                return False
            more = True
        return more

    def _heard(self) -> None:
        self._last_byte = self._clocks.now

    def _take(self, event: Event) -> None:
        if event.kind not in IDLE_KINDS:
            self._last_progress = self._clocks.now
            self._spoke = True
        if event.kind == "final":
            self._final_at = self._clocks.now
        elif event.kind in ("text", "tool"):
            # It went on after what looked like its last word.
            self._final_at = None
        self._on_event(event)
        self._noticed(self._ask(self._classifier.feed, event))
        if self._loop.feed(event) and self._final_at is None:
            self._facts.note(f"{self._loop.stale} events in a row said nothing new")
            self._end("loop")

    def _ask(self, classify: Callable[[_T], Notice | None], what: _T) -> Notice | None:
        try:
            return classify(what)
        except Exception as error:
            # A connector's phrases must not end a run that goes well.
            self._facts.note(f"a notice could not be read: {type(error).__name__}: {error}")
            return None

    def _noticed(self, notice: Notice | None) -> None:
        if notice is None:
            return
        self._facts.notices.append(notice)
        if notice.certain and self._final_at is None:
            self._end("notice", wait_s=FLUSH_S)

    # ending

    def _is_over(self) -> bool:
        if read_exit(self.worker) is not None:
            # What was written before the status may have arrived since we read.
            return True
        now = self._clocks.now
        if now - self._checked < ALIVE_S:
            return False
        self._checked = now
        return not alive(self.worker)

    def _check_limits(self) -> None:
        now, limits = self._clocks.now, self.limits
        if limits.timeout_s is not None and now + self._before >= limits.timeout_s:
            self._end("timeout")
        elif self._final_at is not None:
            if now - self._final_at >= limits.final_grace_s:
                self._facts.note(
                    f"it said its final word and had not exited {limits.final_grace_s:g} s later"
                )
                self._end("final-grace")
        else:
            allowed = limits.silence_s if self._spoke else limits.startup_silence_s
            where = "" if self._spoke else " since it started"
            if now - self._last_byte >= allowed:
                self._stalled(f"silent for {now - self._last_byte:.0f} s{where}")
            elif now - self._last_progress >= allowed * RETRY_FACTOR:
                self._stalled(f"no progress for {now - self._last_progress:.0f} s{where}")

    def _stalled(self, why: str) -> None:
        self._facts.note(why)
        if self._log is not None:
            # Some write the reason into their log alone, and wait in silence.
            for line in self._facts.stderr(self._log.read_last()):
                self._noticed(self._ask(self._classifier.feed_stderr, line))
        self._end("stalled")

    def _end(
        self, by: EndedBy, *, grace_s: float | None = None, wait_s: float | None = None
    ) -> None:
        if self._ended_by is not None:
            return
        self._ended_by = by
        if wait_s is not None:
            self._stop_at = self._clocks.now + wait_s
            return
        self._begin(self.limits.kill_grace_s if grace_s is None else grace_s)

    def _begin(self, grace_s: float) -> None:
        """End what is left of its processes; after an exit that is what it started."""
        if self._ending is None:
            leave_s = LEAVE_S if self._gone else 0.0
            self._ending = Ending(self.worker, grace_s, leave_s=leave_s)

    def _step(self) -> Ended | None:
        if self._ending is None:
            return None
        if not self._done:
            if self._cancelled() > 1:
                self._ending.kill()
            if not self._ending.step():
                return None
            self._done = True
            # Whoever still writes there is none of ours.
            self._out.stop()
            self._err.stop()
        self._behind = self._drain()
        if self._behind:
            return None
        left = self._ending.told - {self.worker.pid}
        if self._gone and left:
            self._facts.note(f"left {len(left)} process(es) running, which were ended")
        for event in self._facts.close():
            self._take(event)
        return self._finish()

    def _finish(self) -> Ended:
        code = read_exit(self.worker)
        by = self._ended_by
        if by is None:
            by = "exit" if code is not None else "lost"
        if code is None and self._ending is not None and self._ending.killed:
            code = -9
        final = self._facts.final
        failed = by != "final-grace" and (code != 0 or final is None or final.is_error)
        late = self._ask(lambda it: self._classifier.finish(failed=it), failed)
        if late is not None:
            self._facts.notices.append(late)
        self._out.close()
        self._err.close()
        if self._log is not None:
            self._log.close()
        self._result = self._facts.ended(
            by,
            code,
            started_at=self._started_at,
            ended_at=datetime.now(UTC),
            wall_s=round(self._before + time.monotonic() - self._began, 3),
            survivors=self._ending.survivors if self._ending is not None else (),
            jumped=self._clocks.jumps > 0,
        )
        return self._result

    def _jumped(self) -> None:
        self._facts.note("the machine slept or its clock was set while this ran")
        # Neither side could speak or listen meanwhile.
        self._last_byte = self._last_progress = self._clocks.now
