"""One account as it truly is: windows that fill continuously, whatever any meter says of them."""

from __future__ import annotations

from math import inf, nextafter

from bullswarm.simulate.calendar import Clock, fixed_windows
from bullswarm.simulate.types import FIVE_HOURS, PoolSpec

FULL = 100.0 - 1e-9


class TrueWindow:
    """A window's use. ``rate`` is percentage points per worker-minute; ``begin`` and ``end`` are
    None while a first-use window waits for its first use."""

    __slots__ = ("begin", "end", "kind", "rate", "used")

    def __init__(self, kind: str, capacity: float) -> None:
        self.kind = kind
        self.rate = 100.0 / capacity
        self.used = 0.0
        self.begin: float | None = None
        self.end: float | None = None

    @property
    def full(self) -> bool:
        """Whether nothing is left."""
        return self.used >= FULL


class Account:
    """The windows of one pool under ``load`` agents. Call ``advance`` to the time of whatever
    happens, before it happens; never past ``next_at``."""

    def __init__(
        self, spec: PoolSpec, clock: Clock, horizon: float, early_resets: tuple[float, ...] = ()
    ) -> None:
        self.spec = spec
        self.load = 0
        self.now = 0.0
        self._clock = clock
        self.five = TrueWindow("five_hour", spec.five_hour) if spec.five_hour else None
        capacity = spec.pacing_capacity
        kind = "weekly" if spec.weekly is not None else "monthly"
        self.pacing = TrueWindow(kind, capacity) if capacity else None
        self.windows = [w for w in (self.five, self.pacing) if w is not None]
        self._fixed: list[tuple[float, float, float]] = []
        if self.pacing is not None and spec.starts == "fixed":
            self._fixed = fixed_windows(spec, clock, horizon, early_resets)
            self._next_fixed(self.pacing)

    def advance(self, now: float) -> None:
        """Burn until ``now``."""
        minutes = (now - self.now) * self.load
        if minutes > 0.0:
            for window in self.windows:
                window.used = min(100.0, window.used + window.rate * minutes)
        self.now = now

    def next_at(self) -> float:
        """When the next window ends or fills up; ``inf`` when nothing of it is ahead."""
        at = inf
        for window in self.windows:
            if window.end is not None and window.end < at:
                at = window.end
            if self.load and not window.full:
                fills = self.now + (100.0 - window.used) / (window.rate * self.load)
                # Time must go on, however little is left.
                fills = max(fills, nextafter(self.now, inf))
                if fills < at:
                    at = fills
        return at

    def turn(self) -> bool:
        """Begin anew what ended by now; True where something did."""
        turned = False
        for window in self.windows:
            if window.end is not None and window.end <= self.now + 1e-9:
                self._renew(window)
                turned = True
        return turned

    def use(self) -> None:
        """One more agent: windows that waited for their first use begin."""
        self.load += 1
        self.touch()

    def touch(self) -> None:
        """Begin the windows that wait for their first use."""
        for window in self.windows:
            if window.end is None:
                self._begin(window)

    def leave(self) -> None:
        """One agent less."""
        self.load -= 1

    def reset_early(self) -> None:
        """The provider gives everything back now; what began this instant is whole anyway."""
        for window in self.windows:
            if window.end is not None and window.begin != self.now:
                self._renew(window)

    def full_until(self) -> float | None:
        """When the last of the full windows ends; None where none is full."""
        ends = [w.end for w in self.windows if w.full and w.end is not None]
        return max(ends) if ends else None

    def full_kind(self) -> str | None:
        """The kind of the full window that ends last."""
        full = [w for w in self.windows if w.full and w.end is not None]
        return max(full, key=lambda w: w.end or 0.0).kind if full else None

    def _renew(self, window: TrueWindow) -> None:
        window.used = 0.0
        if window is self.pacing and self._fixed:
            self._next_fixed(window)
        elif self.load:
            self._begin(window)
        else:
            window.begin = window.end = None

    def _begin(self, window: TrueWindow) -> None:
        window.begin = self.now
        if window is self.five:
            window.end = self.now + FIVE_HOURS
        else:
            window.end = self._clock.pacing_end(self.spec, self.now)

    def _next_fixed(self, window: TrueWindow) -> None:
        window.begin, window.end, window.used = self._fixed.pop(0)
        if not self._fixed:
            # Past the horizon: nothing looks at what comes then.
            self._fixed = [(window.end, inf, 0.0)]
