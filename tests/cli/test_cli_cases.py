"""What people ran into, on the product as a whole."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from clikit import SAY, Cli

RUN = ("run", "--lane", "analyze")


def week(
    used: float, *, days: float = 3, five: float = 5, hours: float = 2
) -> list[dict[str, Any]]:
    now = datetime.now(UTC)
    return [
        {"minutes": 300, "usedPct": five, "resetsAt": (now + timedelta(hours=2)).isoformat()},
        {"minutes": 10080, "usedPct": used, "resetsAt": (now + timedelta(days=days)).isoformat()},
    ]


def row(cli: Cli, pool: str) -> dict[str, Any]:
    rows = cli("pools", "--json").json["pools"]
    found: dict[str, Any] = {r["pool"]: r for r in rows}[pool]
    return found


# A worker whose watcher was killed.


def test_a_killed_run_leaves_an_orphan_that_is_named_and_can_be_ended(cli: Cli) -> None:
    process = cli.world.start(*RUN, "--pool", "echo:a", "echo: sleep 60")
    deadline = time.monotonic() + 20
    rows: list[dict[str, Any]] = []
    while time.monotonic() < deadline and not [r for r in rows if r["state"] == "running"]:
        rows = cli("assignments", "--json").json["assignments"]
        time.sleep(0.05)
    [agent] = rows
    os.kill(agent["ownerPid"], signal.SIGKILL)
    process.wait(timeout=10)
    process.communicate()

    # It still burns quota, so it still counts; and somebody has to be told.
    [agent] = cli("assignments", "--json").json["assignments"]
    assert "nobody watches it" in agent["why"] and f"cancel {agent['id']}" in agent["why"]
    assert row(cli, "echo:a")["inflight"] == 1
    [run] = cli("runs", "--json").json["runs"]
    assert run["pool"] == "echo:a"
    report = cli("health", "--json")
    assert report.code == 1 and any("nobody watches" in f["text"] for f in report.json["findings"])

    assert cli("cancel", agent["id"]).code == 0
    assert not cli.world.alive()
    [run] = cli("runs", "--json").json["runs"]
    assert run["state"] == "cancelled" and run["endedAt"]
    assert cli("assignments", "--json").json["assignments"] == []
    assert row(cli, "echo:a")["inflight"] == 0


def test_a_run_whose_process_and_worker_died_is_lost_not_running(cli: Cli) -> None:
    process = cli.world.start(*RUN, "echo: sleep 60")
    deadline = time.monotonic() + 20
    rows: list[dict[str, Any]] = []
    while time.monotonic() < deadline and not [r for r in rows if r["state"] == "running"]:
        rows = cli("assignments", "--json").json["assignments"]
        time.sleep(0.05)
    os.kill(rows[0]["ownerPid"], signal.SIGKILL)
    os.killpg(rows[0]["pid"], signal.SIGKILL)
    process.communicate(timeout=10)
    deadline = time.monotonic() + 10
    while cli("runs", "--json").json["runs"][0]["state"] == "running":
        assert time.monotonic() < deadline, cli("assignments").stdout
        time.sleep(0.05)
    [run] = cli("runs", "--json").json["runs"]
    assert run["state"] == "lost" and run["endedAt"]
    assert cli("assignments", "--json").json["assignments"] == []
    assert cli("health").code == 0


# The run directory.


def test_a_run_leaves_its_prompt_its_answer_and_its_capture_and_no_more(cli: Cli) -> None:
    cli.run("--json", "--retries", "1", prompt="echo: error the model gave up")
    cli.run("--json")
    names = sorted(path.name for path in (cli.world.bull / "runs").iterdir())
    kinds = {re.sub(r"-\d{8}-\d{6}-[0-9a-f]{4}", "", name) for name in names}
    assert kinds == {"task.md", "out.md", "stream.jsonl"}
    assert len([n for n in names if n.startswith("task")]) == 3
    cli.run("--json", prompt=f"echo: stderr a word\n{SAY}")
    [stderr] = (cli.world.bull / "runs").glob("stderr-*.log")
    assert stderr.read_text() == "a word\n"


def test_a_cli_without_events_leaves_a_log(cli: Cli) -> None:
    folder = cli.world.bull / "providers" / "plain"
    folder.mkdir(parents=True)
    words = "The parser reads tokens from src/parser.py and builds a tree of nodes."
    (folder / "connector.json").write_text(
        json.dumps(
            {
                "name": "plain",
                "command": "/bin/echo",
                "args": [words],
                "promptVia": "stdin",
                "stream": {"format": "text", "terminal": False},
            }
        )
    )
    out = cli(*RUN, "--json", "--pool", "plain", "Explain the parser.")
    assert out.code == 0, out.text
    stream = Path(out.json["streamFile"])
    assert re.fullmatch(r"stdout-[\w-]+\.log", stream.name) and stream.read_text() == words + "\n"


# Meters, as they are shown.


def test_where_in_flight_work_leads_is_shown_beside_the_reading(cli: Cli) -> None:
    import msgspec

    from bullswarm.cli.pools import _row
    from bullswarm.runs import App
    from bullswarm.runs.overview import overview
    from bullswarm.store import Home

    cli.world.meter("a", *week(20, five=41))
    app = App(Home.open(str(cli.world.bull)), env=cli.world.env)
    one = next(r for r in overview(app) if r.pool == "echo:a")

    def shown(**fields: Any) -> str:
        cells = [text for text, _ in _row(msgspec.structs.replace(one, **fields), app.now())]
        return next(text for text in cells if text.startswith("5h="))

    assert shown() == "5h=41%"
    assert shown(inflight=2, projected_five_hour_pct=47.2) == "5h=41%->47%"
    assert shown(inflight=2, projected_five_hour_pct=41.3) == "5h=41%"
    assert shown(five_hour_pct=None, projected_five_hour_pct=None) == "5h=?"


def test_unknown_is_shown_as_such_and_never_as_zero(cli: Cli) -> None:
    cli.world.meter("a", {"minutes": 10080, "resetsAt": "2099-01-01T00:00:00Z"})
    found = row(cli, "echo:a")
    assert found["usedPct"] is None and found["surplus"] is None
    line = next(x for x in cli("pools").stdout.splitlines() if x.startswith("echo:a"))
    assert "? used" in line and "surplus=-" in line and "0%" not in line
    (cli.world.root / "echo" / "a" / "meter.json").write_text("{")
    assert "0% used" not in cli("pools").stdout


def test_two_pools_on_one_login_say_so(cli: Cli) -> None:
    for name in ("one", "two"):
        home = cli.world.home / f".claude-{name}"
        home.mkdir()
        (home / ".credentials.json").write_text('{"claudeAiOauth": {"accessToken": "x"}}')
        account = {"oauthAccount": {"accountUuid": "same"}}
        (home / ".claude.json").write_text(json.dumps(account))
    shown = cli("pools").stdout
    assert "claude-code:one: shares one login with claude-code:two: one credential group" in shown
    rows = {r["pool"]: r["credentialGroup"] for r in cli("pools", "--json").json["pools"]}
    assert rows["claude-code:one"] and rows["claude-code:one"] == rows["claude-code:two"]
    assert rows["echo:a"] is None


def test_a_pool_that_runs_dry_before_its_reset_says_when(cli: Cli) -> None:
    history = cli.world.bull / "meters" / "history"
    now = datetime.now(UTC)
    for hours, used in ((3, 20), (2, 40), (1, 60), (0, 80)):
        cli.world.meter("a", *week(used))
        file = cli.world.root / "echo" / "a" / "meter.json"
        known = json.loads(file.read_text())
        known["observedAt"] = (now - timedelta(hours=hours)).isoformat()
        file.write_text(json.dumps(known))
        cli("pools", "--fresh")
    assert list(history.iterdir())
    found = row(cli, "echo:a")
    assert found["dryAt"] and found["dryFirst"]
    dry = datetime.fromisoformat(found["dryAt"])
    assert timedelta(minutes=20) < dry - now < timedelta(hours=4)
    assert "before reset" in cli("pools").stdout


# Limits, as one run after the other meets them.


def test_the_window_that_binds_longest_wins(cli: Cli) -> None:
    """The 5-hour window is over, and the next notice names days: the later one counts."""
    soon, late = int(time.time()) + 3600, int(time.time()) + 4 * 86400
    cli.script("a", f"limit-event five_hour {soon}")
    cli.run("--pool", "echo:a")
    first = row(cli, "echo:a")["state"]
    assert cli("pools", "release", "echo:a").code == 0
    cli.script("a", f"limit-event weekly {late}")
    cli.run("--pool", "echo:a")
    second = row(cli, "echo:a")["state"]
    assert f"{datetime.fromtimestamp(soon, UTC):%Y-%m-%d %H:%M}" in first
    assert f"{datetime.fromtimestamp(late, UTC):%Y-%m-%d %H:%M}" in second


def test_an_incumbent_that_is_full_is_left_at_once(cli: Cli) -> None:
    """Eligibility comes before every preference: incumbency, assignment, pin and strategy."""
    cli.world.meter("a", *week(10))
    cli.world.meter("b", *week(40))
    assert cli.run("--json").json["pick"]["pool"] == "echo:a"
    cli.world.meter("a", *week(100))
    cli("strategy", "assign", "echo:a", "--lane", "analyze")
    assert cli.run("--json").json["pick"]["pool"] == "echo:b"
    order = ("--strategy", "prefer-order", "--prefer", "echo:a")
    assert cli.run("--json", *order).json["pick"]["pool"] == "echo:b"
    pinned = cli.run("--json", "--pool", "echo:a")
    assert pinned.code == 1 and "window full" in pinned.json["why"]
    assert pinned.json["retryAt"]


def test_a_pool_that_resets_soon_is_used_while_it_can_take_the_work(cli: Cli) -> None:
    cli.world.meter("a", *week(70, days=0.5))
    cli.world.meter("b", *week(10, days=4))
    told = cli.run("--dry-run", "--json").json
    assert told["pool"] == "echo:a"
    first = told["candidates"][0]
    assert first["urgent"] and first["pacingWindow"] == "weekly"
    assert "weekly" in told["reason"] and "urgent" in told["reason"]


@pytest.mark.parametrize("word", ["limit", "auth"])
def test_a_verdict_says_when_the_pool_it_lost_comes_back(cli: Cli, word: str) -> None:
    """Whoever called us may come again then: at the named reset, or after a bench's ten minutes."""
    reset = int(time.time()) + 3600
    cli.script("a", f"limit-event five_hour {reset}" if word == "limit" else "auth")
    verdict = cli.run("--json", "--pool", "echo:a").json
    assert verdict["failureKind"] == ("quota" if word == "limit" else "auth")
    left = datetime.fromisoformat(verdict["retryAt"]).timestamp() - time.time()
    assert left == pytest.approx(3600 if word == "limit" else 600, abs=60)
    assert "retry at" in cli.run("--pool", "echo:a").stdout
    # The earlier of two.
    cli.script("b", f"limit-event five_hour {reset + 3600}")
    both = cli.run("--json", "--use", "echo:a", "--use", "echo:b").json
    assert both["retryAt"] == verdict["retryAt"]


