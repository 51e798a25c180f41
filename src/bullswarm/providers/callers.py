"""Which agent CLI started us, by the marks it leaves in the environment of what it runs.

Every mark was seen on the real CLI, by letting it run ``env`` through a tool call.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

CALLERS: dict[str, str] = {
    "CODEX_THREAD_ID": "codex",
    "GEMINI_CLI": "gemini",
    "OPENCODE": "opencode",
    "QWEN_CODE": "qwen",
    "CLAUDECODE": "claude-code",
}
"""Mark to the provider it stands for. Claude Code is last: where nothing tells which of two is the
inner one, it is the one that more often starts others."""

MARKERS: tuple[str, ...] = tuple(CALLERS)

_HIGHEST = 64


def detect_caller(env: Mapping[str, str], *, pid: int | None = None) -> str | None:
    """The provider whose CLI started us, None from a plain shell. Where several left their marks
    (an agent started by an agent), it is the innermost: the nearest ancestor of ``pid`` (None: this
    process) that was started without a mark is the one that set it."""
    marks = [mark for mark in CALLERS if env.get(mark)]
    if not marks:
        return None
    if len(marks) == 1:
        return CALLERS[marks[0]]
    return CALLERS[_innermost(marks, os.getpid() if pid is None else pid) or marks[0]]


def _innermost(marks: list[str], pid: int) -> str | None:
    """By the environments that the ancestors were started with; None where they can't be read."""
    for _ in range(_HIGHEST):
        parent = _parent(pid)
        if parent is None or parent <= 1:
            return None
        try:
            block = Path(f"/proc/{parent}/environ").read_bytes()
        except OSError:
            return None
        had = {item.partition(b"=")[0].decode("utf-8", "replace") for item in block.split(b"\0")}
        new = [mark for mark in marks if mark not in had]
        if new:
            return new[0] if len(new) == 1 else None
        pid = parent
    return None


def _parent(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name in brackets may hold anything; what follows its last bracket is plain.
    fields = stat.rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 and fields[1].isdigit() else None
