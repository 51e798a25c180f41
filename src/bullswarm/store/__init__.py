"""The one place where shared mutable state is read and written, transactionally.

``Home`` knows the folders, ``Settings`` what a person configures (``state.json``), ``Store`` what
changes while things run (``bullswarm.db``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullswarm.lazy import exports

if TYPE_CHECKING:
    from bullswarm.store.agents import Agent
    from bullswarm.store.bench_rows import BenchEvent
    from bullswarm.store.files import atomic_write
    from bullswarm.store.home import Home
    from bullswarm.store.memory import default_worker_cap
    from bullswarm.store.process import alive, me, started
    from bullswarm.store.records import DecisionRecord, RunRecord, short_id
    from bullswarm.store.settings import (
        Settings,
        Subscription,
        load,
        routing_admission,
        routing_config,
        routing_policy,
        update,
    )
    from bullswarm.store.store import Store

__getattr__ = exports(
    __name__,
    {
        "agents": ("Agent",),
        "bench_rows": ("BenchEvent",),
        "files": ("atomic_write",),
        "home": ("Home",),
        "memory": ("default_worker_cap",),
        "process": ("alive", "me", "started"),
        "records": ("DecisionRecord", "RunRecord", "short_id"),
        "settings": (
            "Settings",
            "Subscription",
            "load",
            "routing_admission",
            "routing_config",
            "routing_policy",
            "update",
        ),
        "store": ("Store",),
    },
)


__all__ = [
    "Agent",
    "BenchEvent",
    "DecisionRecord",
    "Home",
    "RunRecord",
    "Settings",
    "Store",
    "Subscription",
    "alive",
    "atomic_write",
    "default_worker_cap",
    "load",
    "me",
    "routing_admission",
    "routing_config",
    "routing_policy",
    "short_id",
    "started",
    "update",
]
