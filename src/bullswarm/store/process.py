"""Who a process is: its pid together with the time it started, because pids are used again."""

from __future__ import annotations

import os
from functools import cache

_EPOCH_FROM = 1e9
"""Start times above this are seconds since 1970 (psutil's way), below it seconds since boot."""


def me() -> tuple[int, float]:
    """This process: its pid and its start time."""
    pid = os.getpid()
    return pid, started(pid) or 0.0


def started(pid: int) -> float | None:
    """When the process started, in seconds since boot, which no change of the clock moves; None
    where it is gone or is only waiting to be reaped. Seconds since 1970 without ``/proc``."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            line = file.read()
    except OSError:
        return None if os.access("/proc/self/stat", os.R_OK) else _psutil_started(pid)
    # The name stands in brackets and may hold anything, brackets and blanks too.
    fields = line[line.rindex(b")") + 2 :].split()
    if fields[0] in (b"Z", b"X", b"x"):
        return None
    return int(fields[19]) / _ticks()


def alive(pid: int | None, since: float | None) -> bool:
    """Whether the process that had this pid and this start time (since boot or since 1970) still
    runs. A start time of None or 0 is unknown and matches any."""
    if pid is None or pid <= 0:
        return False
    actual = started(pid)
    if actual is None:
        return False
    if not since:
        return True
    if since >= _EPOCH_FROM and actual < _EPOCH_FROM:
        # The time of boot follows the wall clock, so it is only about right.
        return abs(_booted() + actual - since) < 2.0
    return abs(actual - since) < 0.05


@cache
def _ticks() -> float:
    return float(os.sysconf("SC_CLK_TCK"))


def _booted() -> float:
    with open("/proc/stat", "rb") as file:
        for line in file:
            if line.startswith(b"btime "):
                return float(line.split()[1])
    return 0.0


def _psutil_started(pid: int) -> float | None:
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return float(process.create_time())
    except psutil.Error:
        return None
