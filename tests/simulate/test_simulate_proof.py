"""The claim that admission is worth having, on a few seeds; the bench has all twenty."""

from __future__ import annotations

from msgspec.structs import replace

from bullswarm.simulate import FLEETS, compare
from bullswarm.simulate.policies import BASELINES, DEFAULT

SEEDS = (1, 2, 3)


def check(name: str, least_pct: float, days: float) -> None:
    fleet = replace(FLEETS[name], days=days)
    held, plain = compare(fleet, [DEFAULT, "pace"], SEEDS, processes=2).policies
    assert held.harvested_pct is not None and held.harvested_pct >= least_pct
    assert plain.harvested_pct is not None and held.harvested_pct > plain.harvested_pct
    assert held.lost_per100 < 1.0 and held.lost_per100 < plain.lost_per100 / 4
    mine, *baselines = compare(fleet, [DEFAULT, *BASELINES], SEEDS[:1], processes=2).policies
    assert mine.harvested_pct is not None
    for other in baselines:
        assert other.harvested_pct is not None and mine.harvested_pct > other.harvested_pct
        assert mine.lost_per100 < other.lost_per100 / 4, other.policy


def test_on_the_tight_fleet() -> None:
    check("tight", 97.0, 14)


def test_on_the_overloaded_fleet() -> None:
    check("overloaded", 91.0, 8)


def test_near_equals_share_the_work_before_their_meters_tell_them_apart() -> None:
    report = compare(replace(FLEETS["near-equals"], days=3.0), [DEFAULT], SEEDS, processes=1)
    minutes = report.policies[0].minutes.values()
    assert max(minutes) < 1.6 * min(minutes)
