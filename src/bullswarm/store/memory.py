"""How many agents this machine can hold at once."""

from __future__ import annotations

import os
from pathlib import Path

WORKER_BYTES = 2 * 1024**3
"""Measured by users: one agent CLI with its tools takes 1.5 to 2 GB."""

_NO_LIMIT = 1 << 60


def default_worker_cap(total_bytes: int | None = None) -> int:
    """Live workers at once: one for each 2 GiB of memory, 1 to 64. ``total_bytes`` None means this
    machine's memory, or what its control group grants of it."""
    total = memory_bytes() if total_bytes is None else total_bytes
    return max(1, min(64, total // WORKER_BYTES))


def memory_bytes(proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> int:
    """Bytes of memory that this process may use."""
    limits = [_physical(), *_group_limits(proc, sys / "fs" / "cgroup")]
    return min(limit for limit in limits if limit > 0)


def _physical() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return WORKER_BYTES * 4


def _group_limits(proc: Path, root: Path) -> list[int]:
    """The limits of our group and of every group above it, in both versions of control groups."""
    limits = []
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if controllers == "":
            base, name = root, "memory.max"
        elif "memory" in controllers.split(","):
            base, name = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        parts = [part for part in group.split("/") if part not in ("", "..")]
        for depth in range(len(parts), -1, -1):
            limit = _limit(base.joinpath(*parts[:depth], name))
            if limit is not None:
                limits.append(limit)
    return limits


def _limit(path: Path) -> int | None:
    try:
        value = int(path.read_text())
    except (OSError, ValueError):
        return None
    return value if 0 < value < _NO_LIMIT else None
