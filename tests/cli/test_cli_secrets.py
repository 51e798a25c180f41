"""What opens a login never leaves it: not in an output, a record, a log, a database or JSON."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime, timedelta

import pytest
from clikit import SAY, Cli, files_below

TOKENS = {
    "ANTHROPIC_API_KEY": "sk-ant-api03-mAdEuP0001",
    "OPENAI_API_KEY": "sk-proj-mAdEuP0002",
    "GEMINI_API_KEY": "AIzaMaDeUp0003",
    "CODEX_API_KEY": "sk-codex-mAdEuP0004",
}
ACCESS, REFRESH = "sk-ant-oat01-mAdEuP0005", "sk-ant-ort01-mAdEuP0006"
ID, CODEX_ACCESS, CODEX_REFRESH = "mAdEuP0007", "mAdEuP0008", "rt_mAdEuP0009"

CLAUDE = """#!/bin/sh
cat > /dev/null
echo 'debug: starting' >&2
echo '{"type":"system","subtype":"init","session_id":"s-1","model":"claude-opus-4"}'
echo '{"type":"assistant","message":{"content":[{"type":"text","text":"Reading."}]}}'
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":2,"session_id":"s-1",\
"result":"The parser reads tokens from src/parser.py and builds a tree of nodes."}'
"""
REFUSED = """#!/bin/sh
cat > /dev/null
echo 'API Error: 401 {"type":"error","error":{"type":"authentication_error"}}' >&2
echo '{"type":"result","subtype":"success","is_error":true,"num_turns":1,"session_id":"s-1",\
"result":"API Error: 401 invalid x-api-key"}'
exit 1
"""


def jwt(subject: str) -> str:
    body = base64.urlsafe_b64encode(json.dumps({"sub": subject}).encode()).rstrip(b"=").decode()
    return f"eyJhbGciOiJub25lIn0.{body}.{ID}"


def secrets() -> list[str]:
    return [*TOKENS.values(), ACCESS, REFRESH, jwt("me"), CODEX_ACCESS, CODEX_REFRESH]


def clean(cli: Cli, said: list[str]) -> None:
    for secret in secrets():
        for text in said:
            assert secret not in text
        for file in files_below(cli.world.bull):
            assert secret.encode() not in file.read_bytes(), file
    # Nor its tail, by which people know a key.
    for text in said:
        assert "mAdEuP" not in text and "MaDeUp" not in text


@pytest.mark.parametrize("usage", ["ok", "refused", "busy", "broken"])
@pytest.mark.parametrize("keys", ["in files", "in the environment"])
def test_no_secret_is_shown_or_kept(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, keys: str, usage: str
) -> None:
    world = cli.world
    world.claude(key=ACCESS)
    login = world.home / ".claude" / ".credentials.json"
    login.write_text(login.read_text().replace(f"refresh-{ACCESS}", REFRESH))
    auth = world.home / ".codex" / "auth.json"
    auth.parent.mkdir()
    tokens = {"id_token": jwt("me"), "access_token": CODEX_ACCESS, "refresh_token": CODEX_REFRESH}
    auth.write_text(json.dumps({"tokens": {**tokens, "account_id": "acct-1"}}))
    before = (login.read_bytes(), auth.read_bytes())
    if keys == "in the environment":
        for name, value in TOKENS.items():
            monkeypatch.setenv(name, value)
    fake = world.root / "fake"
    fake.mkdir()
    for name, script in (("claude", CLAUDE), ("codex", REFUSED)):
        (fake / name).write_text(script)
        (fake / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake}:/usr/bin:/bin")
    later = (datetime.now(UTC) + timedelta(days=3)).isoformat()
    answers = {
        "ok": {"seven_day": {"utilization": 20.0, "resets_at": later}},
        "refused": (401, {}),
        "busy": (429, {"retry-after": "0"}),
        "broken": (500, {}),
    }
    world.rig.usage[ACCESS] = answers[usage]

    said = [cli("pools", "--fresh", "--json").text, cli("pools").text]
    for argv in (
        ("run", "--lane", "analyze", "--json", "--pool", "claude-code", "Explain the parser."),
        ("run", "--lane", "analyze", "--pool", "claude-code", "Explain the parser."),
        ("run", "--lane", "analyze", "--json", "--pool", "codex", "Explain the parser."),
        ("run", "--lane", "analyze", "--dry-run", "--json", "Explain the parser."),
        ("provider", "probe", "claude-code", "--json"),
        ("provider", "probe", "codex"),
        ("provider", "list", "--json"),
        ("health", "--json"),
        ("runs", "--json"),
        ("assignments", "--json"),
        ("strategy", "show", "--json"),
        ("pools", "--json"),
    ):
        said.append(cli(*argv).text)
    last = cli("runs", "--json").json["runs"]
    assert [r["pool"] for r in last] == ["codex", "claude-code", "claude-code"]
    assert [r["state"] for r in last] == ["failed", "ok", "ok"]
    said += [cli("explain", r["runId"], "--json").text for r in last]
    clean(cli, said)
    assert (login.read_bytes(), auth.read_bytes()) == before
    if keys == "in files":
        assert any(r.key == ACCESS for r in world.rig.requests), "the meter was not read at all"
    assert not world.rig.asked(), "reading a meter spent a prompt"


def test_a_worker_gets_the_key_and_its_command_line_does_not(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", TOKENS["ANTHROPIC_API_KEY"])
    process = cli.world.start
    cli.world.env["ANTHROPIC_API_KEY"] = TOKENS["ANTHROPIC_API_KEY"]
    run = process("run", "--lane", "analyze", "--json", f"echo: sleep 2\n{SAY}")
    deadline = time.monotonic() + 20
    lines: list[str] = []
    while not lines and run.poll() is None and time.monotonic() < deadline:
        lines = cli.world.alive()
    assert lines and not any(TOKENS["ANTHROPIC_API_KEY"] in line for line in lines)
    out, err = run.communicate(timeout=30)
    clean(cli, [out, err])


def test_files_of_a_home_are_the_owners_alone(cli: Cli) -> None:
    assert cli.run().code == 0
    cli("strategy", "set", "--on-limit", "wait")
    for file in files_below(cli.world.bull):
        if file.parent.name == "providers":
            # The list of packages that offer providers: nobody's secret.
            continue
        assert file.stat().st_mode & 0o077 == 0, (file, oct(file.stat().st_mode))
