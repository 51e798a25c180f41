"""What a worker's streams said, gathered for the judge."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from bullswarm.dispatch.framing import Lines, Objects
from bullswarm.dispatch.types import Ended, EndedBy, Event, Notice, Usage

TAIL_CHARS = 8000
ANSWER_BYTES = 4 * 1024 * 1024
NOTES = 20
NOTICES = 50
SAID_CHARS = 12_000
"""Characters of the worker's own words that are kept for whoever carries on."""


class Facts:
    """Both streams of one attempt, from bytes to facts, in bounded memory."""

    def __init__(
        self, read_event: Callable[[dict[str, Any]], tuple[Event, ...]], text_mode: bool
    ) -> None:
        self.final: Event | None = None
        self.notices: list[Notice] = []
        self._read_event = read_event
        self._text_mode = text_mode
        self._out, self._err, self._objects = Lines(), Lines(), Objects()
        self._text = bytearray()
        self._cut = False
        self._last_text = ""
        self._said = ""
        self._notes: list[str] = []
        self._session: str | None = None
        self._model: str | None = None
        self._usage = Usage()
        self._tools = 0
        self._lines = 0
        self._odd = 0
        self._last_kind: str | None = None
        self._stdout_tail = ""
        self._stderr_tail = ""

    def stdout(self, data: bytes) -> list[Event]:
        """The events in what stdout said next."""
        if self._text_mode:
            room = ANSWER_BYTES - len(self._text)
            self._text += data[: max(0, room)]
            self._cut = self._cut or len(data) > room
        return [event for line in self._out.feed(data) for event in self._line(line)]

    def stderr(self, data: bytes) -> list[str]:
        """The complete lines in what stderr said next."""
        lines = [line.decode("utf-8", "replace") for line in self._err.feed(data)]
        for line in lines:
            self._stderr_tail = _tail(self._stderr_tail, line)
        return lines

    def close(self) -> list[Event]:
        """What stands in a last line without a newline."""
        rest = self._out.rest()
        events = self._line(rest) if rest else []
        self._objects.finish()
        error = self._err.rest()
        if error:
            self._stderr_tail = _tail(self._stderr_tail, error.decode("utf-8", "replace"))
        return events

    def note(self, text: str) -> None:
        if text not in self._notes and len(self._notes) < NOTES:
            self._notes.append(text)

    def _line(self, line: bytes) -> list[Event]:
        self._lines += 1
        if self._text_mode:
            self._last_kind = "text"
            return [Event(kind="text", text=line.decode("utf-8", "replace"))]
        if len(line) < TAIL_CHARS:
            self._stdout_tail = _tail(self._stdout_tail, line.decode("utf-8", "replace"))
        events: list[Event] = []
        for raw in self._objects.of(line):
            try:
                read = tuple(self._read_event(raw))
                if not all(isinstance(event, Event) for event in read):
                    raise TypeError("it gave something that is no event")
                events.extend(read)
            except Exception as error:
                # A third party's reader must not end a run that goes well.
                self._odd += 1
                self.note(f"an event could not be read: {type(error).__name__}: {error}")
        for event in events:
            self._remember(event)
        return events

    def _remember(self, event: Event) -> None:
        self._last_kind = event.kind
        self._session = event.session or self._session
        self._model = event.model or self._model
        if event.usage is not None:
            self._usage = _newer(self._usage, event.usage)
        if event.kind == "tool":
            self._tools += 1
            self._last_text = ""
        elif event.kind == "text" and event.text:
            before = self._last_text if event.delta else ""
            self._last_text = (before + event.text)[:ANSWER_BYTES]
            gap = "" if event.delta or not self._said else "\n"
            self._said = f"{self._said}{gap}{event.text}"[-SAID_CHARS:]
        elif event.kind == "final":
            self.final = event

    def ended(
        self,
        by: EndedBy,
        code: int | None,
        *,
        started_at: datetime,
        ended_at: datetime,
        wall_s: float,
        survivors: tuple[int, ...],
        jumped: bool = False,
    ) -> Ended:
        if self._out.truncated:
            self.note(f"{self._out.truncated} line(s) were too long and left out")
        if self._objects.bad:
            self.note(f"{self._objects.bad} line(s) were no JSON object")
        if self._cut:
            self.note("its output was too long and was cut")
        return Ended(
            ended_by=by,
            exit_code=code,
            final=self.final,
            answer=self._answer(),
            said=self._answer()[-SAID_CHARS:] if self._text_mode else self._said,
            notices=tuple(self.notices[-NOTICES:]),
            session=self._session,
            model=self._model,
            usage=self._usage,
            started_at=started_at,
            ended_at=ended_at,
            wall_s=wall_s,
            tools=self._tools,
            last_kind=self._last_kind,
            lines=self._lines,
            bad_lines=self._objects.bad + self._odd,
            truncated_lines=self._out.truncated + self._err.truncated,
            stderr_tail=self._stderr_tail,
            stdout_tail=self._stdout_tail,
            notes=tuple(self._notes),
            survivors=survivors,
            jumped=jumped,
        )

    def _answer(self) -> str:
        if self._text_mode:
            return self._text.decode("utf-8", "replace")
        if self.final is not None and self.final.text:
            return self.final.text
        return self._last_text


def _tail(tail: str, line: str) -> str:
    return f"{tail}{line}\n"[-TAIL_CHARS:]


def _newer(old: Usage, new: Usage) -> Usage:
    """The newest word on each number; a number that is not named any more stays."""
    return Usage(
        input_tokens=new.input_tokens if new.input_tokens is not None else old.input_tokens,
        output_tokens=new.output_tokens if new.output_tokens is not None else old.output_tokens,
        cached_tokens=new.cached_tokens if new.cached_tokens is not None else old.cached_tokens,
        cost_usd=new.cost_usd if new.cost_usd is not None else old.cost_usd,
    )
