"""The agent that called us: it keeps the work only when nothing else can take it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from clikit import Cli, Out

from bullswarm.runs.app import App
from bullswarm.store import Home


def meter(cli: Cli, name: str, five: float, week: float = 20) -> None:
    now = datetime.now(UTC)
    cli.world.meter(
        name,
        {"minutes": 300, "usedPct": five, "resetsAt": (now + timedelta(hours=4)).isoformat()},
        {"minutes": 10080, "usedPct": week, "resetsAt": (now + timedelta(days=3)).isoformat()},
    )


def kept(out: Out, pool: str) -> dict[str, Any]:
    assert out.code == 0, out.text
    verdict: dict[str, Any] = out.json
    assert verdict["ok"] is True and verdict["keepOnClaude"] is True
    assert verdict["outFile"] is None and verdict["attempts"] == []
    assert verdict["pick"]["pool"] == pool and verdict["failureKind"] is None
    return verdict


def ran(out: Out, pool: str) -> None:
    assert out.code == 0, out.text
    assert out.json["keepOnClaude"] is False and out.json["pick"]["pool"] == pool
    assert out.json["outFile"]


def test_the_caller_has_to_win_on_the_merits(cli: Cli) -> None:
    """However far behind its pace it is, somebody else does it while somebody else can."""
    meter(cli, "a", 5, week=0)
    meter(cli, "b", 5, week=55)
    ran(cli.run("--json", "--caller", "echo:a"), "echo:b")


def test_nothing_runs_when_only_the_caller_is_left(cli: Cli) -> None:
    assert cli("pools", "pause", "echo:b").code == 0
    before = cli.settled()
    verdict = kept(cli.run("--json", "--caller", "echo:a"), "echo:a")
    new = {k for k in cli.settled() if k not in before}
    assert all(name.startswith("workflows/") for name in new), "no prompt and no capture"
    words = cli.run("--caller", "echo:a")
    assert words.code == 0 and words.stdout.startswith("keep it in your own session (echo:a)")
    assert "nothing ran" in words.stdout
    [*_, first] = cli("runs", "--json").json["runs"]
    assert (first["runId"], first["state"]) == (verdict["runId"], "kept")
    told = cli("explain", verdict["shortId"], "--json")
    assert told.code == 0 and told.json["decisions"][0]["decision"]["keepOnCaller"]


def test_no_caller_and_a_pin_let_the_callers_pool_run_it(cli: Cli) -> None:
    cli("pools", "pause", "echo:b")
    cli.configure(config={"callerName": "echo:a"})
    kept(cli.run("--json"), "echo:a")
    ran(cli.run("--json", "--no-caller"), "echo:a")
    ran(cli.run("--json", "--pool", "echo:a"), "echo:a")


def test_a_flag_beats_the_setting_beats_the_mark(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for provider, mark in (("claude-code", "CLAUDECODE"), ("gemini", "GEMINI_CLI")):
        fake = cli.world.root / provider
        fake.write_text("#!/bin/sh\nexit 1\n")
        fake.chmod(0o755)
        assert cli("strategy", "set-provider", provider, "--bin", str(fake)).code == 0
        assert mark not in cli.world.env
    cli("strategy", "set-provider", "echo", "--disabled")
    monkeypatch.setenv("GEMINI_API_KEY", "made-up")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "made-up")
    monkeypatch.setenv("CLAUDECODE", "1")
    out = cli.run("--dry-run", "--json")
    assert {c["pool"] for c in out.json["candidates"] if c["isCaller"]} == {"claude-code"}
    assert out.json["pool"] == "gemini"
    kept(cli.run("--json", "--avoid", "gemini"), "claude-code")
    cli("strategy", "set", "--caller-name", "gemini")
    kept(cli.run("--json", "--avoid", "claude-code"), "gemini")
    # A name that people use is the provider's own.
    kept(cli.run("--json", "--caller", "claude", "--avoid", "gemini"), "claude-code")


def test_from_a_plain_shell_there_is_no_caller(cli: Cli) -> None:
    cli("pools", "pause", "echo:b")
    ran(cli.run("--json"), "echo:a")


@pytest.mark.parametrize(
    ("five", "keeps"),
    [(80, False), (95, True)],
    ids=["near-limit goes before the caller", "the caller goes before forecast-gated"],
)
def test_where_the_caller_stands(cli: Cli, five: float, keeps: bool) -> None:
    meter(cli, "a", 5)
    meter(cli, "b", five)
    out = cli.run("--json", "--caller", "echo:a")
    if keeps:
        kept(out, "echo:a")
    else:
        ran(out, "echo:b")


def test_a_caller_that_is_spent_keeps_nothing(cli: Cli) -> None:
    meter(cli, "a", 100)
    cli("pools", "pause", "echo:b")
    out = cli.run("--json", "--caller", "echo:a")
    assert out.code == 1 and out.json["failureKind"] == "unavailable"
    assert out.json["keepOnClaude"] is False and out.json["retryAt"]


def test_a_caller_without_a_pool_here_is_no_mistake(cli: Cli) -> None:
    """Its provider is known, and switched off: nothing can be kept there."""
    cli("strategy", "set-provider", "codex", "--disabled")
    assert cli.run("--json", "--caller", "codex").json["keepOnClaude"] is False


def test_a_dry_run_says_it_too(cli: Cli) -> None:
    cli("pools", "pause", "echo:b")
    out = cli.run("--dry-run", "--json", "--caller", "echo:a")
    assert out.code == 0 and out.json["keepOnCaller"] is True
    assert "keep it in your own session" in cli.run("--dry-run", "--caller", "echo:a").stdout


def test_the_caller_is_the_account_whose_home_it_runs_on(tmp_path: Path) -> None:
    for name in (".claude", ".claude-work"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".credentials.json").write_text("{}")
    env = {"HOME": str(tmp_path), "PATH": "", "CLAUDECODE": "1"}
    home = Home.open(str(tmp_path / "bull"))
    assert App(home, env=env).caller() == "claude-code"
    env["CLAUDE_CONFIG_DIR"] = str(tmp_path / ".claude-work")
    assert App(home, env=env).caller() == "claude-code:work"
