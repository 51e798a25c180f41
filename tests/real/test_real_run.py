"""``bullswarm run`` on the real claude and codex: one table of scenes, both CLIs."""

from __future__ import annotations

import time

import pytest

from rig import Rig, Scene, World


def _pool(world: World, cli: str, key: str) -> str:
    if cli == "claude-key":
        return world.claude(key=key, subscription=False)
    if cli == "claude-token":
        # A subscription whose login is a token in the environment, with nothing on disk.
        found = world.claude(key="nobody")
        (world.home / ".claude" / ".credentials.json").unlink()
        world.env["CLAUDE_CODE_OAUTH_TOKEN"] = key
        return found
    pool: str = getattr(world, cli)(key=key)
    return pool


CLIS = ("claude", "claude-token", "claude-key", "codex")
OTHERS = ("opencode", "qwen", "gemini")


@pytest.mark.parametrize("cli", CLIS + OTHERS)
def test_an_answer_is_verified(world: World, rig: Rig, cli: str) -> None:
    pool = _pool(world, cli, "k1")
    ran = world.bullswarm("run", "--lane", "analyze", "--json", "Explain the parser in one line.")
    verdict = ran.json
    assert ran.code == 0, verdict
    assert verdict["ok"] and verdict["why"] == "verified" and verdict["keepOnClaude"] is False
    assert verdict["pick"]["pool"] == pool
    with open(verdict["outFile"]) as file:
        assert "builds a tree" in file.read()
    # 25 an answer; some of them ask more than once, and every one is counted.
    tokens = verdict["usage"]["outputTokens"]
    assert tokens == 25 if cli in CLIS else tokens and tokens % 25 == 0
    assert rig.asked("k1")
    assert not world.alive()


@pytest.mark.parametrize("cli", CLIS + OTHERS)
def test_a_file_edit_through_a_tool_call(world: World, rig: Rig, cli: str) -> None:
    _pool(world, cli, "k1")
    target = "hello.txt" if cli == "codex" else str(world.work / "hello.txt")
    rig.scenes["k1"] = Scene("write", path=target, text="I wrote hello.txt with a greeting.")
    ran = world.bullswarm("run", "--lane", "build", "--json", "Write hello.txt")
    verdict = ran.json
    assert ran.code == 0, verdict
    assert "hello from the agent" in (world.work / "hello.txt").read_text()
    assert verdict["changes"]["created"] == ["hello.txt"]


@pytest.mark.parametrize("cli", CLIS)
def test_a_build_run_that_changed_nothing_is_not_ok(world: World, cli: str) -> None:
    _pool(world, cli, "k1")
    ran = world.bullswarm("run", "--lane", "build", "--retries", "0", "--json", "Fix the parser")
    verdict = ran.json
    assert ran.code == 1
    assert verdict["failureKind"] == "not-produced"


@pytest.mark.parametrize("cli", CLIS)
def test_a_refused_login_is_auth_within_seconds(world: World, rig: Rig, cli: str) -> None:
    pool = _pool(world, cli, "k1")
    rig.scenes["k1"] = Scene("auth")
    ran = world.bullswarm("run", "--lane", "analyze", "--json", "Explain the parser")
    verdict = ran.json
    assert ran.code == 1
    assert verdict["failureKind"] == "auth", verdict
    assert verdict["attempts"][0]["wallS"] < 15
    pools = {p["pool"]: p for p in world.bullswarm("pools", "--json").json["pools"]}
    assert not pools[pool]["eligible"]
    assert not world.alive()


@pytest.mark.parametrize("cli", ("claude", "claude-token", "codex"))
def test_a_limit_is_quota_with_its_reset(world: World, rig: Rig, cli: str) -> None:
    pool = _pool(world, cli, "k1")
    rig.scenes["k1"] = Scene("limit", reset_s=5400)
    ran = world.bullswarm("run", "--lane", "analyze", "--json", "Explain the parser")
    verdict = ran.json
    assert ran.code == 1
    assert verdict["failureKind"] == "quota", verdict
    assert verdict["attempts"][0]["wallS"] < 10
    row = {p["pool"]: p for p in world.bullswarm("pools", "--json").json["pools"]}[pool]
    assert not row["eligible"] and "until" in row["state"]
    said = verdict["attempts"][0]["why"]
    assert "resets" in said or "try again at" in said, said
    assert not world.alive()


@pytest.mark.parametrize("cli", ("claude", "codex"))
def test_a_stream_that_is_cut_never_hangs(world: World, rig: Rig, cli: str) -> None:
    _pool(world, cli, "k1")
    rig.scenes["k1"] = Scene("cut")
    ran = world.bullswarm(
        "run", "--lane", "analyze", "--retries", "0", "--timeout", "60", "--json", "Explain it"
    )
    verdict = ran.json
    # claude keeps the words that came; codex gives up on them.
    assert verdict["ok"] or verdict["failureKind"] in ("provider", "not-produced"), verdict
    assert ran.seconds < 60
    assert not world.alive()


@pytest.mark.parametrize("cli", ("claude", "codex"))
def test_a_hang_is_stalled_at_the_silence_threshold(world: World, rig: Rig, cli: str) -> None:
    _pool(world, cli, "k1")
    rig.scenes["k1"] = Scene("hang")
    began = time.monotonic()
    ran = world.bullswarm(
        "run", "--lane", "analyze", "--retries", "0", "--silence", "4", "--json", "Explain it"
    )
    assert ran.code == 1
    assert ran.json["failureKind"] == "stalled"
    assert time.monotonic() - began < 20
    assert not world.alive()
