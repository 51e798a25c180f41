"""The built-in fleets. Capacities are worker-minutes that fill a window; a plan's week holds about
eight to ten of its 5-hour windows."""

from __future__ import annotations

from bullswarm.errors import UsageError
from bullswarm.simulate.types import EventSpec, FleetSpec, PoolSpec, WorkSpec


def _plan(name: str, size: float, **more: object) -> PoolSpec:
    """A plan ``size`` times the smallest."""
    fields = {"five_hour": 200.0 * size, "weekly": 1800.0 * size, "price": 5.0 * size, **more}
    return PoolSpec(name=name, **fields)  # type: ignore[arg-type]


def _month(name: str, size: float, **more: object) -> PoolSpec:
    fields = {"monthly": 7200.0 * size, "price": 20.0 * size, **more}
    return PoolSpec(name=name, **fields)  # type: ignore[arg-type]


FLEETS: dict[str, FleetSpec] = {
    fleet.name: fleet
    for fleet in (
        FleetSpec(
            name="small",
            about="two plans of one size and a light load",
            pools=(_plan("a", 1.0), _plan("b", 1.0, starts="fixed", resets_in_hours=60, used=50)),
            work=WorkSpec(load=0.6),
        ),
        FleetSpec(
            name="tight",
            about="five plans of three sizes, and a tenth more work than they hold",
            pools=(
                _plan("max-a", 2.0, starts="fixed", resets_in_hours=40, used=60),
                _plan("max-b", 2.0, starts="fixed", resets_in_hours=110, used=30),
                _plan("pro-a", 1.0, cost_rank=0.8),
                _plan("pro-b", 1.0, cost_rank=0.8, starts="fixed", resets_in_hours=80, used=40),
                _plan("mini", 0.5, cost_rank=0.5),
            ),
            work=WorkSpec(load=1.1),
        ),
        FleetSpec(
            name="overloaded",
            about="seven accounts and half as much work again as they can take",
            pools=(
                _plan("max-a", 2.0, starts="fixed", resets_in_hours=30, used=70),
                _plan("max-b", 2.0, starts="fixed", resets_in_hours=130, used=10),
                _plan("pro-a", 1.0, starts="fixed", resets_in_hours=70, used=50),
                _plan("pro-b", 1.0),
                _plan("pro-c", 1.0, starts="fixed", resets_in_hours=100, used=30),
                _plan("pro-d", 1.0),
                _plan("pro-e", 1.0, starts="fixed", resets_in_hours=150, used=5),
            ),
            work=WorkSpec(load=1.3),
        ),
        FleetSpec(
            name="no-meter",
            about="three plans, and a fourth whose use nobody can read",
            pools=(
                _plan("a", 1.0, starts="fixed", resets_in_hours=60, used=40),
                _plan("b", 1.0),
                _plan("c", 0.5),
                _plan("blind", 1.0, meter=False),
            ),
            work=WorkSpec(load=0.85),
        ),
        FleetSpec(
            name="monthly-mix",
            about="weekly plans beside monthly ones, one of them without a 5-hour window",
            days=28,
            pools=(
                _plan("week-a", 1.0, starts="fixed", resets_in_hours=50, used=50),
                _plan("week-b", 1.0),
                _month("month-a", 1.0, starts="fixed", resets_in_hours=240, used=40),
                _month("month-b", 0.5, starts="fixed", resets_in_hours=480, five_hour=200),
            ),
            work=WorkSpec(load=0.85),
        ),
        FleetSpec(
            name="near-equals",
            about="six plans of one size, whose meters show nearly the same",
            pools=tuple(_plan(f"seat-{n}", 1.0) for n in range(1, 7)),
            work=WorkSpec(load=0.8),
        ),
        FleetSpec(
            name="fresh-weeks",
            about="six plans whose weeks all begin with their first use, and a high load",
            pools=tuple(_plan(f"seat-{n}", 1.0) for n in range(1, 7)),
            work=WorkSpec(load=0.95),
            events=EventSpec(early_resets=0.0),
        ),
    )
}


def built_in(name: str) -> FleetSpec:
    """The built-in fleet of that name. Raises ``UsageError`` with the names there are."""
    try:
        return FLEETS[name]
    except KeyError:
        raise UsageError(
            f"--fleet: no fleet named {name!r}; there are {', '.join(FLEETS)}, "
            "or give the path of a YAML file"
        ) from None
