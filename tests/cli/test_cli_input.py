"""Bad input: exit 2, the field and what would be right are named, and nothing is started."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from clikit import SAY, Cli

RUN = ("run", "--lane", "analyze")
SET = ("strategy", "set")
SUB = ("strategy", "set-subscription", "echo:a")

BAD: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    (("run", SAY), ("--lane", "analyze", "build", "chore")),
    (("run", "--lane", "bild", SAY), ("--lane", "bild", "build")),
    ((*RUN, ""), ("prompt", "empty")),
    ((*RUN, " \n "), ("prompt", "empty")),
    (RUN, ("prompt", "empty")),
    ((*RUN, "one", "two"), ("two",)),
    ((*RUN, "--file", "task.md", SAY), ("--file", "not both")),
    ((*RUN, "--file", "nowhere.md"), ("--file", "nowhere.md")),
    ((*RUN, "--file", "."), ("--file",)),
    ((*RUN, "--cwd", "nowhere", SAY), ("cwd", "nowhere", "folder")),
    ((*RUN, "--cwd", "", SAY), ("--cwd", "empty")),
    ((*RUN, "--pool", "nope", SAY), ("nope", "echo:a", "echo:b")),
    ((*RUN, "--pool", "", SAY), ("--pool", "empty")),
    ((*RUN, "--pool", "echo", SAY), ("echo", "echo:a")),
    ((*RUN, "--use", "nope", SAY), ("use", "nope", "echo:a")),
    ((*RUN, "--avoid", "nope", SAY), ("avoid", "nope", "echo:a")),
    ((*RUN, "--model", " ", SAY), ("--model", "empty")),
    ((*RUN, "--effort", "", SAY), ("--effort", "empty")),
    ((*RUN, "--capability", "", SAY), ("--capability", "empty")),
    ((*RUN, "--caller", "nope", SAY), ("--caller", "nope", "echo:a")),
    ((*RUN, "--caller", "echo:a", "--no-caller", SAY), ("--caller", "--no-caller")),
    ((*RUN, "--strategy", "fastest", SAY), ("--strategy", "pace", "prefer-order")),
    ((*RUN, "--prefer", "nope", SAY), ("--prefer", "nope", "echo:a")),
    ((*RUN, "--prefer", " , ", SAY), ("--prefer",)),
    ((*RUN, "--quota-ceiling", "101", SAY), ("--quota-ceiling", "0<=x<=100")),
    ((*RUN, "--quota-ceiling", "nan", SAY), ("--quota-ceiling", "nan")),
    ((*RUN, "--latency", "quick", SAY), ("--latency", "fast", "slow")),
    ((*RUN, "--on-limit", "give-up", SAY), ("--on-limit", "reroute", "return", "wait")),
    ((*RUN, "--patience", "5", "--no-hold", SAY), ("--patience", "--no-hold")),
    ((*RUN, "--patience", "-1", SAY), ("--patience",)),
    ((*RUN, "--patience", "inf", SAY), ("--patience", "inf")),
    ((*RUN, "--timeout", "0", SAY), ("--timeout", "0")),
    ((*RUN, "--timeout", "nan", SAY), ("--timeout", "nan")),
    ((*RUN, "--timeout", "inf", SAY), ("--timeout", "inf")),
    ((*RUN, "--timeout", "soon", SAY), ("--timeout", "soon")),
    ((*RUN, "--silence", "-3", SAY), ("--silence",)),
    ((*RUN, "--heartbeat", "0.1", SAY), ("--heartbeat",)),
    ((*RUN, "--retries", "9", SAY), ("--retries", "0<=x<=5")),
    ((*RUN, "--answer-schema", "nowhere.json", SAY), ("answer schema", "nowhere.json")),
    ((*RUN, "--answer-schema", "broken.json", SAY), ("answer schema", "broken.json")),
    ((*RUN, "--answer-schema", "wrong.json", SAY), ("wrong.json", "$.type", "objekt")),
    ((*RUN, "--deliverable", "../x", SAY), ("deliverable", "../x", "outside")),
    ((*RUN, "--deliverable", "/etc/hosts", SAY), ("deliverable", "/etc/hosts")),
    ((*RUN, "--permission-mode", "plan", SAY), ("permission mode", "--pool")),
    (("pools", "--lane", "bild"), ("--lane", "bild")),
    (("pools", "pause"), ("POOL",)),
    (("pools", "pause", "nope"), ("nope", "echo:a")),
    (("pools", "pause", "echo:a", "--until", "later"), ("--until", "later", "2h")),
    (("pools", "pause", "echo:a", "--until", "2020-01-01"), ("--until", "future")),
    (("pools", "pause", "echo:a", "--until", "0m"), ("--until", "future")),
    (("pools", "pause", "echo:a", "--until", "999999999999d"), ("--until", "too far")),
    (("pools", "pause", "echo:a", "--until", "²h"), ("--until", "²h")),
    (("pools", "resume", "nope"), ("nope", "echo:a")),
    (("pools", "release", "nope"), ("nope", "echo:a")),
    (("cancel",), ("ID",)),
    (("cancel", ""), ("ID", "empty")),
    (("explain",), ("RUN",)),
    (("explain", "x", "--attempt", "0"), ("--attempt", "1")),
    (("runs", "--limit", "0"), ("--limit",)),
    (("runs", "--limit", "many"), ("--limit", "many")),
    (("health", "--limit", "0"), ("--limit",)),
    (("strategy", "assign", "nope", "--lane", "build"), ("nope", "echo:a")),
    (("strategy", "assign", "echo:a"), ("--lane", "--effort")),
    (("strategy", "assign", "echo:a", "--lane", "all"), ("--lane", "analyze")),
    (("strategy", "clear-assignment"), ("--lane", "--effort")),
    (SUB, ("--reserve", "--resets-at")),
    (("strategy", "set-subscription", "nope", "--cap", "1"), ("nope", "echo:a")),
    ((*SUB, "--quota-window", "daily"), ("--quota-window", "weekly", "monthly")),
    ((*SUB, "--resets-at", "tomorrow"), ("--resets-at", "tomorrow", "ISO")),
    ((*SUB, "--resets-at", "0001-01-01T00:00:00+14:00"), ("--resets-at", "ISO")),
    ((*SUB, "--reserve", "120"), ("--reserve", "0<=x<=100")),
    ((*SUB, "--cost-rank", "-1"), ("--cost-rank",)),
    ((*SUB, "--cost-rank", "nan"), ("--cost-rank", "nan")),
    ((*SUB, "--cap", "-1"), ("--cap",)),
    ((*SUB, "--cap", "5000"), ("--cap", "1000")),
    (("strategy", "set-provider", "nope", "--disabled"), ("nope", "echo", "codex")),
    (("strategy", "set-provider", "echo"), ("--enabled", "--bin", "--home")),
    (("strategy", "set-provider", "echo", "--home", "nowhere"), ("--home", "nowhere")),
    (("strategy", "set-provider", "echo", "--home", ""), ("--home", "empty")),
    (SET, ("--help",)),
    ((*SET, "--on-limit", "panic"), ("--on-limit", "quarantine", "return", "wait")),
    ((*SET, "--strategy", "best"), ("--strategy", "most-quota")),
    ((*SET, "--prefer", "nope"), ("--prefer", "nope", "echo:a")),
    ((*SET, "--prefer", ","), ("--prefer",)),
    ((*SET, "--quota-ceiling", "-1"), ("--quota-ceiling",)),
    ((*SET, "--admission", "maybe"), ("--admission", "off", "hold")),
    ((*SET, "--patience", "nan"), ("--patience", "nan")),
    ((*SET, "--cap-per-pool", "0"), ("--cap-per-pool",)),
    ((*SET, "--tail-factor", "-1"), ("--tail-factor",)),
    ((*SET, "--worker-cap", "0"), ("--worker-cap",)),
    ((*SET, "--inflight-penalty", "101"), ("--inflight-penalty", "100")),
    ((*SET, "--depth-limit", "17"), ("--depth-limit", "16")),
    ((*SET, "--caller-name", "nope"), ("--caller-name", "nope", "echo:a")),
    (("provider", "probe", "nope"), ("nope", "echo:a")),
    (("provider", "validate", "nowhere"), ("nowhere", "scaffold")),
    (("provider", "scaffold", "../up"), ("name", "../up", "lower case")),
    (("provider", "scaffold", "echo:x"), ("name", "echo:x")),
    (("provider", "scaffold", "codex"), ("name", "codex", "built in")),
    (("demo", "--keep", "full"), ("--keep", "full", "empty")),
    (("demo", "--keep", ""), ("--keep", "empty")),
]


def schemas(work: Path) -> None:
    (work / "task.md").write_text("Explain the parser.")
    (work / "broken.json").write_text("{")
    (work / "wrong.json").write_text('{"type": "objekt"}')
    (work / "full").mkdir()
    (work / "full" / "a").write_text("a")


def started(cli: Cli) -> int:
    """Rows that tell of a run, an agent or a decision."""
    file = cli.world.bull / "bullswarm.db"
    if not file.exists():
        return 0
    with sqlite3.connect(file) as db:
        tables = [
            name
            for (name,) in db.execute("select name from sqlite_master where type = 'table'")
            if name in ("runs", "agents", "decisions")
        ]
        assert not tables or len(tables) == 3, tables
        return sum(db.execute(f"select count(*) from {t}").fetchone()[0] for t in tables)


@pytest.mark.parametrize(("argv", "said"), BAD, ids=[" ".join(a).strip() for a, _ in BAD])
def test_bad_input_is_named_and_starts_nothing(
    cli: Cli, argv: tuple[str, ...], said: tuple[str, ...]
) -> None:
    schemas(cli.world.work)
    before = cli.settled()
    for more in ((), ("--json",)):
        out = cli(*argv, *more)
        assert out.code == 2, out.text
        assert out.stdout == ""
        for word in said:
            assert word in out.stderr, out.stderr
        assert "Traceback" not in out.stderr
    assert cli.settled() == before
    assert started(cli) == 0


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ('{"limits": {"mode": "panic"}}', ("limits.mode", "quarantine, return, wait", "panic")),
        ('{"config": {"inflightPenaltyPct": -1}}', ("config.inflightPenaltyPct", "0 to 100")),
        ('{"config": {"colour": "red"}}', ("config.colour", "no setting", "depthLimit")),
        ('{"paused": {"echo:a": {"until": "soon"}}}', ("paused.echo:a.until", "zone")),
        ("[]", ("the file", "object")),
    ],
)
@pytest.mark.parametrize(
    "verb", [("pools",), ("run", "--lane", "analyze", SAY)], ids=lambda v: v[0]
)
def test_a_setting_that_is_wrong_is_named_and_the_file_left_alone(
    cli: Cli, verb: tuple[str, ...], document: str, said: tuple[str, ...]
) -> None:
    file = cli.world.bull / "state.json"
    file.write_text(document)
    out = cli(*verb)
    assert out.code == 2 and "state.json" in out.stderr
    for word in said:
        assert word in out.stderr
    assert file.read_text() == document


@pytest.mark.parametrize("damage", ['{"config": {', "\x00\x00", '{"a": "\udcff"}', "nonsense"])
def test_a_damaged_state_file_is_named_and_survives(cli: Cli, damage: str) -> None:
    file = cli.world.bull / "state.json"
    data = damage.encode("utf-8", "surrogateescape")
    file.write_bytes(data)
    for argv in (
        ["pools"],
        ["strategy", "set", "--on-limit", "wait"],
        ["pools", "pause", "echo:a"],
        ["run", "--lane", "analyze", SAY],
        ["assignments"],
        ["provider", "list"],
    ):
        out = cli(*argv)
        if argv == ["assignments"]:
            # What is in flight is no setting: it can be seen, whatever the file says.
            assert out.code == 0
            continue
        assert out.code == 1, (argv, out.text)
        assert str(file) in out.stderr and "damaged" in out.stderr and "mend it" in out.stderr
    health = cli("health", "--json")
    assert health.code == 1
    assert any(f["what"] == "settings" and not f["ok"] for f in health.json["findings"])
    assert file.read_bytes() == data


def test_an_empty_state_file_means_the_defaults(cli: Cli) -> None:
    (cli.world.bull / "state.json").write_text("")
    assert cli("strategy", "show", "--json").json["limits"]["mode"] == "quarantine"


def test_a_home_that_is_a_file_is_named(cli: Cli) -> None:
    file = cli.world.root / "file"
    file.write_text("x")
    out = cli("--home", str(file), "pools")
    assert out.code == 1 and str(file) in out.stderr and "--home" in out.stderr
    out = cli("--home", str(file / "deeper"), "pools")
    assert out.code == 1 and "BULLSWARM_HOME" in out.stderr
    assert file.read_text() == "x"


def test_an_empty_home_is_a_mistake_not_a_choice(cli: Cli) -> None:
    out = cli("--home", "", "pools")
    assert out.code == 2 and "--home" in out.stderr
    assert not (cli.world.home / ".bullswarm").exists()


def test_the_prompt_comes_from_a_file_or_stdin(cli: Cli) -> None:
    task = cli.world.work / "task.md"
    task.write_text("Explain.\n" + SAY)
    for out in (
        cli(*RUN, "--json", "--file", "task.md"),
        cli(*RUN, "--json", "--file", "-", stdin=SAY),
        cli(*RUN, "--json", "-", stdin=SAY),
        cli(*RUN, "--json", stdin=SAY),
        cli(*RUN, "--json", stdin=b"\xff\xfe odd bytes\n" + SAY.encode()),
    ):
        assert out.code == 0, out.text
        verdict = out.json
        assert Path(verdict["outFile"]).read_text().startswith("The parser reads tokens")


def test_json_never_mixes_with_words(cli: Cli) -> None:
    """stdout is one document; whatever else there is to say goes to stderr."""
    out = cli(*RUN, "--json", "--heartbeat", "1", SAY)
    assert json.loads(out.stdout)["ok"] is True
