"""The policies that can be compared. All of them decide through ``bullswarm.routing``.

A strategy is routing's own. A baseline is an order of pools, made anew for each piece of work by
the few lines below, and handed to routing as a preference without a ceiling: so it meets the same
filters (benched, shown full, lanes) and, with ``+hold``, the same admission as everybody else.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from bullswarm.errors import UsageError
from bullswarm.routing.types import STRATEGIES, Policy, Pool, Snapshot
from bullswarm.routing.windows import running
from bullswarm.simulate.types import FleetSpec, Scenario

HOLD = "+hold"
DEFAULT = "pace" + HOLD

Order = Callable[[Snapshot, Random, int], list[str]]
"""Pool names, best first, from the snapshot, random numbers and how many were dispatched before."""


def _round_robin(snapshot: Snapshot, rng: Random, count: int) -> list[str]:
    names = [pool.name for pool in snapshot.pools]
    at = count % len(names)
    return names[at:] + names[:at]


def _random(snapshot: Snapshot, rng: Random, count: int) -> list[str]:
    names = [pool.name for pool in snapshot.pools]
    rng.shuffle(names)
    return names


def _lowest_used(snapshot: Snapshot, rng: Random, count: int) -> list[str]:
    return [p.name for p in sorted(snapshot.pools, key=lambda p: _used(p, snapshot, paces=False))]


def _weighted(snapshot: Snapshot, rng: Random, count: int) -> list[str]:
    keys = {
        pool.name: rng.random() ** (1.0 / max(0.01, 100.0 - _used(pool, snapshot, paces=True)))
        for pool in snapshot.pools
    }
    return sorted(keys, key=lambda name: -keys[name])


def _used(pool: Pool, snapshot: Snapshot, *, paces: bool) -> float:
    """The fullest window as the meter shows it, or only the pacing one; 0 where none is known, as
    such balancers take it."""
    shown = [
        window.used_pct
        for window in running(pool.reading, snapshot.now)
        if window.used_pct is not None and (not paces or window.kind == pool.pacing)
    ]
    return max(shown, default=0.0)


BASELINES: dict[str, Order] = {
    "round-robin": _round_robin,
    "random": _random,
    "lowest-used": _lowest_used,
    "weighted": _weighted,
}
NAMES: tuple[str, ...] = (*STRATEGIES, *BASELINES)
USUAL: tuple[str, ...] = (
    *(name + HOLD for name in STRATEGIES),
    *STRATEGIES,
    *BASELINES,
)
"""What is compared where nobody says what: every strategy with and without admission, and the
baselines."""


def check(name: str) -> str:
    """The name of a policy. Raises ``UsageError`` with the names there are."""
    if name.removesuffix(HOLD) not in NAMES:
        raise UsageError(
            f"--policy: no policy named {name!r}; there are {', '.join(NAMES)}, "
            f"each also with {HOLD} (admission)"
        )
    return name


class Chooser:
    """One policy in one scenario: gives routing's ``Policy`` for each piece of work."""

    def __init__(self, name: str, scenario: Scenario) -> None:
        plain = check(name).removesuffix(HOLD)
        self.name = name
        self.holds = name.endswith(HOLD)
        self._order = BASELINES.get(plain)
        # Its own random numbers: the world must not change with the policy.
        self._rng = Random(f"{scenario.seed}:{plain}")
        self._policy = _strategy(plain, scenario.fleet)
        self._count = 0

    def policy(self, snapshot: Snapshot, ahead: int = 0) -> Policy:
        """For a piece of work with ``ahead`` others that are placed before it at this instant."""
        if self._order is None:
            return self._policy
        order = self._order(snapshot, self._rng, self._count + ahead)
        return Policy(strategy="prefer-order", prefer=tuple(order), quota_ceiling=100.0)

    def placed(self) -> None:
        """A piece of work was dispatched."""
        self._count += 1


def _strategy(name: str, fleet: FleetSpec) -> Policy:
    for strategy in STRATEGIES:
        if strategy == name:
            prefer = tuple(p.name for p in fleet.pools) if strategy == "prefer-order" else ()
            return Policy(strategy=strategy, prefer=prefer)
    return Policy()
