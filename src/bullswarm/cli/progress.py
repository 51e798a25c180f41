"""Live progress of a run on stderr: what was picked, what the agent is doing, how long it takes."""

from __future__ import annotations

import contextlib
import sys
import time

import click

from bullswarm.cli.output import paint, span
from bullswarm.runs.types import Progress as Item

QUIET_KINDS = frozenset({"tick"})
WIDTH = 110


class Progress:
    """Called with each ``runs.Progress``. On a terminal it shows the agent's steps as they come;
    elsewhere only what changes the run, and a heartbeat every ``heartbeat_s`` seconds."""

    def __init__(self, *, quiet: bool, heartbeat_s: float | None) -> None:
        self.quiet = quiet
        self.heartbeat_s = heartbeat_s
        self.live = sys.stderr.isatty()
        self._beat = time.monotonic()
        self._last = ""
        self._doing = ""

    def __call__(self, item: Item) -> None:
        if item.kind == "event" and item.event is not None:
            self._remember(item)
            if self.live and not self.quiet:
                self._event(item)
        elif item.kind not in QUIET_KINDS and not self.quiet:
            self._line(item)
        self._heartbeat(item)

    def _remember(self, item: Item) -> None:
        event = item.event
        if event is not None and event.kind in ("tool", "text", "retry"):
            words = (event.tool or event.text or event.kind).strip()
            self._doing = words.splitlines()[0][:60] if words else event.kind

    def _event(self, item: Item) -> None:
        event = item.event
        if event is None or event.kind not in ("tool", "text", "retry", "error"):
            return
        words = event.tool if event.kind == "tool" else event.text
        first = (words or event.code or "").strip().splitlines()
        if first:
            self._emit(f"  {event.kind:6} {first[0][:WIDTH]}", "dim")

    def _line(self, item: Item) -> None:
        tone = {
            "routed": "key",
            "notice": "warn",
            "benched": "warn",
            "waiting": "warn",
            "held": "warn",
            "retrying": "warn",
        }.get(item.kind)
        self._emit(f"{item.kind}: {item.text}", tone)

    def _emit(self, text: str, tone: str | None) -> None:
        if text != self._last:
            _print(paint(text, tone, self.live))
            self._last = text

    def _heartbeat(self, item: Item) -> None:
        if self.heartbeat_s is None or time.monotonic() - self._beat < self.heartbeat_s:
            return
        self._beat = time.monotonic()
        doing = f", last: {self._doing}" if self._doing else ""
        _print(f"heartbeat: {item.pool or '-'} {span(item.elapsed_s)}{doing}")


def _print(text: str) -> None:
    # Whether anybody listens or not, the work goes on.
    with contextlib.suppress(OSError):
        click.echo(text, err=True)
