"""``run``: every flag, on echo pools."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from clikit import SAY, Cli, Out

VERDICT = {
    "ok",
    "keepOnClaude",
    "why",
    "failureKind",
    "pick",
    "contentUsableDespiteExit",
    "outFile",
    "taskFile",
    "streamFile",
    "runId",
    "shortId",
    "reason",
    "gates",
    "attempts",
    "changes",
    "answer",
    "exitCode",
    "wallS",
    "usage",
    "retryAt",
    "notes",
}
ROW = {
    "pace",
    "effectiveSurplus",
    "inflight",
    "projectedFiveHourPct",
    "forecastFiveHourPct",
    "ratePerMinute",
    "estimateSource",
    "forecastGated",
}


def done(out: Out, code: int = 0) -> dict[str, Any]:
    assert out.code == code, out.text
    verdict: dict[str, Any] = out.json
    assert set(verdict) == VERDICT
    assert verdict["ok"] is (code == 0)
    return verdict


def pool(verdict: dict[str, Any]) -> str:
    name: str = verdict["pick"]["pool"]
    return name


def test_a_verdict_of_a_good_run_has_every_field_and_its_files(cli: Cli) -> None:
    verdict = done(cli.run("--json"))
    assert verdict["why"] == "verified" and verdict["failureKind"] is None
    assert verdict["keepOnClaude"] is False and verdict["contentUsableDespiteExit"] is False
    stem = Path(verdict["outFile"]).name.removeprefix("out-").removesuffix(".md")
    runs = cli.world.bull / "runs"
    assert Path(verdict["taskFile"]) == runs / f"task-{stem}.md"
    assert Path(verdict["streamFile"]) == runs / f"stream-{stem}.jsonl"
    assert Path(verdict["taskFile"]).read_text() == SAY
    record = cli.world.bull / "workflows" / verdict["runId"]
    assert record.is_dir() and list(record.iterdir())
    assert [a["pool"] for a in verdict["attempts"]] == [pool(verdict)]


def test_the_words_of_a_good_run_begin_with_ok(cli: Cli) -> None:
    out = cli.run()
    assert out.code == 0
    assert out.stdout.startswith("ok on echo:")
    assert "verified" in out.stdout and "bullswarm explain" in out.stdout
    assert "routed:" in out.stderr


def test_a_run_that_is_not_ok_exits_1_and_says_why(cli: Cli) -> None:
    out = cli.run("--retries", "0", prompt="echo: empty")
    assert out.code == 1
    assert out.stdout.startswith("not ok [not-produced] on echo:")
    verdict = done(cli.run("--json", "--retries", "0", prompt="echo: empty"), 1)
    assert verdict["failureKind"] == "not-produced" and verdict["why"] != "verified"


def test_a_good_answer_before_a_bad_exit_is_never_ok_but_said_to_be_usable(cli: Cli) -> None:
    final = json.dumps({"type": "final", "text": SAY.removeprefix("echo: answer "), "turns": 1})
    verdict = done(cli.run("--json", prompt=f"echo: raw {final}\necho: exit 3"), 1)
    assert verdict["contentUsableDespiteExit"] is True
    assert verdict["exitCode"] == 3 and Path(verdict["outFile"]).read_text().startswith(
        "The parser"
    )


def test_quiet_says_nothing_on_stderr(cli: Cli) -> None:
    assert cli.run("--quiet").stderr == ""
    assert cli.run("-q").stderr == ""


def test_cwd_is_where_the_agent_works(cli: Cli) -> None:
    folder = cli.world.root / "elsewhere"
    folder.mkdir()
    out = cli.run(
        "--json", "--cwd", str(folder), lane="build", prompt="echo: write new.md words\n" + SAY
    )
    verdict = done(out)
    assert (folder / "new.md").exists() and not (cli.world.work / "new.md").exists()
    assert verdict["changes"]["created"] == ["new.md"]


def test_a_build_that_changes_nothing_is_not_produced(cli: Cli) -> None:
    verdict = done(cli.run("--json", "--retries", "0", lane="build"), 1)
    assert verdict["failureKind"] == "not-produced"


def test_a_pin_is_strict(cli: Cli) -> None:
    for name in ("echo:a", "echo:b"):
        assert pool(done(cli.run("--json", "--pool", name))) == name
    assert cli("pools", "pause", "echo:b").code == 0
    verdict = done(cli.run("--json", "--pool", "echo:b"), 1)
    assert verdict["failureKind"] == "unavailable" and "paused" in verdict["why"]
    assert not verdict["attempts"]


def test_use_and_avoid_narrow_the_choice(cli: Cli) -> None:
    assert pool(done(cli.run("--json", "--use", "echo:b"))) == "echo:b"
    assert pool(done(cli.run("--json", "--avoid", "echo:a"))) == "echo:b"
    assert pool(done(cli.run("--json", "--use", "echo", "--avoid", "echo:b"))) == "echo:a"
    verdict = done(cli.run("--json", "--avoid", "echo"), 1)
    assert verdict["failureKind"] == "unavailable"


def test_model_effort_and_permission_reach_the_cli(cli: Cli) -> None:
    verdict = done(
        cli.run(
            "--json",
            *("--pool", "echo:a", "--model", "echo-small"),
            *("--effort", "high", "--permission-mode", "plan"),
        )
    )
    words = verdict["pick"]["command"]
    for flag, value in (("--model", "echo-small"), ("--effort", "high"), ("--permission", "plan")):
        assert words[words.index(flag) + 1] == value
    assert verdict["pick"]["model"] == "echo-small" and verdict["pick"]["effort"] == "high"


def test_a_model_nobody_has_is_said_pool_by_pool(cli: Cli) -> None:
    verdict = done(cli.run("--json", "--use", "echo", "--model", "gpt-9"), 1)
    assert verdict["failureKind"] == "unavailable"
    assert "gpt-9 is not one of its models" in verdict["why"]


def test_a_capability_must_be_declared(cli: Cli) -> None:
    assert done(cli.run("--json", "--capability", "browser"), 1)["failureKind"] == "unavailable"
    cli.configure(subscriptions={"echo:b": {"capabilities": ["browser"]}})
    assert pool(done(cli.run("--json", "--capability", "browser"))) == "echo:b"


def test_the_strategies_are_there(cli: Cli) -> None:
    prefer = ("--strategy", "prefer-order", "--prefer", "echo:b,echo:a")
    assert pool(done(cli.run("--json", *prefer))) == "echo:b"
    for name, used in (("a", 90), ("b", 10)):
        cli.world.meter(name, {"minutes": 10080, "usedPct": used, "resetsAt": _in(3 * 86400)})
    assert pool(done(cli.run("--json", "--strategy", "most-quota"))) == "echo:b"
    prefer = ("--strategy", "prefer-order", "--prefer", "echo:a,echo:b")
    assert pool(done(cli.run("--json", *prefer, "--quota-ceiling", "95"))) == "echo:a"
    assert pool(done(cli.run("--json", *prefer, "--quota-ceiling", "80"))) == "echo:b"
    out = cli.run("--json", "--dry-run", *prefer, "--quota-ceiling", "5")
    assert out.json["pool"] == "echo:a" and out.json["note"]
    fast = done(cli.run("--json", "--strategy", "lowest-latency", "--latency", "fast"))
    assert fast["pick"]["model"] == "echo-small"


def test_a_domain_has_a_list_of_its_own(cli: Cli) -> None:
    cli.configure(policy={"domains": {"docs": ["echo:b", "echo:a"]}})
    order = ("--strategy", "prefer-order", "--prefer", "echo:a")
    assert pool(done(cli.run("--json", *order))) == "echo:a"
    assert pool(done(cli.run("--json", *order, "--domain", "docs"))) == "echo:b"


@pytest.mark.parametrize(
    ("mode", "tried", "code"),
    [
        ("quarantine", ["echo:a", "echo:b"], 0),
        ("reroute", ["echo:a", "echo:b"], 0),
        ("return", ["echo:a"], 1),
    ],
)
def test_on_limit(cli: Cli, mode: str, tried: list[str], code: int) -> None:
    cli.script("a", f"limit-event five_hour {int(time.time()) + 3600}")
    order = ("--strategy", "prefer-order", "--prefer", "echo:a,echo:b")
    verdict = done(cli.run("--json", "--on-limit", mode, *order), code)
    assert [a["pool"] for a in verdict["attempts"]] == tried
    assert verdict["attempts"][0]["failureKind"] == "quota"
    if mode == "return":
        assert verdict["failureKind"] == "quota" and verdict["retryAt"]
    benched = [r for r in cli("pools", "--json").json["pools"] if "quarantined" in r["state"]]
    assert [r["pool"] for r in benched] == ([] if mode == "return" else ["echo:a"])


@pytest.mark.parametrize("mode", ["quarantine", "reroute", "return", "wait"])
def test_a_limits_mode_has_the_same_words_for_one_run_and_for_all(cli: Cli, mode: str) -> None:
    cli("strategy", "set", "--on-limit", mode)
    kept = cli("strategy", "show", "--json").json["limits"]["mode"]
    assert kept == ("quarantine" if mode == "reroute" else mode)
    done(cli.run("--json", "--on-limit", mode))


def test_on_limit_wait_waits_for_the_reset_and_goes_on(cli: Cli) -> None:
    cli.configure(limits={"waitMarginSeconds": 0})
    script = cli.world.root / "echo" / "a" / "script"
    cli.script("a", f"run rm -f {script}", f"limit-event five_hour {int(time.time()) + 2}")
    verdict = done(cli.run("--json", "--on-limit", "wait", "--pool", "echo:a"))
    assert [a["pool"] for a in verdict["attempts"]] == ["echo:a", "echo:a"]
    first, second = verdict["attempts"]
    assert first["failureKind"] == "quota" and second["session"] == first["session"]


def test_a_hold_ends_with_its_patience(cli: Cli) -> None:
    for name in ("a", "b"):
        cli.world.meter(name, {"minutes": 300, "usedPct": 95, "resetsAt": _in(7200)})
    out = cli.run("--json", "--dry-run", "--hold")
    assert out.code == 0 and out.json["hold"]["until"] and out.json["pool"] is None
    began = time.monotonic()
    verdict = done(cli.run("--json", "--patience", "0.01"))
    assert 0.4 < time.monotonic() - began < 10 and verdict["attempts"]
    assert cli.run("--json", "--dry-run", "--no-hold").json["hold"] is None


def test_a_timeout_ends_the_attempt(cli: Cli) -> None:
    verdict = done(cli.run("--json", "--timeout", "0.5", "--retries", "0", prompt="echo: hang"), 1)
    assert verdict["failureKind"] == "stalled"
    assert verdict["attempts"][0]["endedBy"] == "timeout" and verdict["wallS"] < 10
    assert not cli.world.alive()


def test_silence_ends_the_attempt(cli: Cli) -> None:
    verdict = done(cli.run("--json", "--silence", "0.5", "--retries", "0", prompt="echo: hang"), 1)
    assert verdict["failureKind"] == "stalled" and verdict["attempts"][0]["endedBy"] == "stalled"


def test_a_heartbeat_tells_that_it_lives(cli: Cli) -> None:
    out = cli.run(
        "--heartbeat", "1", prompt="echo: tool Read src/parser.py\necho: sleep 1.4\n" + SAY
    )
    assert "heartbeat: echo:" in out.stderr and "last: Read" in out.stderr


def test_retries(cli: Cli) -> None:
    prompt = "echo: error the model gave up"
    assert len(done(cli.run("--json", "--retries", "0", prompt=prompt), 1)["attempts"]) == 1
    assert len(done(cli.run("--json", prompt=prompt), 1)["attempts"]) == 2


def test_a_typed_answer(cli: Cli) -> None:
    schema = cli.world.work / "schema.json"
    schema.write_text(json.dumps({"type": "object", "required": ["n"]}))
    good = cli.run("--json", "--answer-schema", "schema.json", prompt='echo: answer {"n": 3}')
    assert done(good)["answer"] == {"n": 3}
    bad = cli.run(
        *("--json", "--retries", "0", "--answer-schema", "schema.json"),
        prompt='echo: answer {"m": 3}',
    )
    assert done(bad, 1)["failureKind"] == "schema"


def test_a_declared_deliverable(cli: Cli) -> None:
    words = ("--json", "--retries", "0", "--deliverable", "docs/parser.md")
    good = cli.run(*words, lane="build", prompt="echo: write docs/parser.md words\n" + SAY)
    assert done(good)["changes"]["declared"] == [{"path": "docs/parser.md", "state": "new"}]
    bad = cli.run(*words, lane="build", prompt="echo: write docs/other.md words\n" + SAY)
    assert done(bad, 1)["failureKind"] == "not-produced"


def test_a_dry_run_registers_nothing_and_shows_every_number(cli: Cli) -> None:
    before = cli.settled()
    out = cli.run("--dry-run", "--json")
    assert out.code == 0 and out.json["pool"] == "echo:a"
    for row in out.json["candidates"]:
        assert set(row) >= ROW
    assert cli.settled() == before
    assert cli("runs", "--json").json["runs"] == []
    assert cli("assignments", "--json").json["assignments"] == []
    words = cli.run("--dry-run")
    assert words.stdout.startswith("echo:a\n") and "EFFECTIVE" in words.stdout
    nobody = cli.run("--dry-run", "--avoid", "echo")
    assert nobody.code == 1 and "no pool can take it" in nobody.stdout


def test_too_deep_is_refused_and_recorded(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLSWARM_DEPTH", "2")
    verdict = done(cli.run("--json"), 1)
    assert verdict["failureKind"] == "depth" and "depthLimit" in verdict["why"]
    assert not verdict["attempts"]
    cli.configure(config={"depthLimit": 3})
    done(cli.run("--json"))


def _in(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
