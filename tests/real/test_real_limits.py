"""What a provider's "no" does to a run, on the real CLIs: kinds, seconds, benches, hand-over.

A pool that says no is always called first; a second one, of another CLI or another account, does
the work. Every number in the table is an upper bound in seconds of the attempt that failed.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rig import Rig, Scene, World

QUICK: dict[str, Any] = {"throttlePausesSeconds": [0.5, 0.5], "waitMarginSeconds": 1}


@dataclass(frozen=True)
class Row:
    """One CLI in one scene: how its attempt must fail, within how many seconds, after how many
    attempts on that pool, and what bench it leaves."""

    cli: str
    scene: str
    kind: str
    within: float
    bench: str | None = None
    tries: int = 1
    options: tuple[str, ...] = ()
    ended: str | None = None

    @property
    def name(self) -> str:
        return f"{self.cli}-{self.scene}"


SILENT = ("--silence", "6")
ROWS = (
    Row("claude", "limit", "quota", 6, "quota"),
    Row("claude", "throttle", "throttle", 8, tries=3),
    Row("claude", "auth", "auth", 8, "auth"),
    Row("claude", "overloaded", "provider", 15),
    Row("claude", "hang", "stalled", 15, options=SILENT, ended="stalled"),
    # With a key this client names no window and no reset: to it, too many requests.
    Row("claude-key", "limit", "throttle", 6, tries=3),
    Row("claude-key", "throttle", "throttle", 10, tries=3),
    Row("claude-key", "auth", "auth", 8, "auth"),
    Row("claude-key", "overloaded", "provider", 12),
    Row("claude-key", "hang", "stalled", 15, options=SILENT, ended="stalled"),
    Row("codex", "limit", "quota", 6, "quota"),
    Row("codex", "throttle", "throttle", 8, tries=3),
    Row("codex", "auth", "auth", 8, "auth"),
    Row("codex", "overloaded", "provider", 15),
    Row("codex", "cut", "provider", 15),
    Row("codex", "hang", "stalled", 15, options=SILENT, ended="stalled"),
    Row("opencode", "limit", "quota", 15, "quota", ended="notice"),
    Row("opencode", "throttle", "throttle", 20, tries=3),
    Row("opencode", "auth", "auth", 15, "auth"),
    Row("opencode", "overloaded", "provider", 40),
    # It asks for ever: the loop guard ends it, not the time limit.
    Row("opencode", "cut", "provider", 45, options=("--timeout", "90"), ended="loop"),
    Row("opencode", "hang", "stalled", 20, options=("--silence", "9"), ended="stalled"),
    Row("qwen", "limit", "stalled", 20, options=SILENT, ended="stalled"),
    Row("qwen", "throttle", "stalled", 20, options=SILENT, ended="stalled"),
    Row("qwen", "overloaded", "stalled", 20, options=SILENT, ended="stalled"),
    Row("qwen", "auth", "auth", 10, "auth"),
    Row("qwen", "hang", "stalled", 20, options=SILENT, ended="stalled"),
    Row("gemini", "limit", "quota", 10, "quota", ended="notice"),
    Row("gemini", "throttle", "throttle", 18, tries=3, ended="notice"),
    Row("gemini", "overloaded", "provider", 60),
    Row("gemini", "auth", "auth", 10, "auth"),
    Row("gemini", "hang", "stalled", 20, options=SILENT, ended="stalled"),
)


def settings(world: World, **limits: Any) -> None:
    file = world.bull / "state.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    known["limits"] = {**QUICK, **limits}
    file.write_text(json.dumps(known))


def first_pool(world: World, cli: str) -> str:
    if cli.startswith("claude"):
        return world.claude(key="k1", subscription=cli == "claude")
    pool: str = getattr(world, cli)(key="k1")
    return pool


def second_pool(world: World, cli: str) -> str:
    return world.codex("b", key="k2") if cli != "claude" else world.claude("b", key="k2")


def run(world: World, first: str, second: str, *options: str, ask: str = "Explain it.") -> Any:
    order = ("--strategy", "prefer-order", "--prefer", f"{first},{second}")
    lane = () if "--lane" in options else ("--lane", "analyze")
    return world.bullswarm(
        "run", *lane, "--use", first, "--use", second, *order, "--json", *options, ask
    )


def row_of(world: World, pool: str) -> dict[str, Any]:
    rows = world.bullswarm("pools", "--json").json["pools"]
    found: dict[str, Any] = {r["pool"]: r for r in rows}[pool]
    return found


def bench_of(world: World, pool: str) -> tuple[str | None, datetime | None]:
    """(kind, until) of a pool that is benched, from what ``pools`` says."""
    row = row_of(world, pool)
    if row["eligible"]:
        return None, None
    _, _, rest = row["state"].partition("quarantined (")
    kind, _, rest = rest.partition(") until ")
    return kind, datetime.strptime(rest[:16], "%Y-%m-%d %H:%M").replace(tzinfo=UTC)


def task_of(attempt: dict[str, Any]) -> str:
    """The prompt that an attempt was given."""
    stream = Path(attempt["streamFile"])
    stamp = stream.name.removeprefix("stream-").removesuffix(".jsonl")
    return (stream.parent / f"task-{stamp}.md").read_text()


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_a_no_is_told_apart_and_the_second_pool_does_the_work(
    world: World, rig: Rig, row: Row
) -> None:
    first, second = first_pool(world, row.cli), second_pool(world, row.cli)
    settings(world)
    rig.scenes["k1"] = Scene(row.scene, reset_s=5400)
    asked_at = datetime.now(UTC)
    ran = run(world, first, second, *row.options, ask="Explain the parser in one line.")
    verdict = ran.json
    attempts = verdict["attempts"]

    failed, done = attempts[:-1], attempts[-1]
    assert [a["failureKind"] for a in failed] == [row.kind] * row.tries, verdict
    assert [a["pool"] for a in failed] == [first] * row.tries
    for attempt in failed:
        assert 0 < attempt["wallS"] <= row.within, attempt
        assert "usage" in attempt and not attempt["ok"]
        if row.ended:
            assert attempt["endedBy"] == row.ended

    assert ran.code == 0 and verdict["ok"], verdict
    assert done["pool"] == second and done["ok"] and done["wallS"] > 0
    assert done["usage"]["outputTokens"] == 25
    assert verdict["usage"]["outputTokens"] >= 25
    told = task_of(done)
    assert told.startswith("Explain the parser in one line.")
    assert failed[-1]["why"] in told

    kind, until = bench_of(world, first)
    assert kind == row.bench
    if row.bench == "auth":
        assert until is not None
        assert timedelta(minutes=9) < until - asked_at < timedelta(minutes=12)
    elif row.bench == "quota":
        assert until is not None
        # opencode names no reset: half an hour, marked as a guess.
        named = 1800 if row.cli == "opencode" else 5400
        assert abs((until - asked_at).total_seconds() - named) < 90
        assert ("guess" in row_of(world, first)["state"]) == (row.cli == "opencode")
    assert not world.alive()

    before = len(rig.asked("k1"))
    if row.bench:
        again = run(world, first, second).json
        assert [a["pool"] for a in again["attempts"]] == [second]
        assert len(rig.asked("k1")) == before


@pytest.mark.parametrize("cli", ["claude", "qwen"])
def test_a_cut_stream_that_the_cli_mends_by_itself_is_no_failure(
    world: World, rig: Rig, cli: str
) -> None:
    first, second = first_pool(world, cli), second_pool(world, cli)
    settings(world)
    rig.scenes["k1"] = Scene("cut", after=1, then=Scene())
    verdict = run(world, first, second, "--timeout", "60").json
    assert verdict["ok"], verdict
    assert [a["pool"] for a in verdict["attempts"]] == [first]
    assert not world.alive()


RETURNED = (
    Row("claude", "limit", "quota", 6),
    Row("codex", "limit", "quota", 6),
    Row("gemini", "limit", "quota", 10),
    Row("opencode", "limit", "quota", 15),
    Row("claude", "throttle", "throttle", 8, tries=3),
    Row("codex", "throttle", "throttle", 8, tries=3),
)


@pytest.mark.parametrize("row", RETURNED, ids=lambda r: r.name)
def test_return_hands_a_limit_to_the_caller_at_once(world: World, rig: Rig, row: Row) -> None:
    first, second = first_pool(world, row.cli), second_pool(world, row.cli)
    settings(world)
    rig.scenes["k1"] = Scene(row.scene, reset_s=5400)
    ran = run(world, first, second, "--on-limit", "return")
    verdict = ran.json
    assert ran.code == 1 and verdict["failureKind"] == row.kind, verdict
    assert [a["pool"] for a in verdict["attempts"]] == [first] * row.tries
    assert all(a["wallS"] <= row.within for a in verdict["attempts"])
    assert not rig.asked("k2")
    assert "quarantined" not in row_of(world, first)["state"], "nothing is benched in this mode"
    if row.kind == "quota" and row.cli in ("claude", "codex", "gemini"):
        named = datetime.fromisoformat(verdict["retryAt"])
        assert abs((named - datetime.now(UTC)).total_seconds() - 5400) < 90
    assert not world.alive()


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_return_counts_a_pool_without_a_meter_as_full_only_until_a_known_reset(
    world: World, rig: Rig, cli: str
) -> None:
    first, second = first_pool(world, cli), second_pool(world, cli)
    settings(world, mode="return")
    rig.scenes["k1"] = Scene("limit", reset_s=5400)
    assert run(world, first, second).json["failureKind"] == "quota"
    row = row_of(world, first)
    assert not row["eligible"] and "full" in row["state"], row
    again = run(world, first, second).json
    assert again["ok"] and again["pick"]["pool"] == second


def test_return_gives_a_refused_login_one_try_outside_its_group_and_stores_nothing(
    world: World, rig: Rig
) -> None:
    first, second = world.claude(key="k1"), world.claude("b", key="k2")
    settings(world)
    rig.scenes["k1"] = Scene("auth")
    verdict = run(world, first, second, "--on-limit", "return").json
    assert verdict["ok"]
    assert [a["pool"] for a in verdict["attempts"]] == [first, second]
    assert row_of(world, first)["eligible"]


def test_a_limit_of_one_model_family_benches_that_family_alone(world: World, rig: Rig) -> None:
    first, second = world.claude(key="k1"), world.claude("b", key="k2")
    settings(world)
    rig.scenes["k1"] = Scene("limit", claim="seven_day_opus", reset_s=90_000)
    verdict = run(world, first, second, "--model", "opus").json
    assert verdict["ok"], verdict
    assert [(a["pool"], a["failureKind"]) for a in verdict["attempts"]] == [
        (first, "quota"),
        (second, None),
    ]
    row = row_of(world, first)
    assert row["eligible"] and "without opus until" in row["state"], row

    rig.scenes["k1"] = Scene()
    asked = len(rig.asked("k1"))
    again = run(world, first, second, "--model", "opus").json
    assert [a["pool"] for a in again["attempts"]] == [second]
    assert len(rig.asked("k1")) == asked
    sonnet = run(world, first, second, "--model", "sonnet").json
    assert [a["pool"] for a in sonnet["attempts"]] == [first]
    # Nobody asked for a model: one that is not benched is asked for.
    plain = run(world, first, second).json
    assert [a["pool"] for a in plain["attempts"]] == [first]
    assert "opus" not in str(rig.asked("k1")[-1].body.get("model"))


def test_a_weekly_limit_is_benched_until_the_week_ends(world: World, rig: Rig) -> None:
    first, second = world.claude(key="k1"), world.claude("b", key="k2")
    settings(world)
    rig.scenes["k1"] = Scene("limit", claim="seven_day", reset_s=3 * 86_400)
    began = datetime.now(UTC)
    assert run(world, first, second).json["ok"]
    kind, until = bench_of(world, first)
    assert kind == "quota" and until is not None
    assert abs((until - began).total_seconds() - 3 * 86_400) < 90
    assert "weekly" in row_of(world, first)["state"]


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_what_the_dead_attempt_left_is_handed_over(world: World, rig: Rig, cli: str) -> None:
    first, second = first_pool(world, cli), second_pool(world, cli)
    settings(world)
    path = str(world.work / "hello.txt") if cli == "claude" else "hello.txt"
    # It writes a file, then hits its limit.
    rig.scenes["k1"] = Scene("write", path=path, after=1, then=Scene("limit", reset_s=5400))
    rest = str(world.work / "rest.txt") if cli == "claude" else "rest.txt"
    rig.scenes["k2"] = Scene("write", path=rest, text="Both files are written.")
    verdict = run(world, first, second, "--lane", "build", ask="Write hello.txt and rest.txt").json
    assert verdict["ok"], verdict
    assert [a["failureKind"] for a in verdict["attempts"]] == ["quota", None]
    told = task_of(verdict["attempts"][1])
    assert "created: hello.txt" in told
    assert verdict["attempts"][0]["changes"]["created"] == ["hello.txt"]
    assert set(verdict["changes"]["created"]) == {"hello.txt", "rest.txt"}


@pytest.mark.parametrize("cli", ["claude", "codex"])
def test_wait_goes_on_with_the_same_session_after_the_reset(
    world: World, rig: Rig, cli: str
) -> None:
    first = first_pool(world, cli)
    settings(world)
    # codex names its reset in minutes, so the one after a wait of some seconds is near enough.
    rig.scenes["k1"] = Scene("limit", reset_s=8, after=1, then=Scene())
    ran = world.bullswarm(
        "run", "--lane", "analyze", "--on-limit", "wait", "--use", first, "--json", "Explain it"
    )
    verdict = ran.json
    assert verdict["ok"], verdict
    limited, done = verdict["attempts"]
    assert limited["failureKind"] == "quota" and done["pool"] == first
    assert limited["session"] and done["session"] == limited["session"]
    assert ran.seconds > 8, "not before the reset and its margin"
    assert not world.alive()


def test_starts_of_one_login_are_apart_and_its_files_are_left_alone(world: World, rig: Rig) -> None:
    first = world.claude(key="k1")
    settings(world)
    login = world.home / ".claude" / ".credentials.json"
    before = (login.read_bytes(), login.stat().st_mtime_ns, login.stat().st_ino)
    started = [
        world.start("run", "--lane", "analyze", "--use", first, "--json", f"Explain part {n}.")
        for n in range(3)
    ]
    for run_ in started:
        out, _ = run_.communicate(timeout=90)
        assert json.loads(out)["ok"], out
    asked = sorted(one.at for one in rig.asked("k1") if one.asks)
    assert len(asked) == 3
    gaps = [later - earlier for earlier, later in itertools.pairwise(asked)]
    # A second apart when they start; how long each takes to its first request varies.
    assert asked[-1] - asked[0] > 1.4, gaps
    assert (login.read_bytes(), login.stat().st_mtime_ns, login.stat().st_ino) == before
