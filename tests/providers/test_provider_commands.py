"""Command lines: shell-free, in each CLI's own words, with a clean environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from providerkit import MINIMAL, claude_login, codex_login, load, person, pools

from bullswarm.errors import UsageError
from bullswarm.providers.base import ConnectorProvider
from bullswarm.providers.callers import MARKERS
from bullswarm.providers.templates import MAX_ARG_BYTES
from bullswarm.providers.types import Account, Ask, CommandLine, Connector

EVERY = ("claude", "codex", "opencode", "gemini", "qwen")
CLAUDE = ["-p", "--output-format", "stream-json", "--verbose"]
CODEX = ["exec", "--json", "--skip-git-repo-check", "--color", "never", "-C", "/work"]
CODEX += ["-c", "approval_policy=never"]
BUILD = ["--permission-mode", "acceptEdits", "--allowedTools=Bash,WebFetch,WebSearch"]


def command(
    tmp_path: Path,
    pool: str,
    settings: dict[str, dict[str, Any]] | None = None,
    env: dict[str, str] | None = None,
    **ask: Any,
) -> CommandLine:
    everyone = person(tmp_path, *EVERY) | (env or {})
    registry = load(everyone, settings)
    provider, account = registry.of_pool(pool)
    asked = Ask(**{"prompt": "do it", "cwd": "/work", **ask})
    return provider.command(account, asked, (settings or {}).get(account.provider, {}))


@pytest.mark.parametrize(
    ("pool", "ask", "argv"),
    [
        (
            "claude-code",
            {"lane": "analyze"},
            [
                *CLAUDE,
                "--permission-mode",
                "default",
                "--allowedTools=Read,Grep,Glob,Task,WebFetch,WebSearch",
                "--disallowedTools=Edit,Write,NotebookEdit",
            ],
        ),
        ("claude-code", {}, [*CLAUDE, *BUILD]),
        ("claude-code", {"lane": "chore"}, [*CLAUDE, *BUILD]),
        (
            "claude-code",
            {"model": "opus", "effort": "minimal", "resume_session": "s1"},
            [*CLAUDE, "--model", "opus", "--effort", "low", "--resume", "s1", *BUILD],
        ),
        (
            "claude-code",
            {"permission_mode": "bypassPermissions", "lane": "analyze"},
            [*CLAUDE, "--permission-mode", "bypassPermissions"],
        ),
        ("codex", {"lane": "analyze"}, [*CODEX, "--sandbox", "read-only", "-"]),
        ("codex", {}, [*CODEX, "--sandbox", "workspace-write", "-"]),
        (
            "codex",
            {"model": "m", "effort": "max", "permission_mode": "danger-full-access"},
            [
                *CODEX,
                *["-m", "m", "-c", "model_reasoning_effort=xhigh"],
                *["--sandbox", "danger-full-access", "-"],
            ],
        ),
        (
            "codex",
            {"resume_session": "t1"},
            [*CODEX, "--sandbox", "workspace-write", "resume", "t1", "-"],
        ),
        (
            "opencode",
            {"lane": "analyze", "model": "a/b", "effort": "high", "resume_session": "s"},
            [
                *["run", "--format", "json", "--print-logs", "--log-level", "ERROR"],
                *["--model", "a/b", "--variant", "high", "--agent", "plan", "--session", "s"],
            ],
        ),
        (
            "gemini",
            {"model": "g"},
            [
                *["--output-format", "stream-json", "--skip-trust"],
                *["--model", "g", "--approval-mode", "yolo"],
            ],
        ),
        (
            "qwen",
            {"lane": "analyze", "resume_session": "s"},
            ["--output-format", "stream-json", "--approval-mode", "default", "--resume", "s"],
        ),
    ],
)
def test_each_cli_is_told_in_its_own_words(
    pool: str, ask: dict[str, Any], argv: list[str], tmp_path: Path
) -> None:
    made = command(tmp_path, pool, **ask)
    assert list(made.argv[1:]) == argv
    assert made.argv[0].startswith(str(tmp_path))
    assert made.stdin == "do it"


def test_effort_is_advice_where_a_cli_has_no_switch(tmp_path: Path) -> None:
    assert command(tmp_path, "gemini", effort="high") == command(tmp_path, "gemini")


@pytest.mark.parametrize("pool", ["claude-code", "codex"])
def test_an_effort_nobody_knows_is_refused_with_those_there_are(pool: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"effort: {pool} knows minimal, low"):
        command(tmp_path, pool, effort="heroic")


def _provider(tmp_path: Path, **changes: Any) -> ConnectorProvider:
    connector = msgspec.convert({**MINIMAL, **changes}, Connector)
    return ConnectorProvider(connector, tmp_path / "here", person(tmp_path, "mine"))


def _argv(provider: ConnectorProvider, **ask: Any) -> list[str]:
    account = Account(pool="mine", provider="mine", home="/login")
    made = provider.command(account, Ask(**{"prompt": "p", "cwd": "/w", **ask}), {})
    return list(made.argv[1:])


@pytest.mark.parametrize("prompt", ["$(rm -rf /)", "a 'b' \"c\"\n`d`", "{model} {prompt}", "--x"])
def test_a_prompt_is_one_argument_whatever_it_holds(prompt: str, tmp_path: Path) -> None:
    assert _argv(_provider(tmp_path), prompt=prompt) == [prompt]


def test_places_are_filled_and_other_braces_stay(tmp_path: Path) -> None:
    args = ["{prompt_file}", "{cwd}/x", "{pool}@{home}", "{folder}", '{"a": 1}', "{prompt}"]
    assert _argv(_provider(tmp_path, args=args), prompt_file="/f") == [
        "/f",
        "/w/x",
        "mine@/login",
        str(tmp_path / "here"),
        '{"a": 1}',
        "p",
    ]


def test_what_was_not_asked_for_is_not_said(tmp_path: Path) -> None:
    args = ["{prompt}", "{model_args}", "{resume_args}"]
    groups = {"modelArgs": ["-m", "{model}"], "resumeArgs": ["-r", "{session}"]}
    provider = _provider(tmp_path, args=args, **groups)
    assert _argv(provider) == ["p"]
    assert _argv(provider, model="x") == ["p", "-m", "x"]
    default = _provider(tmp_path, args=args, defaultModel="d", **groups)
    assert _argv(default) == ["p", "-m", "d"]


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        ({"model": "m"}, "model: mine can't be told one"),
        ({"resume_session": "s"}, "session: mine can't be told one"),
        ({"permission_mode": "p"}, "permission mode: mine can't be told one"),
        ({"prompt": "é" * (MAX_ARG_BYTES // 2 + 1)}, "prompt: mine takes it as an argument"),
    ],
)
def test_what_a_cli_cannot_do_is_a_usage_error(
    ask: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=words):
        _argv(_provider(tmp_path), **ask)


def test_a_long_prompt_travels_by_stdin(tmp_path: Path) -> None:
    prompt = "x" * 1_000_000
    made = command(tmp_path, "codex", prompt=prompt)
    assert made.stdin == prompt
    assert max(len(a) for a in made.argv) < 1000


def test_a_worker_is_nobodys_child_session(tmp_path: Path) -> None:
    for pool in ("claude-code", "codex", "opencode", "gemini", "qwen"):
        assert set(MARKERS) <= set(command(tmp_path, pool).env_drop)
    assert "CLAUDE_CODE_SESSION_ID" in command(tmp_path, "claude-code").env_drop


def test_only_a_further_home_is_named_to_the_cli(tmp_path: Path) -> None:
    home = Path(person(tmp_path)["HOME"])
    claude_login(home / ".claude-work")
    codex_login(home / ".codex-team")
    assert "CLAUDE_CONFIG_DIR" not in command(tmp_path, "claude-code").env_set
    work = command(tmp_path, "claude-code:work")
    assert work.env_set["CLAUDE_CONFIG_DIR"] == str(home / ".claude-work")
    assert command(tmp_path, "codex:team").env_set["CODEX_HOME"] == str(home / ".codex-team")


def test_a_home_with_a_login_is_not_given_the_login_in_the_environment(tmp_path: Path) -> None:
    home = Path(person(tmp_path)["HOME"])
    claude_login(home / ".claude-work")
    assert "ANTHROPIC_API_KEY" in command(tmp_path, "claude-code:work").env_drop
    assert "ANTHROPIC_API_KEY" not in command(tmp_path, "claude-code").env_drop
    settings = {"claude-code": {"homes": {"empty": str(tmp_path / "empty")}}}
    assert "ANTHROPIC_API_KEY" not in command(tmp_path, "claude-code:empty", settings).env_drop


def test_settings_may_set_variables_for_all_homes_or_one(tmp_path: Path) -> None:
    homes = {"relay": {"path": str(tmp_path / "r"), "env": {"ANTHROPIC_BASE_URL": "http://r"}}}
    settings = {"claude-code": {"env": {"A": "1"}, "homes": homes}}
    relay = command(tmp_path, "claude-code:relay", settings)
    assert (relay.env_set["A"], relay.env_set["ANTHROPIC_BASE_URL"]) == ("1", "http://r")
    default = command(tmp_path, "claude-code", settings)
    assert default.env_set["A"] == "1"
    assert "ANTHROPIC_BASE_URL" not in default.env_set


def test_what_is_set_is_not_dropped(tmp_path: Path) -> None:
    made = command(tmp_path, "claude-code", {"claude-code": {"env": {"CLAUDECODE": "1"}}})
    assert made.env_set["CLAUDECODE"] == "1"
    assert "CLAUDECODE" not in made.env_drop


def test_a_cli_that_went_away_is_a_usage_error(tmp_path: Path) -> None:
    registry = load(person(tmp_path, "codex"))
    provider, account = registry.of_pool("codex")
    (tmp_path / "bin" / "codex").unlink()
    with pytest.raises(UsageError, match="codex: codex is not on PATH; install it"):
        provider.command(account, Ask(prompt="p", cwd="/"), {})


def test_models_carry_family_and_latency(tmp_path: Path) -> None:
    registry = load(person(tmp_path, "claude"))
    account = pools(registry)["claude-code"]
    models = {m.name: (m.family, m.latency) for m in registry.get("claude-code").models(account)}
    assert models["opus"] == ("opus", "slow")
    assert models["haiku"] == ("haiku", "fast")
    assert models["claude-opus-4-8"] == ("opus", "slow")


def test_settings_may_add_models(tmp_path: Path) -> None:
    registry = load(person(tmp_path, "claude"), {"claude-code": {"models": ["new-1", "opus"]}})
    names = [m.name for m in registry.get("claude-code").models(Account(pool="p", provider="q"))]
    assert names.count("opus") == 1
    assert names[-1] == "new-1"
