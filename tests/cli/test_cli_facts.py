"""The verbs that print facts or change settings: what they do, and the JSON that is documented."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from clikit import SAY, Cli

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"


def documented() -> dict[str, set[str]]:
    """The names that the page promises, by verb and by list."""
    found = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 2 and cells[0].startswith("`") and cells[1].startswith("`"):
            found[cells[0].strip("`")] = set(re.findall(r"`(\w+)`", cells[1]))
    return found


NAMES = documented()


def facts(cli: Cli, *argv: str, code: int = 0, key: str = "") -> Any:
    """The document of a verb, which has the documented names and no others."""
    out = cli(*argv, "--json")
    assert out.code == code, out.text
    assert out.stderr == ""
    document = out.json
    key = key or " ".join(argv)
    assert set(document) == NAMES[key], f"docs/commands.md, {key}"
    return document


def items(document: dict[str, Any], name: str) -> list[Any]:
    rows: list[Any] = document[name]
    assert rows, f"no {name} to look at"
    for row in rows:
        assert set(row) == NAMES[f"{name}[]"], f"docs/commands.md, {name}[]"
    return rows


def meter(cli: Cli, name: str, *, five: float, week: float) -> None:
    now = datetime.now(UTC)
    cli.world.meter(
        name,
        {"minutes": 300, "usedPct": five, "resetsAt": (now + timedelta(hours=2)).isoformat()},
        {"minutes": 10080, "usedPct": week, "resetsAt": (now + timedelta(days=3)).isoformat()},
    )


def row(cli: Cli, pool: str) -> dict[str, Any]:
    found: dict[str, Any] = {r["pool"]: r for r in facts(cli, "pools")["pools"]}[pool]
    return found


# pools


def test_pools_in_json(cli: Cli) -> None:
    meter(cli, "a", five=20, week=30)
    rows = items(facts(cli, "pools"), "pools")
    by_name = {r["pool"]: r for r in rows}
    a, b = by_name["echo:a"], by_name["echo:b"]
    assert a["surplus"] == pytest.approx(100 * 4 / 7 - 30, abs=0.1)
    assert (a["usedPct"], a["fiveHourPct"], a["source"]) == (30, 20, "live")
    assert (b["usedPct"], b["fiveHourPct"], b["surplus"], b["source"]) == (None, None, None, "none")
    assert rows[0] is a and a["state"] == "ready" and a["eligible"]
    assert not by_name["codex"]["eligible"] and "not on PATH" in by_name["codex"]["state"]


def test_a_pools_line_reads_as_it_is_documented(cli: Cli) -> None:
    meter(cli, "a", five=20, week=30)
    line = next(x for x in cli("pools").stdout.splitlines() if x.startswith("echo:a"))
    assert re.fullmatch(
        r"echo:a +cost=0 +analyze,build,chore +weekly 30% used, resets \w{3} \d\d:\d\d \(live\) +"
        r"surplus=\+27\.\d +inflight=0 +5h=20% +\S.* +ready",
        line,
    ), line


def test_the_columns_of_pools_are_aligned(cli: Cli) -> None:
    meter(cli, "a", five=20, week=30)
    lines = cli("pools").stdout.splitlines()
    head, rows = lines[0], [x for x in lines[1:] if "cost=" in x]
    assert len(rows) >= 2
    for title, mark in (("COST", "cost="), ("SURPLUS", "surplus="), ("5-HOUR", "5h=")):
        assert {line.index(mark) for line in rows} == {head.index(title)}


def test_nothing_is_coloured_but_on_a_terminal_that_wants_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b" not in cli("pools").stdout
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b" not in cli("pools").stdout


def test_pools_ranks_for_a_lane(cli: Cli) -> None:
    cli.configure(subscriptions={"echo:a": {"lanes": ["analyze"]}})
    assert row(cli, "echo:a")["eligible"] is False
    rows = facts(cli, "pools", "--lane", "analyze", key="pools")
    assert rows["lane"] == "analyze"
    assert {r["pool"]: r["eligible"] for r in rows["pools"]}["echo:a"] is True


def test_a_pool_that_is_away_stands_before_a_cli_that_is_not_there(cli: Cli) -> None:
    cli("pools", "pause", "echo:a")
    names = [r["pool"] for r in facts(cli, "pools")["pools"]]
    assert names[:2] == ["echo:b", "echo:a"]
    assert set(names[2:]) == {"claude-code", "codex", "gemini", "opencode", "qwen"}


def test_fresh_reads_every_meter_now(cli: Cli) -> None:
    meter(cli, "a", five=20, week=30)
    assert row(cli, "echo:a")["usedPct"] == 30
    meter(cli, "a", five=20, week=31)
    rows = facts(cli, "pools", "--fresh", key="pools")["pools"]
    assert {r["pool"]: r["usedPct"] for r in rows}["echo:a"] == 31


def test_a_paused_pool_takes_no_work_until_it_is_resumed(cli: Cli) -> None:
    assert facts(cli, "pools", "pause", "echo:a", key="pools pause")["until"] is None
    assert not row(cli, "echo:a")["eligible"] and "paused" in row(cli, "echo:a")["state"]
    assert cli.run("--json").json["pick"]["pool"] == "echo:b"
    resumed = facts(cli, "pools", "resume", "echo:a", key="pools resume")
    assert resumed == {"pool": "echo:a", "paused": False, "wasPaused": True}
    assert row(cli, "echo:a")["eligible"]
    assert not facts(cli, "pools", "resume", "echo:a", key="pools resume")["wasPaused"]


@pytest.mark.parametrize(
    ("text", "hours"), [("2h", 2.0), ("90m", 1.5), ("3d", 72.0), ("1.5H", 1.5)], ids=str
)
def test_a_pause_until(cli: Cli, text: str, hours: float) -> None:
    told = facts(cli, "pools", "pause", "echo:a", "--until", text, key="pools pause")
    until = datetime.fromisoformat(told["until"])
    assert abs((until - datetime.now(UTC)).total_seconds() - hours * 3600) < 30
    assert f"paused until {until:%Y-%m-%d %H:%M}" in row(cli, "echo:a")["state"]


def test_a_pause_until_a_moment_is_over_then(cli: Cli) -> None:
    until = datetime.now(UTC) + timedelta(seconds=2.5)
    assert cli("pools", "pause", "echo:a", "--until", until.isoformat()).code == 0
    assert not row(cli, "echo:a")["eligible"]
    time.sleep(max(0.0, (until - datetime.now(UTC)).total_seconds()) + 0.1)
    assert row(cli, "echo:a")["eligible"]


def test_a_bench_is_seen_and_lifted_by_hand(cli: Cli) -> None:
    cli.script("a", f"limit-event five_hour {int(time.time()) + 3600}")
    assert cli.run("--pool", "echo:a").code == 1
    benched = row(cli, "echo:a")
    assert not benched["eligible"] and benched["state"].startswith("quarantined (quota) until")
    [bench] = items(benched, "quarantines")
    assert (bench["kind"], bench["family"]) == ("quota", None) and bench["reason"]
    assert facts(cli, "pools", "release", "echo:a", key="pools release")["lifted"] == 1
    assert row(cli, "echo:a")["eligible"]
    assert facts(cli, "pools", "release", "echo:a", key="pools release")["lifted"] == 0


def test_a_home_without_any_pool_says_what_to_do(cli: Cli) -> None:
    """None that can work, or none at all."""
    names = ("echo", "claude-code", "codex", "opencode", "gemini", "qwen")
    for off in (names[:1], names):
        cli.configure(providers={name: {"enabled": False} for name in off})
        out = cli("pools")
        assert out.code == 0 and "install an agent CLI" in out.stderr
        assert "bullswarm demo" in out.stderr
    assert out.stdout == ""
    refused = cli.run()
    assert refused.code == 1 and "no pool" in refused.stdout


# records


def test_runs_and_explain(cli: Cli) -> None:
    meter(cli, "a", five=20, week=30)
    first = cli.run("--json").json
    second = cli.run("--json", "--retries", "0", prompt="echo: empty").json
    rows = items(facts(cli, "runs"), "runs")
    assert [(r["runId"], r["state"]) for r in rows] == [
        (second["runId"], "failed"),
        (first["runId"], "ok"),
    ]
    assert rows[1]["verdict"] == first
    assert len(facts(cli, "runs", "--limit", "1", key="runs")["runs"]) == 1
    for name in (first["runId"], first["shortId"]):
        told = facts(cli, "explain", name, key="explain")
        [decision] = items(told, "decisions")
        assert decision["same"] and decision["replayedPool"] == first["pick"]["pool"]
        items(decision["decision"], "candidates")
        assert decision["decision"]["reason"] == first["reason"]
    words = cli("explain", first["shortId"])
    assert words.code == 0
    assert "replayed from its snapshot: the same pick (echo:a)" in words.stdout
    assert f"{first['shortId']}" in cli("runs").stdout


def test_explain_shows_one_attempt_of_several(cli: Cli) -> None:
    verdict = cli.run("--json", prompt="echo: error the model gave up").json
    name = verdict["shortId"]
    assert len(facts(cli, "explain", name, key="explain")["decisions"]) == 2
    [one] = facts(cli, "explain", name, "--attempt", "2", key="explain")["decisions"]
    assert one["decision"]["pool"] == verdict["attempts"][1]["pool"]
    out = cli("explain", name, "--attempt", "3")
    assert out.code == 1 and name in out.stderr


def test_a_replay_knows_nothing_of_what_came_later(cli: Cli) -> None:
    """Other readings, other settings, a pool that is gone: the same snapshot, the same pick."""
    meter(cli, "a", five=20, week=10)
    meter(cli, "b", five=20, week=50)
    verdicts = [
        cli.run("--json").json,
        cli.run("--json", "--hold").json,
        cli.run("--json", "--strategy", "prefer-order", "--prefer", "echo:b").json,
        cli.run("--json", "--avoid", "echo:b", "--caller", "echo:a").json,
        cli.run("--json", "--avoid", "echo").json,
    ]
    before = [facts(cli, "explain", v["runId"], key="explain") for v in verdicts]
    meter(cli, "a", five=99, week=100)
    cli("strategy", "set", "--strategy", "lowest-latency", "--inflight-penalty", "50")
    cli("strategy", "set-provider", "echo", "--disabled")
    after = [facts(cli, "explain", v["runId"], key="explain") for v in verdicts]
    assert after == before
    assert all(d["same"] for told in after for d in told["decisions"])
    picks = [told["decisions"][-1]["replayedPool"] for told in after]
    assert picks == ["echo:a", "echo:a", "echo:b", "echo:a", None]


@pytest.mark.parametrize("name", ["nothing", "../../etc", "%", "'; drop table runs; --"])
def test_explain_of_what_is_not_there(cli: Cli, name: str) -> None:
    out = cli("explain", name)
    assert out.code == 1 and "bullswarm runs" in out.stderr


@pytest.mark.parametrize("body", ["x", "{}", b"\xff", None], ids=str)
@pytest.mark.parametrize(
    ("table", "argv"),
    [
        ("runs", ("runs",)),
        ("decisions", ("explain", "RUN")),
        ("agents", ("assignments",)),
        ("agents", ("pools",)),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else v,
)
def test_a_row_that_makes_no_sense_is_named_with_a_way_out(
    cli: Cli, table: str, argv: tuple[str, ...], body: str | bytes | None
) -> None:
    name = cli.run("--json").json["runId"]
    file = cli.world.bull / "bullswarm.db"
    with sqlite3.connect(file) as db:
        if body is None:
            # A later version's way of writing things.
            body = b'[1, {"a": 2}]'
        db.execute("insert into agents values ('a', 'r', 'running', x'7b7d')")
        db.execute(f"update {table} set body = ?", (body,))
        if table != "agents":
            db.execute("delete from agents")
    out = cli(*(name if word == "RUN" else word for word in argv))
    assert out.code == 1 and out.stdout == ""
    assert str(file) in out.stderr and "Move it away" in out.stderr


def test_runs_of_a_new_home(cli: Cli) -> None:
    assert facts(cli, "runs") == {"runs": []}
    assert "no runs yet" in cli("runs").stdout


def test_health(cli: Cli) -> None:
    cli.run()
    report = facts(cli, "health")
    assert report["ok"] and report["home"] == str(cli.world.bull)
    items(report, "findings")
    [answer] = items(report, "answers")
    assert answer["ok"]
    assert "1 saved answers, 0 fail" in cli("health").stdout


def test_health_judges_saved_answers_again(cli: Cli) -> None:
    verdict = cli.run("--json").json
    Path(verdict["outFile"]).write_text("API Error: 401 invalid key")
    [answer] = items(facts(cli, "health"), "answers")
    assert not answer["ok"] and answer["path"] == verdict["outFile"]
    assert answer["path"] in cli("health").stdout
    for n in range(300):
        (cli.world.bull / "runs" / f"out-19990101-000{n:03}-aaaa.md").write_text("Old words.")
    assert len(facts(cli, "health")["answers"]) == 301
    assert len(facts(cli, "health", "--limit", "2", key="health")["answers"]) == 2


def test_health_names_an_open_home(cli: Cli) -> None:
    cli.world.bull.chmod(0o755)
    report = facts(cli, "health", code=1)
    [finding] = [f for f in report["findings"] if not f["ok"]]
    assert finding["what"] == "home" and "chmod 700" in finding["text"]
    out = cli("health")
    assert out.code == 1 and "!!" in out.stdout


# in flight


def test_assignments_of_a_quiet_home(cli: Cli) -> None:
    assert facts(cli, "assignments")["assignments"] == []
    assert cli("assignments").stdout == "nothing is running or waiting\n"


@pytest.mark.parametrize("by", ["id", "runId", "short"])
def test_what_runs_is_shown_and_can_be_cancelled(cli: Cli, by: str) -> None:
    process = cli.world.start("run", "--lane", "analyze", "--json", "echo: sleep 60")
    try:
        agent = _running(cli)
        assert agent["pool"] in ("echo:a", "echo:b") and agent["purpose"] == "echo: sleep 60"
        shown = cli("assignments").stdout
        assert agent["id"] in shown and "running" in shown
        assert row(cli, agent["pool"])["inflight"] == 1
        line = next(x for x in cli("pools").stdout.splitlines() if x.startswith(agent["pool"]))
        assert "inflight=1" in line
        name = agent["runId"].rpartition("-")[2] if by == "short" else agent[by]
        assert facts(cli, "cancel", name, key="cancel")["cancelled"] == [agent["id"]]
        out, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    verdict = json.loads(out)
    assert process.returncode == 1 and verdict["failureKind"] == "cancelled"
    assert not cli.world.alive()
    assert facts(cli, "assignments")["assignments"] == []
    assert facts(cli, "runs")["runs"][0]["state"] == "cancelled"


def test_cancel_kill_ends_what_hears_nothing(cli: Cli) -> None:
    prompt = "echo: write ready now\necho: deaf"
    process = cli.world.start("run", "--lane", "analyze", "--json", prompt)
    try:
        agent = _running(cli)
        while not (cli.world.work / "ready").exists() and process.poll() is None:
            time.sleep(0.05)
        # The next thing it does is to stop listening.
        time.sleep(0.5)
        began = time.monotonic()
        assert cli("cancel", "--kill", agent["id"]).code == 0
        process.communicate(timeout=30)
        assert time.monotonic() - began < 4
    finally:
        process.kill()
    assert not cli.world.alive()


def test_cancel_of_what_is_not_there(cli: Cli) -> None:
    assert facts(cli, "cancel", "nothing", code=1, key="cancel") == {"cancelled": []}
    assert "bullswarm assignments" in cli("cancel", "nothing").stdout


def _running(cli: Cli) -> dict[str, Any]:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        rows = facts(cli, "assignments")["assignments"]
        if rows and rows[0]["state"] == "running":
            [agent] = rows
            assert set(agent) == NAMES["assignments[]"]
            found: dict[str, Any] = agent
            return found
        time.sleep(0.05)
    raise AssertionError("nothing runs")


# strategy


def test_an_assignment_is_preferred_and_cleared(cli: Cli) -> None:
    told = facts(cli, "strategy", "assign", "echo:b", "--lane", "analyze", key="strategy assign")
    assert told["assignments"] == {"analyze": "echo:b"}
    assert cli.run("--dry-run", "--json").json["pool"] == "echo:b"
    assert "approved for analyze" in cli.run("--dry-run", "--json").json["reason"]
    cli("strategy", "assign", "echo:a", "--lane", "analyze", "--effort", "low")
    assert cli.run("--dry-run", "--json", "--effort", "low").json["pool"] == "echo:a"
    assert "analyze/low -> echo:a" in cli("strategy", "show").stdout
    argv = ("strategy", "clear-assignment", "--lane", "analyze")
    assert facts(cli, *argv, key="strategy clear-assignment") == {
        "assignments": {"analyze/low": "echo:a"},
        "was": True,
    }
    assert facts(cli, *argv, key="strategy clear-assignment")["was"] is False


def test_an_assignment_is_only_a_preference(cli: Cli) -> None:
    cli("strategy", "assign", "echo:b", "--lane", "analyze")
    cli("pools", "pause", "echo:b")
    assert cli.run("--dry-run", "--json").json["pool"] == "echo:a"


def test_what_an_operator_says_of_a_subscription(cli: Cli) -> None:
    meter(cli, "a", five=20, week=30)
    argv = ("strategy", "set-subscription", "echo:a")
    told = facts(
        cli,
        *argv,
        *("--quota-window", "monthly", "--resets-at", "2027-01-15T00:00:00Z"),
        *("--reserve", "20", "--cost-rank", "2.5", "--cap", "3", "--model", "echo-small"),
        key="strategy set-subscription",
    )
    assert told["subscription"] == {
        "quotaWindow": "monthly",
        "resetsAt": "2027-01-15T00:00:00Z",
        "reserve": 20.0,
        "costRank": 2.5,
        "cap": 3,
        "model": "echo-small",
        "enabled": None,
        "lanes": None,
        "capabilities": None,
    }
    assert "cost=2.5" in cli("pools").stdout
    cleared = facts(
        cli,
        *argv,
        *("--resets-at", "none", "--cap", "0", "--model", "none", "--quota-window", "weekly"),
        *("--reserve", "0"),
        key="strategy set-subscription",
    )["subscription"]
    assert (cleared["resetsAt"], cleared["cap"], cleared["model"]) == (None, None, None)
    assert cli(*argv, "--disabled").code == 0
    assert row(cli, "echo:a")["state"] == "disabled"
    assert cli(*argv, "--enabled").code == 0
    assert row(cli, "echo:a")["eligible"]


def test_a_declared_reset_paces_a_meter_without_dates(cli: Cli) -> None:
    cli.world.meter("a", {"minutes": 10080, "usedPct": 40})
    assert row(cli, "echo:a")["surplus"] is None
    past = (datetime.now(UTC) - timedelta(days=5)).isoformat()
    assert cli("strategy", "set-subscription", "echo:a", "--resets-at", past).code == 0
    found = row(cli, "echo:a")
    # Rolled forward by a week: two days from now.
    assert found["declaredReset"] and found["surplus"] == pytest.approx(500 / 7 - 40, abs=0.1)
    assert "declared-reset" in cli("pools").stdout


def test_a_reserve_counts_as_full(cli: Cli) -> None:
    meter(cli, "a", five=10, week=85)
    assert row(cli, "echo:a")["eligible"]
    cli("strategy", "set-subscription", "echo:a", "--reserve", "20")
    found = row(cli, "echo:a")
    assert not found["eligible"] and "20% kept in reserve" in found["state"]


def test_a_provider_is_switched_and_given_homes(cli: Cli) -> None:
    argv = ("strategy", "set-provider", "echo")
    more = cli.world.root / "echo" / "c"
    more.mkdir()
    told = facts(cli, *argv, "--home", str(more), key="strategy set-provider")
    assert len(told["settings"]["homes"]) == 3 and told["settings"]["enabled"] is True
    assert row(cli, "echo:c")["eligible"]
    assert cli(*argv, "--disabled").code == 0
    assert not [r for r in facts(cli, "pools")["pools"] if r["provider"] == "echo"]
    out = cli(*argv, "--enabled")
    assert out.stdout.startswith("echo: enabled=true, homes=")
    assert (
        "homes" not in facts(cli, *argv, "--home", "none", key="strategy set-provider")["settings"]
    )


def test_further_homes_join_a_table_of_named_ones(cli: Cli) -> None:
    folder = cli.world.root / "echo"
    named = {"own": {"path": str(folder / "a"), "env": {"ECHO_KEY": "sk-hidden"}}}
    cli.configure(providers={"echo": {"enabled": True, "homes": named}})
    (folder / "own").mkdir()
    for _ in range(2):
        assert cli("strategy", "set-provider", "echo", "--home", str(folder / "own")).code == 0
    kept = json.loads((cli.world.bull / "state.json").read_text())["providers"]["echo"]["homes"]
    assert kept == {**named, "own-2": str(folder / "own")}
    pools = [r["pool"] for r in facts(cli, "pools")["pools"] if r["provider"] == "echo"]
    assert sorted(pools) == ["echo:own", "echo:own-2"]


def test_variables_of_a_providers_workers_are_named_and_not_shown(cli: Cli) -> None:
    home = cli.world.root / "echo" / "a"
    one = {"path": str(home), "env": {"OTHER_KEY": "sk-hidden-2"}}
    cli.configure(providers={"echo": {"env": {"ECHO_KEY": "sk-hidden-1"}, "homes": {"one": one}}})
    for argv in (
        ("strategy", "show"),
        ("strategy", "show", "--json"),
        ("strategy", "set", "--depth-limit", "3", "--json"),
        ("strategy", "set-provider", "echo", "--enabled"),
        ("strategy", "set-provider", "echo", "--enabled", "--json"),
    ):
        out = cli(*argv)
        assert out.code == 0 and "sk-hidden" not in out.text
        if argv[:2] != ("strategy", "set"):
            assert "ECHO_KEY" in out.stdout and "OTHER_KEY" in out.stdout
    # They reach the worker all the same.
    assert "sk-hidden-1" in (cli.world.bull / "state.json").read_text()
    verdict = cli.run("--json", prompt="echo: env OTHER_KEY").json
    assert "sk-hidden-2" in Path(verdict["attempts"][0]["outFile"]).read_text()


def test_a_provider_is_given_its_binary(cli: Cli) -> None:
    fake = cli.world.root / "codex"
    fake.write_text("#!/bin/sh\n")
    argv = ("strategy", "set-provider", "codex", "--bin")
    assert cli(*argv, str(fake)).code == 0
    assert "is no program" in row(cli, "codex")["state"]
    fake.chmod(0o755)
    assert "is no program" not in row(cli, "codex")["state"]
    assert cli(*argv, "none").code == 0
    assert "not on PATH" in row(cli, "codex")["state"]


def test_every_default_can_be_set_and_is_shown(cli: Cli) -> None:
    shown = facts(cli, "strategy", "show")
    assert shown["config"]["inflightPenaltyPct"] == 3.0 and shown["config"]["depthLimit"] == 2
    assert shown["limits"]["mode"] == "quarantine" and shown["policy"]["strategy"] == "pace"
    told = facts(
        cli,
        *("strategy", "set", "--on-limit", "wait", "--strategy", "most-quota"),
        *("--prefer", "echo:b,codex", "--quota-ceiling", "70", "--admission", "hold"),
        *("--patience", "30", "--cap-per-pool", "6", "--tail-factor", "2", "--worker-cap", "9"),
        *("--inflight-penalty", "0", "--depth-limit", "3", "--caller-name", "claude"),
        key="strategy set",
    )["settings"]
    assert told["limits"]["mode"] == "wait"
    assert (told["policy"]["strategy"], told["policy"]["quotaCeiling"]) == ("most-quota", 70)
    assert told["policy"]["prefer"] == ["echo:b", "codex"]
    admission = told["admission"]
    assert (admission["mode"], admission["patienceMinutes"]) == ("hold", 30)
    assert (admission["capPerPool"], admission["tailFactor"]) == (6, 2)
    config = told["config"]
    assert (config["workerCap"], config["inflightPenaltyPct"]) == (9, 0)
    assert (config["depthLimit"], config["callerName"]) == (3, "claude-code")
    assert facts(cli, "strategy", "show") == told
    words = cli("strategy", "show").stdout
    for word in ("wait", "most-quota", "echo:b, codex", "30 min", "claude-code"):
        assert word in words
    again = facts(
        cli, "strategy", "set", "--caller-name", "none", "--prefer", "none", key="strategy set"
    )["settings"]
    assert again["config"]["callerName"] is None and again["policy"]["prefer"] == []


# provider


def test_providers_are_listed(cli: Cli) -> None:
    rows = {r["name"]: r for r in items(facts(cli, "provider", "list"), "providers")}
    assert set(rows) == {"claude-code", "codex", "opencode", "gemini", "qwen", "echo", "demo"}
    assert rows["echo"]["pools"] == ["echo:a", "echo:b"] and rows["echo"]["state"] == "ready"
    assert rows["demo"]["state"] == "off"


def test_a_scaffold_is_valid_as_it_is_and_found(cli: Cli) -> None:
    folder = Path(facts(cli, "provider", "scaffold", "mycli", key="provider scaffold")["folder"])
    assert folder == cli.world.bull / "providers" / "mycli" and list(folder.iterdir())
    argv = ("provider", "validate", "mycli")
    assert facts(cli, *argv, key="provider validate") == {"ok": True, "faults": []}
    assert cli("provider", "validate", str(folder)).code == 0
    rows = {r["name"]: r for r in facts(cli, "provider", "list")["providers"]}
    assert rows["mycli"]["origin"] == "home"


def test_a_broken_provider_is_reported_and_stops_nobody(cli: Cli) -> None:
    folder = cli.world.bull / "providers" / "broken"
    folder.mkdir(parents=True)
    (folder / "connector.json").write_text('{"name": "broken", "args": 3, "lanes": ["fly"]}')
    told = facts(cli, "provider", "validate", "broken", code=2, key="provider validate")
    assert not told["ok"] and len(told["faults"]) >= 2
    words = cli("provider", "validate", "broken").stdout
    assert "args" in words and "lanes" in words
    assert cli.run().code == 0
    out = cli("pools")
    assert out.code == 0 and "broken" in out.stderr
    # Asked for in JSON, the fault is in the document.
    [fault] = facts(cli, "pools")["faults"]
    assert fault["provider"] == "broken"


def test_a_probe(cli: Cli) -> None:
    meter(cli, "a", five=20, week=30)
    report = facts(cli, "provider", "probe", "echo:a", key="provider probe")
    assert report["ok"]
    texts = {f["what"]: f["text"] for f in items(report, "findings")}
    assert "30%" in texts["meter"]
    bad = facts(cli, "provider", "probe", "codex", code=1, key="provider probe")
    assert "not on PATH" in bad["findings"][0]["text"]
    assert cli("provider", "probe", "codex").stdout.startswith("!!")


# demo


def test_the_demo_runs_in_a_throwaway_home(cli: Cli) -> None:
    began = time.monotonic()
    told = facts(cli, "demo")
    assert time.monotonic() - began < 10
    assert told["verdict"]["ok"] and told["verdict"]["pick"]["pool"].startswith("demo-")
    assert told["decision"]["pool"] == told["verdict"]["pick"]["pool"]
    assert not Path(told["home"]).exists()
    assert facts(cli, "runs")["runs"] == []


def test_the_demo_can_be_kept_and_looked_at(cli: Cli) -> None:
    home = cli.world.root / "kept"
    out = cli("demo", "--keep", str(home), "--task", "Write a haiku into haiku.md")
    assert out.code == 0
    for word in ("bullswarm pools", "--dry-run", "ok on demo-", "surplus=", f"--home {home}"):
        assert word in out.stdout
    [run] = cli("--home", str(home), "runs", "--json").json["runs"]
    assert run["state"] == "ok" and run["purpose"] == "Write a haiku into haiku.md"


def test_the_pages_names_are_those_of_a_run(cli: Cli) -> None:
    verdict = cli.run("--json", prompt=SAY).json
    items(verdict, "attempts")
    items(verdict, "gates")
    assert set(cli.run("--dry-run", "--json").json) == NAMES["run --dry-run"]


def test_the_page_names_every_variable_of_ours() -> None:
    source = PAGE.parents[1] / "src" / "bullswarm"
    used = set()
    for file in source.rglob("*.py"):
        used |= set(re.findall(r"\bBULLSWARM_[A-Z_]+\b", file.read_text(encoding="utf-8")))
    page = PAGE.read_text(encoding="utf-8")
    assert {name for name in used if f"`{name}`" not in page} == set()
