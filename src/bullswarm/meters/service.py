"""The meter service: cache, shared back-off, live reads side by side, history, declared resets."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from bullswarm.meters.backoff import wait_s
from bullswarm.meters.clean import clean, flag_sliding, settle
from bullswarm.meters.declared import declare, setting
from bullswarm.meters.errors import MeterError
from bullswarm.meters.history import CAP, History, history_path
from bullswarm.meters.lease import Leases
from bullswarm.meters.observed import merge
from bullswarm.meters.rates import rates
from bullswarm.meters.runway import Runway, runway
from bullswarm.meters.store import MeterStore
from bullswarm.meters.windows import add_note
from bullswarm.providers.types import Account, Provider
from bullswarm.routing.types import Rate, Reading, Source, Work

LIVE_TIMEOUT_S = 15.0
"""A reader that has not answered by then is given up; every built-in reader has its own limit."""

_TAIL = 60

Request = tuple[Provider, Account, Any]


class _Ask:
    """One pool's way through ``read_all``."""

    def __init__(self, provider: Provider, account: Account, settings: Any, key: str) -> None:
        self.provider = provider
        self.account = account
        self.settings = settings
        self.key = key
        self.stored: Reading | None = None
        self.result: Reading | None = None
        self.answer: Reading | MeterError | None = None
        self.answered = False


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Meters:
    """Readings for the pools of one home.

    ``store`` holds what processes share; ``home`` is bullswarm's home folder; ``env`` is what the
    providers' readers look at. A percentage that is not known is None, an error never becomes a
    number, and a pool's reading is kept by account: another login starts afresh.
    """

    def __init__(
        self,
        store: MeterStore,
        home: str | Path,
        now: Callable[[], datetime] = _utc_now,
        env: Mapping[str, str] | None = None,
        *,
        history_cap: int = CAP,
        live_timeout_s: float = LIVE_TIMEOUT_S,
    ) -> None:
        self._store = store
        self._home = Path(home)
        self._now = now
        self._env = env
        self._cap = history_cap
        self._live_timeout_s = live_timeout_s

    def read(
        self, provider: Provider, account: Account, settings: Any = None, *, fresh: bool = False
    ) -> Reading:
        """One pool's reading: from the cache within its TTL (the connector's ``meter_ttl_s``, or
        the pool's setting of that name), else live. ``fresh`` passes over the TTL, never over a
        back-off. Raises ``UsageError`` only, for a declared reset that is no time."""
        return self.read_all([(provider, account, settings)], fresh=fresh)[account.pool]

    def read_all(self, requests: Sequence[Request], *, fresh: bool = False) -> dict[str, Reading]:
        """Every pool's reading by pool name; the live reads run side by side."""
        asks = [_Ask(p, a, s, backoff_key(a)) for p, a, s in requests]
        due = [ask for ask in asks if not self._served(ask, fresh)]
        if due:
            with Leases(self._home / "meters" / "locks", (ask.key for ask in due)):
                # Somebody else may have read it while we waited for our turn.
                due = [ask for ask in due if not self._served_meanwhile(ask)]
                self._ask_live(due)
                for ask in due:
                    ask.result = self._take(ask)
        return {ask.account.pool: ask.result for ask in asks if ask.result is not None}

    def observe(self, reading: Reading) -> None:
        """Take in what a worker's stream said about its pool for nothing. ``reading.account`` must
        be the account's identity, as in ``Account.identity``."""
        stored = self._store.get_reading(reading.pool, reading.account)
        tail = self._tail(reading.pool, reading.account)
        accepted = settle(reading, stored, tail)
        self._record(reading)
        merged = merge(stored, accepted)
        if merged is not stored:
            self._store.put_reading(merged)

    def history(self, pool: str) -> History:
        """The series of a pool's live readings."""
        return History(history_path(self._home, pool), self._cap)

    def rates(self, pool: str, work: Sequence[Work], limit: int = 200) -> tuple[Rate, ...]:
        """The pool's measured rates, from at most ``limit`` of its newest readings."""
        return rates(self.history(pool).load(limit), work, self._now())

    def runway(self, reading: Reading, limit: int = 200) -> tuple[Runway, ...]:
        """The runway of each window of a reading that this service gave."""
        return runway(reading, self.history(reading.pool).load(limit), self._now())

    def _served(self, ask: _Ask, fresh: bool) -> bool:
        now = self._now()
        ask.stored = self._store.get_reading(ask.account.pool, ask.account.identity)
        if not fresh and ask.stored is not None and self._still_good(ask, ask.stored, now):
            ask.result = self._present(ask, ask.stored, "cache", now)
            return True
        return self._backing_off(ask, now)

    def _served_meanwhile(self, ask: _Ask) -> bool:
        now = self._now()
        newest = self._store.get_reading(ask.account.pool, ask.account.identity)
        before = ask.stored.observed_at if ask.stored is not None else None
        ask.stored = newest
        if newest is not None and newest.observed_at is not None and newest.observed_at != before:
            ask.result = self._present(ask, newest, "cache", now)
            return True
        return self._backing_off(ask, now)

    def _still_good(self, ask: _Ask, stored: Reading, now: datetime) -> bool:
        if stored.observed_at is None or not stored.windows:
            return False
        ttl = setting(ask.settings, "meter_ttl_s")
        limit = float(ask.provider.connector.meter_ttl_s if ttl is None else ttl)
        age = (now - stored.observed_at).total_seconds()
        if not 0 <= age < limit:
            return False
        # A window that ended since it was read has a new count to be had.
        return not any(
            w.resets_at is not None and stored.observed_at < w.resets_at <= now
            for w in stored.windows
        )

    def _backing_off(self, ask: _Ask, now: datetime) -> bool:
        for key in (ask.key, _login_key(ask)):
            backoff = self._store.get_backoff(key)
            if backoff is not None and backoff[0] > now:
                why = f"the meter is not asked again before {backoff[0]:%Y-%m-%d %H:%M} UTC"
                ask.result = self._kept(ask, why, now)
                return True
        return False

    def _ask_live(self, due: Sequence[_Ask]) -> None:
        env = dict(os.environ if self._env is None else self._env)
        slow = []
        for ask in due:
            if _is_code(ask.provider):
                slow.append(ask)
            else:
                _fetch(ask, env, self._now())
        if not slow:
            return
        import threading
        import time

        threads = []
        for ask in slow:
            # Daemons: a third party's reader that hangs must not keep the process alive.
            thread = threading.Thread(target=_fetch, args=(ask, env, self._now()), daemon=True)
            thread.start()
            threads.append(thread)
        deadline = time.monotonic() + self._live_timeout_s
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _take(self, ask: _Ask) -> Reading:
        now = self._now()
        answer = ask.answer if ask.answered else MeterError("the meter did not answer in time")
        if isinstance(answer, MeterError):
            return self._failed(ask, answer, now)
        if answer is None or not answer.windows:
            self._clear(ask)
            none = Reading(pool=ask.account.pool, account=ask.account.identity)
            if answer is not None:
                none = msgspec.structs.replace(none, note=answer.note)
            return self._present(ask, none, "none", now)
        reading = msgspec.structs.replace(
            answer, pool=ask.account.pool, account=ask.account.identity, source="live"
        )
        newest = self.history(reading.pool).load(1)
        if _before_login(reading, newest, ask.account):
            why = "the newest reading is from before the login changed"
            return self._failed(ask, MeterError(why, kind="missing"), now)
        self._clear(ask)
        stored = ask.stored
        if _older(reading, stored) and stored is not None:
            return self._present(ask, stored, "cache", now)
        tail = self._tail(reading.pool, reading.account)
        accepted = settle(reading, stored, tail)
        accepted = flag_sliding(accepted, [*tail, reading])
        if accepted != stored:
            self._record(reading)
            self._store.put_reading(accepted)
        return self._present(ask, accepted, "live", now)

    def _failed(self, ask: _Ask, error: MeterError, now: datetime) -> Reading:
        if error.kind != "missing":
            key = _login_key(ask) if error.kind == "expired" else ask.key
            failures = (self._store.get_backoff(key) or (now, 0))[1] + 1
            pause = timedelta(seconds=wait_s(error.kind, failures, error.retry_after_s))
            self._store.put_backoff(key, now + pause, failures)
        base = ask.stored or Reading(pool=ask.account.pool, account=ask.account.identity)
        ask.stored = msgspec.structs.replace(base, note=error.reason)
        if error.kind != "missing":
            # So that other processes, which will not ask for a while, can say why.
            self._store.put_reading(ask.stored)
        return self._kept(ask, None, now)

    def _kept(self, ask: _Ask, why: str | None, now: datetime) -> Reading:
        """The last reading, with its age, and why there is no newer one."""
        last = ask.stored or Reading(pool=ask.account.pool, account=ask.account.identity)
        return self._present(ask, add_note(last, why or ""), "cache", now)

    def _present(self, ask: _Ask, reading: Reading, source: Source, now: datetime) -> Reading:
        if not reading.windows:
            source = "none"
        shown = clean(msgspec.structs.replace(reading, source=source), now)
        return declare(
            shown,
            ask.settings,
            now,
            pool=ask.account.pool,
            quota_window=ask.provider.connector.quota_window,
        )

    def _record(self, reading: Reading) -> None:
        # Losing a point of a series is no reason to lose the pick.
        with contextlib.suppress(OSError):
            self.history(reading.pool).append(reading)

    def _tail(self, pool: str, account: str | None) -> list[Reading]:
        return [p for p in self.history(pool).load(_TAIL) if p.account == account]

    def _clear(self, ask: _Ask) -> None:
        for key in (ask.key, _login_key(ask)):
            if self._store.get_backoff(key) is not None:
                self._store.clear_backoff(key)


