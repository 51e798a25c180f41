"""Which agent CLI started us, by the marks it leaves in the environment of what it runs.

Every mark was seen on the real CLI, by letting it run ``env`` through a tool call.
"""

from __future__ import annotations

from collections.abc import Mapping

CALLERS: tuple[tuple[str, str], ...] = (
    ("CLAUDECODE", "claude-code"),
    ("CODEX_THREAD_ID", "codex"),
    ("GEMINI_CLI", "gemini"),
    ("QWEN_CODE", "qwen"),
    ("OPENCODE", "opencode"),
)
"""The variable that tells a caller, and the provider it stands for."""

MARKERS: tuple[str, ...] = tuple(name for name, _ in CALLERS)


def detect_caller(env: Mapping[str, str]) -> str | None:
    return next((provider for name, provider in CALLERS if env.get(name)), None)
