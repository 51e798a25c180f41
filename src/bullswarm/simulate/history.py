"""A scenario from a home's own records: what happened, to be replayed under other policies.

The work, when it came and how long it took are on record; how full every window was at each minute
is not. So capacities are measured burn turned round, windows follow the first reset that was seen,
and whatever had to be assumed is said in a sentence, never passed over.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from bullswarm.errors import BullswarmError
from bullswarm.routing.types import LANES, LatencyClass, Pool, Reading, Window
from bullswarm.simulate.outcome import Outcome
from bullswarm.simulate.types import (
    DAY,
    AdmissionSpec,
    FleetSpec,
    PoolSpec,
    Scenario,
    Task,
    WorkSpec,
)
from bullswarm.store.ended import FULL_LENGTH, EndedWork

AFTER = timedelta(hours=10)
"""How much longer than the records the replay lasts, so that held work can end."""
DROP_POINTS = 5.0
"""A weekly percentage that falls by more than this before its reset was given back early."""
RECORDED = "recorded"
_NOT_WORK = ("cancelled", "depth", "unavailable", "lost")


class History(msgspec.Struct, frozen=True, kw_only=True):
    """``recorded`` is what happened, in the same figures as a simulation's outcome; ``unknown``
    are sentences about what the records can't tell."""

    scenario: Scenario
    recorded: Outcome
    unknown: tuple[str, ...]


