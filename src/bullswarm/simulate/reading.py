"""A fleet of the user's own, from YAML or JSON: checked field by field, told in words."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bullswarm.errors import UsageError
from bullswarm.shapes import Shape
from bullswarm.simulate.scenario import tasks_a_day
from bullswarm.simulate.types import FleetSpec

LARGEST_BYTES = 1_000_000
MOST_TASKS = 1_000_000


def read_fleet(path: str | Path) -> FleetSpec:
    """The fleet in a file. Raises ``UsageError`` that names the file, the field and what would be
    right."""
    where = Path(path).expanduser()
    try:
        if where.stat().st_size > LARGEST_BYTES:
            raise UsageError(f"{where}: larger than a fleet can be ({LARGEST_BYTES} bytes)")
        text = where.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{where}: can't be read ({reason})") from error
    return parse_fleet(text, name=str(where))


def parse_fleet(text: str, name: str = "fleet") -> FleetSpec:
    """The fleet in a text; raises as ``read_fleet``."""
    import yaml

    try:
        raw = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        words = " ".join(str(error).split())
        raise UsageError(f"{name}: not valid YAML ({words})") from error
    wrong = Shape(FleetSpec).fault(raw)
    if wrong is None:
        try:
            fleet = msgspec.convert(raw, FleetSpec)
        except msgspec.ValidationError as error:
            raise UsageError(f"{name}: {error}") from error
        wrong = nonsense(fleet)
        if wrong is None:
            return fleet
    raise UsageError(f"{name}: {wrong}")


def nonsense(fleet: FleetSpec) -> str | None:
    """What no type can tell: the first thing that makes no sense together."""
    seen: set[str] = set()
    for n, pool in enumerate(fleet.pools):
        at = f"pools[{n}]"
        if pool.name in seen:
            return f"{at}.name must be no other pool's, and {pool.name!r} is there already"
        seen.add(pool.name)
        if pool.weekly is not None and pool.monthly is not None:
            return f"{at}: weekly and monthly can't both be set; which of them paces it?"
        if pool.starts == "first-use" and (pool.resets_in_hours is not None or pool.used):
            return (
                f"{at}: resetsInHours and used speak of a window that runs, so starts must be "
                "'fixed', not 'first-use'"
            )
        if not pool.lanes:
            return f"{at}.lanes must name at least one of analyze, build, chore"
    work = fleet.work
    if work.burst[0] > work.burst[1]:
        return f"work.burst must be [least, most], not {list(work.burst)}"
    if sum(lane.share for lane in work.lanes.values()) <= 0.0:
        return "work.lanes must have at least one lane with a share above 0"
    for lane, spec in work.lanes.items():
        if spec.share > 0.0 and not any(lane in pool.lanes for pool in fleet.pools):
            return f"work.lanes.{lane}: no pool takes {lane} work; give it to one, or share: 0"
    paced = any(pool.pacing_capacity is not None for pool in fleet.pools)
    if work.tasks_per_day is None and not paced:
        return (
            "work.tasksPerDay must be given: load is a share of weekly or monthly windows, and no "
            "pool has one"
        )
    expected = fleet.days * tasks_a_day(fleet)
    if expected > MOST_TASKS:
        return f"work: {expected:.0f} tasks are more than can be simulated ({MOST_TASKS})"
    return None