def test_two_retries_of_one_pool_at_most_then_elsewhere(cli: Cli) -> None:
    cli.configure(limits={"throttlePausesSeconds": [0, 0]})
    cli.script("a", "throttle")
    order = ("--strategy", "prefer-order", "--prefer", "echo:a,echo:b")
    verdict = cli.run("--json", *order).json
    assert [a["pool"] for a in verdict["attempts"]] == ["echo:a"] * 3 + ["echo:b"]
    assert verdict["ok"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("broken", "The provider broken is broken: "),
        ("demo", "The provider demo is off: bullswarm strategy set-provider demo --enabled"),
        ("echo", "echo is a provider: name one of its pools, or give it with --use"),
        ("nope", "there are: "),
    ],
)
def test_a_pool_that_is_not_there_is_told_why(cli: Cli, name: str, said: str) -> None:
    folder = cli.world.bull / "providers" / "broken"
    folder.mkdir(parents=True)
    (folder / "connector.json").write_text("{")
    out = cli(*RUN, "--pool", name, SAY)
    assert out.code == 2 and said in out.stderr
    if name not in ("echo",):
        used = cli(*RUN, "--use", name, SAY)
        assert used.code == 2 and (name == "nope" or said in used.stderr)


def test_a_missing_binary_is_told_before_anything_starts(cli: Cli) -> None:
    out = cli(*RUN, "--json", "--pool", "codex", "Explain the parser.")
    assert out.code == 1 and out.json["failureKind"] == "unavailable"
    assert "codex is not on PATH" in out.json["why"] and "npm install" in out.json["why"]
    words = cli(*RUN, "--pool", "codex", "Explain the parser.").stdout
    assert words.count("codex is not on PATH") == 1, "said once is enough"
    assert not list((cli.world.bull / "runs").glob("*"))