class _Piece(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of work with its attempts, oldest first."""

    at: datetime
    lane: str
    minutes: float
    cut: bool
    attempts: tuple[EndedWork, ...]


def replay(
    attempts: Sequence[EndedWork],
    arrivals: Mapping[str, datetime],
    pools: Sequence[Pool],
    series: Mapping[str, Sequence[Reading]],
    *,
    days: float | None = None,
    worker_cap: int | None = None,
    inflight_penalty: float = 3.0,
    admission: AdmissionSpec | None = None,
) -> History:
    """The scenario that the records of a home make.

    ``arrivals`` says when the single attempt chains were handed in, by run id; a chain that it
    does not name arrived when its first attempt started. ``pools`` are the home's own with their
    measured rates, ``series`` the meter readings by pool, oldest first. ``days`` keeps the newest
    part only. Raises ``BullswarmError`` where there is no finished work.
    """
    if days is not None and attempts:
        newest = max(one.work.started_at for one in attempts)
        attempts = [a for a in attempts if a.work.started_at > newest - timedelta(days=days)]
    pieces, left_out = _pieces(attempts, arrivals)
    if not pieces:
        raise BullswarmError(
            "there is no finished work on record to replay; run some first, or simulate a built-in "
            "fleet: bullswarm simulate tight"
        )
    began = min(piece.at for piece in pieces)
    ended = max(a.work.ended_at or began for piece in pieces for a in piece.attempts)
    horizon = (ended + AFTER - began).total_seconds() / 60.0
    unknown: list[str] = []
    specs: list[PoolSpec] = []
    early: dict[str, tuple[float, ...]] = {}
    known = {pool.name: pool for pool in pools}
    used = {a.work.pool for piece in pieces for a in piece.attempts}
    lanes_seen = defaultdict(set)
    for piece in pieces:
        for one in piece.attempts:
            lanes_seen[one.work.pool].add(piece.lane)
    for name in sorted(used | {pool.name for pool in pools if pool.enabled}):
        pool = known.get(name)
        if pool is None:
            unknown.append(f"{name} did work but is no pool of this home now: no window is known")
            lanes = tuple(lane for lane in LANES if lane in lanes_seen[name])
            specs.append(PoolSpec(name=name, meter=False, lanes=lanes, minute_value=1.0))
            continue
        if pool.unavailable is not None and name not in used:
            continue
        spec, gone, words = _pool(pool, series.get(name, ()), began, lanes_seen[name])
        specs.append(spec)
        early[name] = tuple(at for at in gone if 0.0 < at < horizon)
        unknown.extend(words)
    unknown.extend(_unknown(pieces, left_out, attempts))
    fleet = FleetSpec(
        name="history",
        about=f"what this home did from {began:%Y-%m-%d %H:%M} UTC",
        days=horizon / DAY,
        pools=tuple(specs),
        work=WorkSpec(),
        admission=admission or AdmissionSpec(),
        worker_cap=worker_cap,
        inflight_penalty=inflight_penalty,
    )
    scenario = Scenario(
        fleet=fleet,
        seed=0,
        horizon=horizon,
        tasks=tuple(
            Task((piece.at - began).total_seconds() / 60.0, piece.lane, piece.minutes)
            for piece in pieces
        ),
        early_resets=early,
        began=began.isoformat(),
    )
    return History(scenario=scenario, recorded=_recorded(scenario, pieces), unknown=tuple(unknown))


def _pieces(
    attempts: Sequence[EndedWork], arrivals: Mapping[str, datetime]
) -> tuple[list[_Piece], int]:
    """The work, by arrival, and how many pieces say nothing of how long they take."""
    chains: dict[str, list[EndedWork]] = {}
    for one in attempts:
        # Attempts of one piece are numbered at the end of their ids.
        chains.setdefault(re.sub(r"\W?\d+$", "", one.work.id), []).append(one)
    pieces: list[_Piece] = []
    left_out = 0
    for chain in chains.values():
        tried = [one for one in chain if one.failure_kind not in _NOT_WORK and one.wall_s > 0.0]
        if not tried:
            left_out += 1
            continue
        whole = [one for one in tried if one.ok or one.failure_kind in FULL_LENGTH]
        best = whole[-1] if whole else max(tried, key=lambda one: one.wall_s)
        first = tried[0]
        at = first.work.started_at
        if first.run_id in arrivals and first.work.id.startswith(first.run_id + "."):
            at = min(at, arrivals[first.run_id])
        pieces.append(
            _Piece(
                at=at,
                lane=first.work.lane,
                minutes=_minutes(best),
                cut=not whole,
                attempts=tuple(tried),
            )
        )
    pieces.sort(key=lambda piece: (piece.at, piece.attempts[0].work.id))
    return pieces, left_out


def _pool(
    pool: Pool, series: Sequence[Reading], began: datetime, lanes: set[str]
) -> tuple[PoolSpec, list[float], list[str]]:
    """One pool as it can be known, its early resets (minutes since ``began``), and what can't."""
    words: list[str] = []
    name = pool.name
    capacity: dict[str, float] = {}
    for rate in pool.rates:
        if rate.family is None and rate.per_minute is not None and rate.per_minute > 0.0:
            capacity[rate.kind] = 100.0 / rate.per_minute
    kinds = {w.kind for r in series for w in r.windows if w.family is None}
    paces = pool.pacing if pool.pacing in kinds else None
    missing = [
        kind for kind in ("five_hour", paces) if kind in kinds and kind not in capacity and kind
    ]
    if not series:
        words.append(f"{name}: no meter reading is on record, so its windows count as never full")
    elif missing:
        words.append(
            f"{name}: too little work was measured to know what fills its "
            f"{' and '.join(kind.replace('five_hour', '5-hour') for kind in missing)} window: it "
            "counts as never full"
        )
    first = _first(series, paces, began) if paces in capacity else None
    reset = first.resets_at if first is not None else None
    if paces in capacity and reset is None:
        words.append(
            f"{name}: no reset of its {paces} window is on record: it starts with the work"
        )
    if pool.cap is not None or pool.reserve_pct:
        words.append(f"{name}: its own cap and its reserve are not replayed")
    hours = None
    if reset is not None:
        length = timedelta(days=7 if paces == "weekly" else 30)
        while reset <= began:
            reset += length
        hours = (reset - began).total_seconds() / 3600.0
    spec = PoolSpec(
        name=name,
        five_hour=capacity.get("five_hour"),
        weekly=capacity.get("weekly") if paces == "weekly" else None,
        monthly=capacity.get("monthly") if paces == "monthly" else None,
        starts="fixed" if hours is not None else "first-use",
        resets_in_hours=hours,
        used=min(100.0, first.used_pct or 0.0) if first is not None and hours is not None else 0.0,
        meter=bool(series),
        lanes=tuple(lane for lane in LANES if lane in pool.lanes or lane in lanes),
        minute_value=1.0,
        cost_rank=pool.cost_rank,
        latency=_latency(pool),
    )
    return spec, _early(series, paces, began) if hours is not None else [], words


def _latency(pool: Pool) -> LatencyClass:
    model = next((m for m in pool.models if m.name == pool.default_model), None)
    return model.latency if model is not None else "slow"


def _first(series: Sequence[Reading], kind: str | None, began: datetime) -> Window | None:
    """The window as it was when the records begin: the last reading before, else the first."""
    before = after = None
    for reading in series:
        for window in reading.windows:
            if window.kind != kind or window.family is not None or window.resets_at is None:
                continue
            if reading.observed_at is not None and reading.observed_at <= began:
                before = window if window.resets_at > began else None
            elif after is None:
                after = window
    return before or after


def _early(series: Sequence[Reading], kind: str | None, began: datetime) -> list[float]:
    """When the provider gave the pacing window back before its reset, as far as readings show."""
    found: list[float] = []
    last: Window | None = None
    for reading in series:
        at = reading.observed_at
        for window in reading.windows:
            if window.kind != kind or window.family is not None or window.used_pct is None:
                continue
            if (
                last is not None
                and at is not None
                and last.resets_at is not None
                and at < last.resets_at
                and (last.used_pct or 0.0) - window.used_pct > DROP_POINTS
            ):
                found.append((at - began).total_seconds() / 60.0)
            last = window
    return found


def _unknown(pieces: Sequence[_Piece], left_out: int, attempts: Sequence[EndedWork]) -> list[str]:
    words = [
        "a task is taken to last as long on any pool as it did on the one that ran it, and to be "
        "handed in at the same time under every policy",
        "what people did with the same accounts by hand is not on record",
    ]
    cut = sum(piece.cut for piece in pieces)
    if cut:
        words.append(
            f"{cut} of {len(pieces)} tasks never ran their whole course: they count with their "
            "longest attempt"
        )
    if left_out:
        words.append(f"{left_out} tasks were cancelled or lost before they ran, and are left out")
    auth = sum(one.failure_kind == "auth" for one in attempts)
    if auth:
        words.append(f"how long the login was dead at {auth} refused attempts is not on record")
    return words


def _minutes(one: EndedWork) -> float:
    """Its minutes, and a second at least: what was recorded and what is simulated count alike."""
    return max(one.wall_s / 60.0, 1 / 60)


def _recorded(scenario: Scenario, pieces: Sequence[_Piece]) -> Outcome:
    """What happened, as figures. A failure of work that ran its course counts as work done: the
    quota went where it was meant to."""
    specs = {pool.name: pool for pool in scenario.fleet.pools}
    harvested = wasted = 0.0
    done = limits = auth = 0
    minutes = dict.fromkeys(specs, 0.0)
    waits: list[float] = []
    for piece in pieces:
        start: datetime | None = None
        for one in piece.attempts:
            value = _minutes(one) * specs[one.work.pool].value_per_minute
            if one.ok or one.failure_kind in FULL_LENGTH:
                harvested += value
                minutes[one.work.pool] += _minutes(one)
                start = start or one.work.started_at
                continue
            wasted += value
            limits += one.failure_kind == "quota"
            auth += one.failure_kind == "auth"
        done += start is not None
        until = start or piece.attempts[-1].work.started_at
        waits.append(max(0.0, (until - piece.at).total_seconds() / 60.0))
    return Outcome(
        policy=RECORDED,
        seed=scenario.seed,
        tasks=len(pieces),
        done=done,
        harvested=harvested,
        wasted=wasted,
        lost_to_limits=limits,
        lost_to_auth=auth,
        cost=None,
        waits=tuple(waits),
        minutes=minutes,
    )
