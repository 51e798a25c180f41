"""Awake time and wall time. Silence and time limits count the first, resets the second."""

from __future__ import annotations

import time
from collections.abc import Callable

JUMP_S = 60.0
"""Wall and awake time this far apart between two looks: the machine slept, or its clock was set."""

LOOK_S = 30.0
"""An awake clock that counts sleep shows it as a look that comes this late."""


class Clocks:
    """Both clocks, compared at every look. Some systems' monotonic clock stops in suspend and some
    go on: a look that comes far too late is not counted as awake time either way."""

    def __init__(
        self,
        awake: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._awake, self._wall = awake, wall
        self._last_awake, self._last_wall = awake(), wall()
        self.now = 0.0
        self.jumps = 0

    def look(self) -> bool:
        """Bring ``now`` (seconds of awake time since the start) up to date. True where the clocks
        jumped since the last look."""
        awake, wall = self._awake(), self._wall()
        passed, on_the_wall = awake - self._last_awake, wall - self._last_wall
        self._last_awake, self._last_wall = awake, wall
        jumped = abs(on_the_wall - passed) > JUMP_S or passed > LOOK_S + JUMP_S
        # After a jump nobody knows how much of it the worker was awake for.
        self.now += min(passed, 1.0) if jumped else passed
        self.jumps += jumped
        return jumped
