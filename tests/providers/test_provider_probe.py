"""Probe: what a pool would need, without a prompt being spent. And the demo's home."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from providerkit import claude_login, codex_login, load, person, program, write

from bullswarm.meters import MemoryMeterStore, Meters
from bullswarm.providers import demo, probe
from bullswarm.providers.probe import Report
from bullswarm.providers.types import Ask

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)


def look(env: dict[str, str], pool: str, settings: dict[str, Any] | None = None) -> Report:
    provider, account = load(env, settings).of_pool(pool)
    return probe.probe(provider, account, env, NOW, settings or {})


def words(report: Report) -> dict[str, tuple[bool, str]]:
    return {f.what: (f.ok, f.text) for f in report.findings}


def test_a_pool_that_could_work(tmp_path: Path) -> None:
    env = person(tmp_path, "codex")
    program(tmp_path / "bin", "codex", script="echo warming up; echo codex-cli 9.9")
    codex_login(Path(env["HOME"]) / ".codex")
    report = look(env, "codex")
    found = words(report)
    assert report.ok
    assert found["program"] == (True, str(tmp_path / "bin" / "codex"))
    assert found["version"] == (True, "codex-cli 9.9")
    assert found["login"][0]
    assert found["meter"] == (False, "no codex session has reported its limits yet")


def test_what_is_missing_is_named_all_at_once(tmp_path: Path) -> None:
    report = look(person(tmp_path), "codex")
    found = words(report)
    assert not report.ok
    assert found["program"][0] is False
    assert "npm install -g @openai/codex" in found["program"][1]
    assert found["login"][0] is False
    assert "codex login" in found["login"][1]


def test_a_damaged_login_is_named(tmp_path: Path) -> None:
    env = person(tmp_path, "claude")
    path = write(Path(env["HOME"]) / ".claude" / ".credentials.json", '{"claudeAiOauth": {"acc')
    report = look(env, "claude-code")
    assert not report.ok
    assert words(report)["login"] == (
        False,
        f"the login at {path} is damaged; run claude to log in again",
    )


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("echo broken >&2; exit 3", "exit 3: broken"),
        ("sleep 30", "--version gave no answer within 0.2 s"),
    ],
)
def test_a_program_that_does_not_start_is_named(
    script: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "VERSION_TIMEOUT_S", 0.2)
    env = person(tmp_path, "claude")
    env["PATH"] += os.pathsep + os.defpath
    program(
        tmp_path / "bin", "claude", script=f"exec 2>&1; {script}" if "sleep" in script else script
    )
    claude_login(Path(env["HOME"]) / ".claude")
    report = look(env, "claude-code")
    assert not report.ok
    assert words(report)["version"] == (False, text)


def test_no_prompt_is_ever_spent(tmp_path: Path) -> None:
    env = person(tmp_path, "codex")
    log = tmp_path / "log"
    program(tmp_path / "bin", "codex", script=f'echo "$@" >> {log}')
    codex_login(Path(env["HOME"]) / ".codex")
    look(env, "codex")
    assert log.read_text().splitlines() == ["--version"]


def test_pools_that_share_a_login_say_so(tmp_path: Path) -> None:
    env = person(tmp_path, "codex")
    codex_login(Path(env["HOME"]) / ".codex")
    codex_login(Path(env["HOME"]) / ".codex-b")
    assert words(look(env, "codex:b"))["credential group"] == (True, "login of codex")


def test_a_meter_file_is_read(tmp_path: Path) -> None:
    home = tmp_path / "a"
    window = {"minutes": 10080, "usedPct": 41, "resetsInMinutes": 60}
    write(home / "meter.json", {"windows": [window]})
    settings = {"echo": {"enabled": True, "homes": {"a": str(home)}}}
    assert words(look(person(tmp_path), "echo:a", settings))["meter"] == (True, "weekly 41% used")


def test_the_demo_home_has_a_fleet_with_meters_and_a_folder(tmp_path: Path) -> None:
    work = demo.set_up(tmp_path / "home")
    state = json.loads((tmp_path / "home" / "state.json").read_text())
    registry = load(person(tmp_path), state["providers"])
    accounts = registry.accounts()
    assert [a.pool for a in accounts] == ["demo-claude", "demo-codex", "demo-gemini", "demo-relay"]
    assert set(state["subscriptions"]) == {a.pool for a in accounts}
    meters = Meters(MemoryMeterStore(), tmp_path / "home")
    for account in accounts:
        reading = meters.read(registry.get("demo"), account)
        assert reading.source == "live"
        assert all(w.used_pct is not None and w.resets_at is not None for w in reading.windows)
    log = subprocess.run(
        ["git", "log", "--oneline"], cwd=work, capture_output=True, text=True, check=True
    )
    assert len(log.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("lane", "prompt", "wrote"),
    [
        ("build", "Write a greeting into notes/hello.md.", "notes/hello.md"),
        ("build", "Say something", "demo.md"),
        ("build", "Overwrite ../../etc/passwd.txt", "demo.md"),
        ("analyze", "Look at README.md", None),
    ],
)
def test_the_demo_agent_really_edits_and_spends(
    lane: str, prompt: str, wrote: str | None, tmp_path: Path
) -> None:
    work = demo.set_up(tmp_path / "home")
    providers = json.loads((tmp_path / "home" / "state.json").read_text())["providers"]
    provider, account = load(person(tmp_path), providers).of_pool("demo-codex")
    made = provider.command(account, Ask(prompt=prompt, cwd=str(work), lane=lane), {})
    done = subprocess.run(
        made.argv, cwd=work, input=(made.stdin or "").encode(), capture_output=True, check=True
    )
    events = [e for ln in done.stdout.splitlines() for e in provider.read_event(json.loads(ln))]
    assert (events[0].kind, events[-1].kind, events[-1].is_error) == ("start", "final", False)
    files = {str(p.relative_to(work)) for p in work.rglob("*") if p.is_file()}
    new = {f for f in files if not f.startswith(".git/")} - {"README.md"}
    assert new == ({wrote} if wrote else set())
    meter = json.loads((tmp_path / "home" / "demo" / "codex" / "meter.json").read_text())
    assert [w["usedPct"] for w in meter["windows"]] == [23.5, 31.4]
