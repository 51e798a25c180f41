"""What ``history`` needs, gathered from an opened home."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullswarm.meters.rates import rates
from bullswarm.routing.types import Work
from bullswarm.simulate.history import History, replay
from bullswarm.simulate.types import AdmissionSpec
from bullswarm.store import routing_admission

if TYPE_CHECKING:
    from bullswarm.runs.app import App


def home_history(app: App, days: float | None = None) -> History:
    """The newest ``days`` (None: all) of the home's records as a history. Reads no meter live.
    Raises ``BullswarmError`` where nothing is on record."""
    import msgspec

    from bullswarm.runs.snapshot import known_pools

    outcomes = app.store.outcomes()
    now = app.now()
    by_pool: dict[str, list[Work]] = {}
    for one in outcomes:
        by_pool.setdefault(one.work.pool, []).append(one.work)
    series = {name: app.meters.history(name).load() for name in app.accounts}
    pools = tuple(
        msgspec.structs.replace(
            pool, rates=rates(series[pool.name], by_pool.get(pool.name, []), now)
        )
        for pool in known_pools(app)
    )
    rule = routing_admission(app.settings, "hold")
    return replay(
        outcomes,
        {run.run_id: run.started_at for run in app.store.runs(None) if run.kind == "run"},
        pools,
        series,
        days=days,
        worker_cap=app.worker_cap(),
        inflight_penalty=app.settings.config.inflight_penalty_pct,
        admission=AdmissionSpec(
            five_hour_line=rule.five_hour_line,
            pacing_line=rule.pacing_line,
            cap_per_pool=rule.cap_per_pool,
            tail_factor=rule.tail_factor,
            patience_minutes=rule.patience_minutes,
        ),
    )