def backoff_key(account: Account) -> str:
    """Pools that share one login share one back-off; an unknown login is its own."""
    return f"{account.provider}|{account.identity or account.pool}"


def _login_key(ask: _Ask) -> str:
    """A refused login is left alone only until its file changes: that is a new login to try."""
    stamp = 0
    if ask.account.login_file is not None:
        try:
            stamp = Path(ask.account.login_file).stat().st_mtime_ns
        except OSError:
            stamp = 0
    return f"{ask.key}|login@{stamp}"


def _is_code(provider: Provider) -> bool:
    """Whether reading the meter may take a while; a file that a connector names does not."""
    from bullswarm.providers.base import ConnectorProvider

    return getattr(type(provider), "read_meter", None) is not ConnectorProvider.read_meter


def _fetch(ask: _Ask, env: dict[str, str], now: datetime) -> None:
    try:
        ask.answer = ask.provider.read_meter(ask.account, env, now)
    except MeterError as error:
        ask.answer = error
    except Exception as error:
        # A broken third-party reader is reported on its pool and never stops a run.
        ask.answer = MeterError(
            f"the meter reader failed: {type(error).__name__}: {error}", kind="damaged"
        )
    ask.answered = True


def _older(reading: Reading, stored: Reading | None) -> bool:
    if stored is None or stored.observed_at is None or reading.observed_at is None:
        return False
    return reading.observed_at < stored.observed_at


def _before_login(reading: Reading, newest: Sequence[Reading], account: Account) -> bool:
    """Whether a reading that was left by a CLI belongs to the login used before this one: the last
    point recorded is another account's, and this reading is older than it or than the login."""
    if reading.account is None or reading.observed_at is None or not newest:
        return False
    last = newest[-1]
    if last.account is None or last.account == reading.account or last.observed_at is None:
        return False
    since = last.observed_at
    if account.login_file is not None:
        try:
            changed = datetime.fromtimestamp(Path(account.login_file).stat().st_mtime, UTC)
        except OSError:
            changed = since
        since = max(since, changed)
    return reading.observed_at <= since
