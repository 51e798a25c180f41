"""The loop guard: the same events over and over with nothing produced burn quota for ever."""

from __future__ import annotations

import re
from collections import OrderedDict

from bullswarm.dispatch.types import Event

REMEMBERED = 128
PER_CYCLE = 3
"""A cycle is a few events: a step starts, says a word, breaks off."""

_COUNTING = re.compile(r"[0-9a-f]{8,}|\d+")


class LoopGuard:
    """Counts events that say nothing new. ``repeats`` cycles without a new one is a loop."""

    def __init__(self, repeats: int) -> None:
        self.stale = 0
        self._limit = repeats * PER_CYCLE
        self._seen: OrderedDict[int, None] = OrderedDict()

    def feed(self, event: Event) -> bool:
        """True where this event makes it a loop."""
        text = event.text
        if event.kind not in ("text", "tool", "tool-result"):
            # Attempt numbers, request ids and times make no event a new one.
            text = _COUNTING.sub("#", text)
        sign = hash((event.kind, event.tool, text, event.code, event.status))
        if sign not in self._seen:
            self._seen[sign] = None
            if len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
            self.stale = 0
            return False
        self._seen.move_to_end(sign)
        self.stale += 1
        return self.stale >= self._limit
