"""The changes a person makes to ``state.json``, each checked and written as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import structs

from bullswarm.store.home import Home
from bullswarm.store.settings import Pause, Settings, Subscription, load, update

# Which section and field of the settings a default lives in.
DEFAULTS: dict[str, tuple[str, str]] = {
    "on_limit": ("limits", "mode"),
    "strategy": ("policy", "strategy"),
    "prefer": ("policy", "prefer"),
    "quota_ceiling": ("policy", "quota_ceiling"),
    "latency": ("policy", "latency"),
    "admission": ("admission", "mode"),
    "patience": ("admission", "patience_minutes"),
    "cap_per_pool": ("admission", "cap_per_pool"),
    "tail_factor": ("admission", "tail_factor"),
    "five_hour_line": ("admission", "five_hour_line"),
    "pacing_line": ("admission", "pacing_line"),
    "worker_cap": ("config", "worker_cap"),
    "inflight_penalty": ("config", "inflight_penalty_pct"),
    "depth_limit": ("config", "depth_limit"),
    "caller_name": ("config", "caller_name"),
    "stagger": ("config", "stagger"),
}


def set_defaults(home: Home, changes: Mapping[str, Any]) -> Settings:
    """Set defaults by the names of ``DEFAULTS``. Raises ``UsageError`` as ``update`` does."""

    def change(settings: Settings) -> Settings:
        for name, value in changes.items():
            section, field = DEFAULTS[name]
            part = structs.replace(getattr(settings, section), **{field: value})
            settings = structs.replace(settings, **{section: part})
        return settings

    return update(home, change)


def set_domains(home: Home, changes: Mapping[str, tuple[str, ...]]) -> Settings:
    """Set the preference lists of domains; an empty one drops it, the others stay."""

    def change(settings: Settings) -> Settings:
        lists = {d: names for d, names in {**settings.policy.domains, **changes}.items() if names}
        return structs.replace(settings, policy=structs.replace(settings.policy, domains=lists))

    return update(home, change) if changes else load(home)


def assign(home: Home, key: str, pool: str) -> Settings:
    """Prefer ``pool`` for "lane", "effort" or "lane/effort"."""
    return update(home, lambda s: _assigned(s, {**s.config.assignments, key: pool}))


def clear_assignment(home: Home, key: str) -> bool:
    """Drop an assignment; False where there was none."""
    was = key in load(home).config.assignments
    update(
        home,
        lambda s: _assigned(s, {k: v for k, v in s.config.assignments.items() if k != key}),
    )
    return was


def set_subscription(home: Home, pool: str, changes: Mapping[str, Any]) -> Settings:
    """Set fields of ``subscriptions.<pool>``."""

    def change(settings: Settings) -> Settings:
        mine = structs.replace(settings.subscriptions.get(pool, Subscription()), **changes)
        return structs.replace(settings, subscriptions={**settings.subscriptions, pool: mine})

    return update(home, change)


def set_provider(home: Home, provider: str, changes: Mapping[str, Any]) -> Settings:
    """Set fields of ``providers.<provider>``; None removes one. Further ``homes`` are added to
    those that are there."""

    def change(settings: Settings) -> Settings:
        mine = dict(settings.providers.get(provider, {}))
        for name, value in changes.items():
            if value is None:
                mine.pop(name, None)
            elif name == "homes":
                mine[name] = _with_homes(mine.get(name), value)
            else:
                mine[name] = value
        return structs.replace(settings, providers={**settings.providers, provider: mine})

    return update(home, change)


def _with_homes(known: Any, more: Sequence[str]) -> list[str] | dict[str, Any]:
    """Further login homes beside those that are there, be they a list or a table by name."""
    if not isinstance(known, dict):
        return list(dict.fromkeys([*(known or []), *more]))
    homes = dict(known)
    there = {one["path"] if isinstance(one, dict) else one for one in homes.values()}
    for path in more:
        if path not in there:
            name = base = Path(path).name.lstrip(".") or "home"
            n = 2
            while name in homes:
                name, n = f"{base}-{n}", n + 1
            homes[name] = path
    return homes


def pause(home: Home, pool: str, until: datetime | None) -> Settings:
    """Keep new work off a pool until a time, or until it is resumed."""
    return update(home, lambda s: structs.replace(s, paused={**s.paused, pool: Pause(until=until)}))


def resume(home: Home, pool: str) -> bool:
    """Let a paused pool take work again; False where it was not paused."""
    was = pool in load(home).paused
    update(
        home,
        lambda s: structs.replace(s, paused={k: v for k, v in s.paused.items() if k != pool}),
    )
    return was


def _assigned(settings: Settings, assignments: dict[str, str]) -> Settings:
    return structs.replace(
        settings, config=structs.replace(settings.config, assignments=assignments)
    )
