"""A fleet of the user's own, from YAML or JSON: checked field by field, told in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from bullswarm.errors import UsageError
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
    wrong = fault(raw, inspect.type_info(FleetSpec), "")
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


def fault(value: Any, want: inspect.Type, at: str) -> str | None:
    """The first thing wrong with ``value`` for that type, in words; None where nothing is."""
    if isinstance(want, inspect.UnionType):
        if value is None and want.includes_none:
            return None
        options = [t for t in want.types if not isinstance(t, inspect.NoneType)]
        return fault(value, options[0], at) if len(options) == 1 else None
    if isinstance(want, inspect.StructType):
        return _struct_fault(value, want, at)
    if isinstance(want, inspect.DictType):
        if not isinstance(value, dict):
            return _wrong(at, want, value)
        for key, item in value.items():
            wrong = None if _fits(key, want.key_type) else _wrong(f"{at}'s key", want.key_type, key)
            wrong = wrong or fault(item, want.value_type, f"{at}.{key}")
            if wrong:
                return wrong
        return None
    if isinstance(want, inspect.VarTupleType | inspect.TupleType):
        return _list_fault(value, want, at)
    return None if _fits(value, want) else _wrong(at, want, value)


def _struct_fault(value: Any, want: inspect.StructType, at: str) -> str | None:
    if not isinstance(value, dict):
        return _wrong(at, want, value)
    fields = {field.encode_name: field for field in want.fields}
    for key, item in value.items():
        here = f"{at}.{key}" if at else str(key)
        if key not in fields:
            from difflib import get_close_matches

            near = get_close_matches(str(key), fields, n=1)
            hint = f"did you mean {near[0]}? " if near else ""
            return f"{here} is no field; {hint}{at or 'a fleet'} knows {', '.join(fields)}"
        wrong = fault(item, fields[key].type, here)
        if wrong:
            return wrong
    for key, field in fields.items():
        if field.required and key not in value:
            return f"{f'{at}.{key}' if at else key} is missing; it must be {_words(field.type)}"
    return None


def _list_fault(value: Any, want: inspect.VarTupleType | inspect.TupleType, at: str) -> str | None:
    if not isinstance(value, list):
        return _wrong(at, want, value)
    if isinstance(want, inspect.TupleType):
        if len(value) != len(want.item_types):
            return _wrong(at, want, value)
        kinds = list(want.item_types)
    else:
        if want.min_length is not None and len(value) < want.min_length:
            return _wrong(at, want, value)
        kinds = [want.item_type] * len(value)
    for n, (item, kind) in enumerate(zip(value, kinds, strict=True)):
        wrong = fault(item, kind, f"{at}[{n}]")
        if wrong:
            return wrong
    return None


def _wrong(at: str, want: inspect.Type, value: Any) -> str:
    shown = str(value) if not isinstance(value, str) else repr(value)
    if len(shown) > 60:
        shown = shown[:57] + "..."
    return f"{at or 'the file'} must be {_words(want)}, not {shown or 'nothing'}"


def _fits(value: Any, want: inspect.Type) -> bool:
    if isinstance(want, inspect.BoolType):
        return isinstance(value, bool)
    if isinstance(want, inspect.StrType):
        if not isinstance(value, str) or len(value) < (want.min_length or 0):
            return False
        return want.max_length is None or len(value) <= want.max_length
    if isinstance(want, inspect.LiteralType):
        return value in want.values
    if isinstance(want, inspect.IntType | inspect.FloatType):
        kinds = int if isinstance(want, inspect.IntType) else int | float
        if isinstance(value, bool) or not isinstance(value, kinds):
            return False
        if value != value or abs(value) == float("inf"):
            return False
        return not (
            (want.ge is not None and value < want.ge)
            or (want.gt is not None and value <= want.gt)
            or (want.le is not None and value > want.le)
        )
    return True


def _words(want: inspect.Type) -> str:
    if isinstance(want, inspect.UnionType):
        options = [t for t in want.types if not isinstance(t, inspect.NoneType)]
        return _words(options[0])
    if isinstance(want, inspect.LiteralType):
        return "one of " + ", ".join(str(value) for value in want.values)
    if isinstance(want, inspect.BoolType):
        return "true or false"
    if isinstance(want, inspect.StrType):
        return "a text" if not want.max_length else f"a text of 1 to {want.max_length} characters"
    if isinstance(want, inspect.TupleType):
        return f"a list of {len(want.item_types)}: {_words(want.item_types[0])} each"
    if isinstance(want, inspect.VarTupleType):
        return "a list with at least one entry" if want.min_length else "a list"
    if isinstance(want, inspect.IntType | inspect.FloatType):
        kind = "a whole number" if isinstance(want, inspect.IntType) else "a number"
        low = f" from {want.ge:g}" if want.ge is not None else ""
        low = low or (f" above {want.gt:g}" if want.gt is not None else "")
        return kind + low + (f" to {want.le:g}" if want.le is not None else "")
    return "a mapping"
