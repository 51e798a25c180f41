"""What ``pools`` shows: each pool's reading, its place in a pick, its load and its state."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from bullswarm.routing import route
from bullswarm.routing.types import Candidate, Pool, Quarantine, Request, Snapshot, Window
from bullswarm.runs.app import App
from bullswarm.runs.snapshot import read_pools, take_snapshot
from bullswarm.store import routing_policy

if TYPE_CHECKING:
    from bullswarm.routing.stagger import Start


class PoolRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One pool for people and programs. Percentages are 0..100, unknown is None. ``start_at`` is
    when to start a week that waits for its first use, where ``config.stagger`` is on."""

    pool: str
    provider: str
    cost_rank: float
    lanes: tuple[str, ...]
    pacing: str | None
    metered: bool
    source: str
    age_s: float | None
    used_pct: float | None
    elapsed_pct: float | None
    resets_at: datetime | None
    declared_reset: bool
    surplus: float | None
    effective_surplus: float | None
    inflight: int
    five_hour_pct: float | None
    projected_five_hour_pct: float | None
    five_hour_resets_at: datetime | None
    near_limit: bool
    eligible: bool
    state: str
    tier: str
    why_not: str | None
    quarantines: tuple[Quarantine, ...]
    credential_group: str | None
    windows: tuple[Window, ...]
    errors: int
    attempts: int
    median_s: float | None
    burn_per_hour: float | None
    dry_at: datetime | None
    dry_first: bool
    start_at: datetime | None
    notes: tuple[str, ...]


def overview(app: App, *, lane: str = "build", fresh: bool = False) -> list[PoolRow]:
    """Every pool, best first for that lane; a CLI that is not installed comes last."""
    pools = read_pools(app, fresh)
    snapshot = take_snapshot(app, pools)
    decision = route(snapshot, Request(lane=lane), routing_policy(app.settings))
    by_name = {pool.name: pool for pool in pools}
    groups: dict[str, list[str]] = {}
    for pool in pools:
        if pool.credential_group is not None:
            groups.setdefault(pool.credential_group, []).append(pool.name)
    starts: dict[str, Start] = {}
    if app.settings.config.stagger == "on":
        from bullswarm.routing.stagger import stagger

        starts = {start.pool: start for start in stagger(snapshot)}
    return [
        _row(app, snapshot, by_name[row.pool], row, groups, starts.get(row.pool))
        for row in sorted(decision.candidates, key=_place)
    ]


def _place(row: Candidate) -> tuple[bool, bool, int]:
    """Best first; then those that are away for a time, and last those that are not there at all."""
    away = not row.eligible and not (row.why_not or "").startswith("unavailable")
    return not row.eligible, not away, row.rank


def _row(
    app: App,
    snapshot: Snapshot,
    pool: Pool,
    row: Candidate,
    groups: dict[str, list[str]],
    start: Start | None,
) -> PoolRow:
    reading = pool.reading
    windows = reading.windows if reading is not None else ()
    own = next((w for w in windows if w.kind == pool.pacing and w.family is None), None)
    ways = app.meters.runway(reading) if windows and reading is not None else ()
    dry = min((w for w in ways if w.dry_at is not None), key=_dry, default=None)
    mates = [n for n in groups.get(pool.credential_group or "", []) if n != pool.name]
    return PoolRow(
        pool=pool.name,
        provider=pool.provider,
        cost_rank=pool.cost_rank,
        lanes=pool.lanes,
        pacing=pool.pacing,
        metered=any(w.used_pct is not None for w in windows),
        source=reading.source if reading is not None else "none",
        age_s=None if row.reading_age_minutes is None else round(row.reading_age_minutes * 60, 1),
        used_pct=own.used_pct if own else None,
        elapsed_pct=row.elapsed_pct,
        resets_at=own.resets_at if own else None,
        declared_reset=own.reset_declared if own else False,
        surplus=row.pace,
        effective_surplus=row.effective_surplus,
        inflight=row.inflight,
        five_hour_pct=row.five_hour_pct,
        projected_five_hour_pct=row.projected_five_hour_pct,
        five_hour_resets_at=row.five_hour_resets_at,
        near_limit=row.near_limit,
        eligible=row.eligible,
        state=_state(snapshot, pool, row),
        tier=row.tier,
        why_not=row.why_not,
        quarantines=tuple(q for q in snapshot.quarantines if q.pool == pool.name),
        credential_group=pool.credential_group,
        windows=windows,
        errors=pool.health.errors,
        attempts=pool.health.attempts,
        median_s=pool.health.median_seconds,
        burn_per_hour=dry.burn_per_hour if dry else None,
        dry_at=dry.dry_at if dry else None,
        dry_first=dry.dry_first if dry else False,
        start_at=start.at if start else None,
        notes=tuple(_notes(pool, mates, start)),
    )


def _dry(way: object) -> datetime:
    at: datetime | None = getattr(way, "dry_at", None)
    assert at is not None
    return at


def _state(snapshot: Snapshot, pool: Pool, row: Candidate) -> str:
    if not row.eligible:
        return row.why_not or "not eligible"
    families = [q for q in snapshot.quarantines if q.pool == pool.name and q.family]
    state = {"normal": "ready", "caller": "ready"}.get(row.tier, row.tier)
    if families:
        names = ", ".join(f"{q.family} until {q.until.astimezone():%a %H:%M}" for q in families)
        state += f", without {names}"
    return state


def _notes(pool: Pool, mates: list[str], start: Start | None) -> list[str]:
    notes = []
    if start is not None:
        notes.append(f"start its week about {start.at.astimezone():%a %H:%M}: {start.reason}")
    if pool.reading is not None and pool.reading.note:
        notes.append(pool.reading.note)
    if mates:
        notes.append(f"shares one login with {', '.join(mates)}: one credential group")
    if pool.health.errors:
        share = f"{pool.health.errors} of {pool.health.attempts} attempts failed in the last hour"
        notes.append(share)
    return notes
