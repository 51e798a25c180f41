"""Held steps while nothing happens to the run: who may go now, and who lost its place in line.

A hold ends at its time, or when there is room; that is seen here and told to the run as an event.
Looking changes nothing, so that work that waits for hours leaves no trail of vain asks behind.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

from bullswarm.errors import BullswarmError
from bullswarm.runs.placing import LOOK_AGAIN_S, LOOK_S, ready
from bullswarm.workflow.carry import Carrier
from bullswarm.workflow.events import Event, Released
from bullswarm.workflow.state import AttemptState, RunState


class Line:
    """Watches the held steps of one run in a thread of its own: a meter may be slow to answer."""

    def __init__(self, carrier: Carrier, send: Callable[[Event], None]) -> None:
        self._carrier, self._send = carrier, send

    def watch(self) -> None:
        """Start watching; it ends with the process."""
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        seen: object = None
        again = 0.0
        while True:
            time.sleep(LOOK_S)
            try:
                now = self._version()
                if now == seen and time.monotonic() < again:
                    continue
                for event in self.look():
                    self._send(event)
                # Our own reading of the meters is nothing new.
                seen = self._version()
            except (BullswarmError, OSError):
                # A full disk, a folder that is gone: whoever has to write says so.
                pass
            again = time.monotonic() + LOOK_AGAIN_S

    def look(self) -> Iterator[Released]:
        """An event for every held step that is to ask again."""
        app, state = self._carrier.app, self._carrier.folder.read_state()
        held = dict(_held(state)) if state is not None else {}
        if not held or state is None:
            return
        app.reload()
        here = {agent.id for agent in app.store.line()}
        go = ready(app, state.run_id) if here & held.keys() else frozenset()
        now = app.now()
        margin = timedelta(seconds=app.settings.limits.wait_margin_seconds)
        for attempt_id, (step, attempt) in held.items():
            lost = attempt_id not in here
            until = attempt.held_until
            late = (
                state.limits_mode == "wait" and until is not None and until - margin <= now < until
            )
            # Just after a reset its provider may be late; the hold's own time comes soon.
            if lost or (attempt_id in go and not late):
                name = f"room {step} {len(state.seen)}"
                yield Released(id=name, at=now, step=step)

    def _version(self) -> object:
        try:
            changed = self._carrier.folder.state_file.stat().st_mtime_ns
        except FileNotFoundError:
            changed = 0
        return (self._carrier.app.store.version(), changed)


def _held(state: RunState) -> Iterator[tuple[str, tuple[str, AttemptState]]]:
    if state.phase != "running":
        return
    for name, step in state.steps.items():
        last = step.last
        waits = step.status == "pending" and step.not_before is not None
        if waits and last is not None and last.state == "held":
            yield last.id, (name, last)
