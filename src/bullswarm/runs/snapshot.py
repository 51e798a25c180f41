"""The one immutable snapshot that a pick depends on, taken from the meters and the store."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any

import msgspec

from bullswarm.providers.types import Account, Provider
from bullswarm.routing.types import Health, Pool, Snapshot, Work
from bullswarm.runs.app import App
from bullswarm.store import routing_config

RECENT_WORK = timedelta(hours=6)
"""How far back ended work still matters to a pick: no reading of use is older than its window."""

RATE_WORK = timedelta(days=14)
HEALTH_WINDOW = timedelta(hours=1)


def read_pools(app: App, fresh: bool | Collection[str] = False) -> tuple[Pool, ...]:
    """Every pool with its reading and rates. ``fresh`` (True, or the names of pools) passes over
    the cache of the meters. Reads of several pools run side by side."""
    entries = list(app.accounts.values())
    subscriptions = app.settings.subscriptions
    now_names = set(app.accounts) if fresh is True else set(fresh or ())
    asks = [(p, a, subscriptions.get(a.pool)) for p, a in entries]
    readings = app.meters.read_all([ask for ask in asks if ask[1].pool not in now_names])
    if now_names:
        again = [ask for ask in asks if ask[1].pool in now_names]
        readings |= app.meters.read_all(again, fresh=True)
    now = app.now()
    work = app.store.work(now - RATE_WORK)
    health = app.store.health(now - HEALTH_WINDOW)
    by_pool: dict[str, list[Work]] = {}
    for one in work:
        by_pool.setdefault(one.pool, []).append(one)
    _release_early(app, readings)
    return tuple(
        _pool(app, provider, account, readings, by_pool.get(account.pool, []), health)
        for provider, account in entries
    )


def known_pools(app: App) -> tuple[Pool, ...]:
    """Every pool as it is configured, without a reading: no meter is asked."""
    return tuple(
        _pool(app, provider, account, {}, [], {}) for provider, account in app.accounts.values()
    )


def take_snapshot(app: App, pools: tuple[Pool, ...]) -> Snapshot:
    """The snapshot at this instant; call it inside ``store.exclusive()`` where a pick follows."""
    now = app.now()
    return Snapshot(
        now=now,
        pools=pools,
        work=app.store.work(now - RECENT_WORK),
        quarantines=app.store.quarantines(now),
        durations=app.store.durations(),
        config=msgspec.structs.replace(routing_config(app.settings), worker_cap=app.worker_cap()),
    )


def _pool(
    app: App,
    provider: Provider,
    account: Account,
    readings: dict[str, Any],
    work: list[Work],
    health: dict[str, Health],
) -> Pool:
    connector = provider.connector
    name = account.pool
    mine = app.settings.subscriptions.get(name)
    paused = app.settings.paused.get(name)
    now = app.now()
    until = paused.until if paused is not None else None
    lapsed = until is not None and until <= now
    reading = readings.get(name)
    metered = reading is not None and bool(reading.windows)
    window = mine.quota_window if mine and mine.quota_window else connector.quota_window
    return Pool(
        name=name,
        provider=account.provider,
        lanes=mine.lanes if mine and mine.lanes is not None else connector.lanes,
        capabilities=(
            mine.capabilities if mine and mine.capabilities is not None else connector.capabilities
        ),
        models=provider.models(account),
        default_model=(mine.model if mine else None) or connector.default_model,
        cost_rank=(mine.cost_rank if mine and mine.cost_rank is not None else connector.cost_rank),
        pacing=window,
        enabled=mine.enabled if mine and mine.enabled is not None else True,
        unavailable=account.unavailable,
        paused=paused is not None and not lapsed,
        paused_until=until if paused is not None and not lapsed else None,
        credential_group=account.credential_group,
        reserve_pct=mine.reserve if mine else 0.0,
        cap=mine.cap if mine else None,
        reading=reading,
        rates=app.meters.rates(name, work) if metered else (),
        health=health.get(name, Health()),
    )


def _release_early(app: App, readings: dict[str, Any]) -> None:
    """A fresh reading that shows room lifts a quota bench at once: providers do reset early."""
    now = app.now()
    for bench in app.store.quarantines(now):
        reading = readings.get(bench.pool)
        if bench.kind != "quota" or reading is None or reading.observed_at is None:
            continue
        from bullswarm.dispatch.notices import released_by

        why = released_by(bench, reading, now)
        if why:
            app.store.release_early(bench.pool, why, bench.family)
