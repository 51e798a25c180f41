"""What an ended attempt teaches: the record of its work, the meters, and the benches."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from bullswarm.dispatch.notices import bench
from bullswarm.dispatch.types import Event, Notice
from bullswarm.meters import claimed_window
from bullswarm.providers.types import Account, Provider
from bullswarm.routing.types import Pool, Reading
from bullswarm.runs.after import LimitsMode
from bullswarm.runs.app import App

if TYPE_CHECKING:
    from bullswarm.runs.attempt import Outcome


BENCHING = frozenset({"quota", "auth", "throttle"})
"""What can bench a pool; a throttle only where a long wait was named."""


def record_end(app: App, outcome: Outcome) -> None:
    """The attempt is no longer in flight; its minutes count for rates and durations, its end for
    the pool's health."""
    ended = outcome.ended
    app.store.end(
        outcome.spec.attempt_id,
        ended_at=ended.ended_at or app.now(),
        ok=outcome.judgement.ok,
        failure_kind=outcome.judgement.failure_kind,
        wall_s=ended.wall_s,
    )
    if outcome.judgement.ok:
        app.store.succeeded(outcome.spec.pool, outcome.attempt.model)


def learn_windows(app: App, outcome: Outcome, account: Account) -> None:
    """What the stream said about the pool's windows for nothing. A rejection is left to the bench:
    kept as a full window it would outlast a notice that a fresh meter contradicts."""
    allowed = [e for e in outcome.limits if e.limit_status != "rejected"]
    _observe(app, allowed, account)


def learn_limit(
    app: App, outcome: Outcome, provider: Provider, account: Account, mode: LimitsMode
) -> str | None:
    """After a limit or a refused login: read the meter again at once, and bench the pool where the
    mode says so. Returns a line for people, or None where nothing was done.

    In ``return`` mode nothing is stored about the pool but its meter: one that can't be read counts
    as full only until a reset that is known.
    """
    notice, kind = outcome.notice, outcome.judgement.failure_kind
    if notice is None or kind not in BENCHING or notice.kind not in BENCHING:
        return None
    pool, now = outcome.spec.pool, app.now()
    reading = _reread(app, provider, account) if kind == "quota" else None
    if mode == "return":
        if kind == "quota" and not _fresh(reading, now):
            _count_as_full(app, notice, account, reading, now)
        return None
    shape = _shape(app, provider, account)
    if not shape.models and outcome.spec.model is None:
        # A limit on the model that the CLI chose by itself: nobody can ask it for another.
        notice = msgspec.structs.replace(notice, family=None)
    found = bench(notice, pool=shape, now=now, reading=reading)
    if found is None:
        return None
    held = app.store.bench(
        found.quarantine(),
        # The store lets the provider's own word replace an earlier one of its kind.
        source="provider" if found.source == "named" else found.source,
        guess=found.source == "guess",
        cut=found.cut or found.source == "contradicted",
    )
    if kind == "auth" and account.credential_group is not None:
        group = [
            name
            for name, (_, other) in app.accounts.items()
            if other.credential_group == account.credential_group and name != pool
        ]
        app.store.siblings(pool, group, found.reason)
    what = f"{pool} ({held.family} models)" if held.family else pool
    return f"{what} until {held.until.astimezone():%a %H:%M}: {held.reason}"


def _shape(app: App, provider: Provider, account: Account) -> Pool:
    """What a bench has to know of its pool: its models, and the window that paces it."""
    mine = app.settings.subscriptions.get(account.pool)
    own = mine.quota_window if mine is not None else None
    return Pool(
        name=account.pool,
        provider=account.provider,
        models=provider.models(account),
        pacing=own or provider.connector.quota_window,
    )


def _reread(app: App, provider: Provider, account: Account) -> Reading | None:
    settings = app.settings.subscriptions.get(account.pool)
    return app.meters.read(provider, account, settings, fresh=True)


def _fresh(reading: Reading | None, now: datetime) -> bool:
    if reading is None or reading.source != "live" or reading.observed_at is None:
        return False
    return (now - reading.observed_at).total_seconds() < 300


def _count_as_full(
    app: App, notice: Notice, account: Account, reading: Reading | None, now: datetime
) -> None:
    known = [w for w in (reading.windows if reading else ()) if w.resets_at and w.resets_at > now]
    claim, until = notice.window, notice.resets_at
    if until is None:
        five_hour = [w for w in known if w.kind == "five_hour"]
        until = five_hour[0].resets_at if five_hour else None
        claim = "five_hour" if five_hour else None
    if until is not None:
        event = Event(kind="limit", limit_status="rejected", window=claim, resets_at=until)
        _observe(app, [event], account, family=notice.family)


def _observe(app: App, events: list[Event], account: Account, family: str | None = None) -> None:
    now = app.now()
    windows = {}
    for event in events:
        window = claimed_window(
            event.window,
            status=event.limit_status,
            used_pct=event.used_pct,
            resets_at=event.resets_at,
            now=now,
            family=family,
        )
        if window is not None:
            windows[(window.kind, window.family)] = window
    if windows:
        app.meters.observe(
            Reading(
                pool=account.pool,
                source="live",
                observed_at=now,
                windows=tuple(windows.values()),
                account=account.identity,
            )
        )
