"""The loop guard: the same events over and over with nothing produced burn quota for ever."""

from __future__ import annotations

import re
from collections import OrderedDict

from bullswarm.dispatch.types import Event

REMEMBERED = 128
PER_CYCLE = 3
"""A cycle is a few events: a step starts, says a word, breaks off."""

_COUNTING = re.compile(r"[0-9a-f]{8,}|\d+")
_WORDS = frozenset({"text", "tool", "tool-result"})


class LoopGuard:
    """Counts events that say nothing new. ``repeats`` cycles without a new one is a loop."""

    def __init__(self, repeats: int) -> None:
        self.stale = 0
        self._limit = repeats * PER_CYCLE
        self._seen: OrderedDict[int, None] = OrderedDict()
        self._piece: int | None = None

    def feed(self, event: Event) -> bool:
        """True where this event makes it a loop."""
        if event.kind == "text" and event.delta:
            # A text in pieces is one event: the same few tokens in another order are another text.
            self._piece = hash((self._piece, event.text))
            return False
        if self._piece is not None:
            piece, self._piece = self._piece, None
            if self._count(hash(("text", piece))):
                return True
        text = event.text
        if event.kind not in _WORDS:
            # Attempt numbers, request ids and times make no event a new one.
            text = _COUNTING.sub("#", text)
        return self._count(hash((event.kind, event.tool, text, event.code, event.status)))

    def _count(self, sign: int) -> bool:
        if sign not in self._seen:
            self._seen[sign] = None
            if len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
            self.stale = 0
            return False
        self._seen.move_to_end(sign)
        self.stale += 1
        return self.stale >= self._limit
