"""Who started us: the marks that agent CLIs leave, and which of several is the inner one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from providerkit import load

from bullswarm.providers.callers import CALLERS, detect_caller


@pytest.mark.parametrize(
    ("env", "caller"),
    [
        ({}, None),
        ({"CLAUDECODE": "1"}, "claude-code"),
        ({"CLAUDECODE": ""}, None),
        ({"CLAUDE_CODE_ENTRYPOINT": "cli"}, None),
        ({"CODEX_THREAD_ID": "01a2"}, "codex"),
        ({"CODEX_HOME": "/x"}, None),
        ({"GEMINI_CLI": "1"}, "gemini"),
        ({"GEMINI_API_KEY": "k"}, None),
        ({"QWEN_CODE": "1"}, "qwen"),
        ({"OPENCODE": "1"}, "opencode"),
    ],
)
def test_a_mark_names_the_caller(env: dict[str, str], caller: str | None) -> None:
    assert detect_caller(env) == caller


def test_every_mark_is_declared_by_its_connector() -> None:
    registry = load({})
    for mark, provider in CALLERS.items():
        assert registry.get(provider).connector.caller_markers == (mark,)


ASK = (
    "import os\nfrom bullswarm.providers.callers import detect_caller\n"
    "print(detect_caller(os.environ))"
)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    ("outer", "inner", "caller"),
    [
        ("CLAUDECODE", "CODEX_THREAD_ID", "codex"),
        ("CODEX_THREAD_ID", "CLAUDECODE", "claude-code"),
        ("GEMINI_CLI", "QWEN_CODE", "qwen"),
    ],
)
def test_the_innermost_of_two_marks_is_the_caller(outer: str, inner: str, caller: str) -> None:
    env = {k: v for k, v in os.environ.items() if k not in CALLERS}
    # The outer agent runs the inner one, which runs a shell with both marks.
    script = f'{inner}=1 sh -c \'"$0" -c "$1"; true\' "$0" "$1"; true'
    done = subprocess.run(
        ["sh", "-c", f"{script}", sys.executable, ASK],
        env={**env, outer: "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == caller


def test_where_ancestors_cannot_be_told_apart_there_is_still_one_answer() -> None:
    assert detect_caller({"CLAUDECODE": "1", "CODEX_THREAD_ID": "x"}, pid=1) == "codex"
