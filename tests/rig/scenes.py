"""What the stand-in does with a request."""

from __future__ import annotations

from dataclasses import dataclass, field

ANSWER = "The parser reads tokens from src/parser.py and builds a tree of nodes. Nothing else."


@dataclass(frozen=True)
class Scene:
    """One behaviour, for one key.

    ``kind``: ``ok`` answers ``text``; ``write`` first asks the CLI to write ``path`` with
    ``content`` by its own edit tool; ``shell`` first asks it to run ``command``; ``auth`` 401;
    ``throttle`` 429 without a window spent; ``limit`` a spent window (``claim``, ``reset_s`` from
    now); ``overloaded`` 529 or 503; ``cut`` breaks off in mid-answer; ``hang`` sends no byte;
    ``slow`` answers after ``wait_s``. ``after``: from that request on (counted for the key, from 0)
    ``then`` holds. ``used`` are the percentages that the answer's headers carry (5-hour, weekly).
    """

    kind: str = "ok"
    text: str = ANSWER
    path: str = "hello.txt"
    content: str = "hello from the agent\n"
    command: str = "true"
    claim: str = "five_hour"
    reset_s: int = 7200
    wait_s: float = 0.0
    used: tuple[float, float] | None = None
    after: int | None = None
    then: Scene | None = field(default=None)

    def at(self, count: int) -> Scene:
        """The scene that holds for the request of that number."""
        if self.after is not None and self.then is not None and count >= self.after:
            return self.then
        return self
