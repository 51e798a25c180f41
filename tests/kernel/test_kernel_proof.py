"""Deliverables, evidence and reviews through the real kernel: what counts as proof."""

from __future__ import annotations

import json
import time
from typing import Any

from kernelkit import result, run, slow, start, step_of, wait_for, writes

from bullswarm.runs.app import App
from rig import World


def command(line: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": line, **more}


def test_what_failed_comes_back_with_its_reason(world: World) -> None:
    world.echo("a")
    (world.work / "untouched.txt").write_text("old")
    does = {
        "missing": "echo: write other.txt x",
        "empty": "echo: run : > empty.txt",
        "untouched": "echo: say I saw it.",
    }
    end = run(
        world,
        *[{**writes(n), "prompt": f"{d}\necho: answer I wrote {n}.txt."} for n, d in does.items()],
        writes("after", "missing"),
        writes("late", evidence=[command("echo begun; sleep 30; echo never", timeoutS=0.3)]),
        writes("loud", evidence=[command("seq 1 100000; exit 3")]),
        writes("sly", evidence=[command("echo better > sly.txt")]),
        writes("gone", evidence=[{"type": "schema", "file": "no.json", "schema": True}]),
        writes("fine"),
        {**slow("check", 0, "fine"), "role": "check", "route": {"independentOf": ["fine"]}},
        {
            "id": "act",
            "role": "act",
            "deliverable": {"type": "outward"},
            "prompt": "echo: append sent.log once\necho: error the network is down",
        },
        options={"concurrency": 12},
    )
    assert end["state"] == "partial"
    for name in does:
        step = step_of(end, name)
        assert step["failureKind"] == "not-produced" and step["label"] is None
        assert [a["pool"] for a in step["attempts"]] == ["echo:a", "echo:a"]
    assert step_of(end, "after")["status"] == "blocked"
    late, loud, sly, gone = (step_of(end, n) for n in ("late", "loud", "sly", "gone"))
    assert "timed out" in late["why"] and late["tail"].strip() == "begun"
    assert loud["tail"].endswith("99999\n100000\n") and len(loud["tail"]) <= 4000
    assert "changed the deliverable" in sly["why"] and "sly.txt" in sly["why"]
    assert "no.json is missing" in gone["why"]
    assert {s["failureKind"] for s in (late, loud, sly, gone)} == {"evidence"}
    check = step_of(end, "check")
    assert check["status"] == "needs-caller" and "echo" in check["why"], "nobody is independent"
    assert not any(a["started"] for a in check["attempts"])
    act = step_of(end, "act")
    assert act["status"] == "needs-caller" and len(act["attempts"]) == 1
    assert (world.work / "sent.log").read_text() == "once\n"
    assert "it may have acted already" in act["options"][0]["label"]


def test_schema_evidence_reads_the_answer_or_a_file_and_its_own_schema_file(world: World) -> None:
    world.echo("a")
    schema = {"$defs": {"n": {"type": "integer"}}, "properties": {"n": {"$ref": "#/$defs/n"}}}
    (world.work / "n.schema.json").write_text(json.dumps(schema))
    output = {"type": "schema", "file": "$output", "schema": "n.schema.json"}
    end = run(
        world,
        {**slow("good", 0), "prompt": 'echo: answer {"n": 3}', "evidence": [output]},
        {**slow("bad", 0), "prompt": 'echo: answer {"n": "three"}', "evidence": [output]},
    )
    assert step_of(end, "good")["label"] == "proven by schema"
    assert "$.n" in step_of(end, "bad")["tail"]


def test_a_schema_file_that_is_spoilt_meanwhile_stops_no_kernel(world: World) -> None:
    world.echo("a")
    (world.work / "answer.json").write_text('{"type": "object", "required": ["n"]}')
    end = run(
        world,
        {
            "id": "one",
            "role": "investigate",
            "answerSchema": "answer.json",
            "prompt": 'echo: run rm answer.json\necho: answer {"n": 1}',
        },
        {
            "id": "two",
            "role": "investigate",
            "dependsOn": ["one"],
            "answerSchema": "answer.json",
            "prompt": 'echo: answer {"n": 2}',
        },
    )
    assert step_of(end, "one")["label"] == "answer checked"
    two = step_of(end, "two")
    assert two["status"] == "needs-caller" and "answer.json" in two["why"]


GOAL = "1. one.txt says who made it"


def test_who_reviewed_is_recorded_and_a_pending_review_says_so(world: World) -> None:
    world.echo("a")
    verdict = {"requirements": [{"id": "R1", "pass": True, "reason": "it does"}]}
    look = {
        "id": "look",
        "evidenceFor": ["R1"],
        "prompt": f"echo: run touch looking\necho: sleep 2\necho: answer {json.dumps(verdict)}",
    }
    path = world.root / "program.json"
    steps = [writes("one", requirements=["R1"]), look]
    path.write_text(json.dumps({"schemaVersion": 3, "goal": GOAL, "steps": steps}))
    run_id = world.bullswarm("workflow", "run", str(path), "--json").json["runId"]
    wait_for(lambda: (world.work / "looking").exists())
    document = world.bullswarm("workflow", "result", run_id).json
    assert step_of(document, "one")["label"] == "review pending"
    assert document["requirements"][0]["standing"] == "unproven"
    followed = world.bullswarm("workflow", "watch", run_id, "--until", "completed", "--new")
    assert followed.code == 0 and "verified" in followed.stdout
    document = world.bullswarm("workflow", "result", run_id).json
    [said] = document["requirements"][0]["verdicts"]
    assert (said["review"], said["pool"], said["provider"]) == ("look", "echo:a", "echo")
    assert said["alsoWrote"] is True, "the only provider there is wrote it too"
    assert document["requirements"][0]["standing"] == "proven"


def test_no_more_steps_at_once_than_the_concurrency_and_meters_are_read_between(
    world: World,
) -> None:
    world.echo("a", "b")
    world.meter("a", {"minutes": 10080, "usedPct": 5, "resetsAt": "2999-01-01T00:00:00Z"})
    full = {"minutes": 10080, "usedPct": 100, "resetsAt": _later()}
    say = json.dumps({"windows": [full]})
    first = {
        **slow("first", 0),
        "route": {"use": ["echo:a"]},
        "prompt": f"echo: write {world.root}/echo/a/meter.json {say}\necho: answer It is full.",
    }
    rest = [slow(f"s{n}", 0.4, "first") for n in range(5)]
    end = run(world, first, *rest, args=("--concurrency", "2"))
    assert end["state"] == "completed"
    later = [a for s in end["steps"] if s["id"] != "first" for a in s["attempts"]]
    assert {a["pool"] for a in later} == {"echo:b"}, "a full meter keeps a pool out of every pick"
    spans = [(a["startedAt"], a["endedAt"]) for a in later]
    assert max(sum(s <= m < e for s, e in spans) for m, _ in spans) == 2


def _later() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 86400))


def test_a_quarantine_keeps_a_pool_out_of_the_next_dispatch(world: World) -> None:
    world.echo("a", "b")
    script = world.root / "echo" / "a" / "script"
    script.write_text(f"echo: limit-event five_hour {int(time.time()) + 3600}\n")
    one = world.bullswarm("run", "--lane", "analyze", "--json", "--pool", "echo:a", "echo: say x")
    assert one.json["failureKind"] == "quota"
    end = run(world, slow("one", 0), slow("two", 0, "one"))
    assert {a["pool"] for s in end["steps"] for a in s["attempts"]} == {"echo:b"}


def test_return_mode_hands_a_limit_to_the_caller(world: World) -> None:
    world.echo("a", "b")
    for name in "ab":
        script = world.root / "echo" / name / "script"
        script.write_text(f"echo: limit-event five_hour {int(time.time()) + 3600}\n")
    end = run(world, slow("one", 0), args=("--on-limit", "return"))
    one = step_of(end, "one")
    assert one["failureKind"] == "quota" and len(one["attempts"]) == 1
    app = App.open(str(world.bull))
    assert not app.store.quarantines(app.now()), "nothing is remembered of the pool"
    app.store.close()


def test_wait_mode_waits_for_the_reset_and_goes_on_with_the_session(world: World) -> None:
    world.echo("a")
    state = world.bull / "state.json"
    known = json.loads(state.read_text())
    known["limits"] = {"waitMarginSeconds": 0}
    state.write_text(json.dumps(known))
    script = world.root / "echo" / "a" / "script"
    script.write_text(f"echo: limit-event five_hour {int(time.time()) + 6}\n")
    run_id = start(world, slow("one", 0), slow("two", 0, "one"), options={"onLimit": "wait"})

    def waiting() -> Any:
        rows = world.bullswarm("assignments", "--json").json["assignments"]
        return next((row for row in rows if row["state"] == "held"), None)

    held = wait_for(waiting)
    assert "waiting for a reset" in held["why"] and held["until"]
    script.unlink()
    end = wait_for(lambda: (found := result(world, run_id))["ended"] and found)
    assert end["state"] == "completed"
    limited, done = step_of(end, "one")["attempts"]
    assert (limited["failureKind"], done["failureKind"]) == ("quota", None)
    assert {limited["pool"], done["pool"]} == {"echo:a"}
    assert limited["session"] and done["session"] == limited["session"]
    assert len(step_of(end, "two")["attempts"]) == 1, "a wait spends no retry of anybody"


def test_time_box_effort_model_and_route_reach_the_worker(world: World) -> None:
    world.echo("a", "b")
    end = run(
        world,
        {**slow("long", 60), "timeBox": 0.02},
        {
            **slow("small", 0),
            "model": "echo-small",
            "effort": "low",
            "route": {"use": ["echo:b"]},
        },
    )
    long, small = step_of(end, "long"), step_of(end, "small")
    assert long["status"] == "needs-caller" and "timed out after 1.2s" in long["why"]
    assert [a["pool"] for a in long["attempts"]] == ["echo:a", "echo:b"]
    assert small["attempts"][0]["model"] == "echo-small" and small["effort"] == "low"
    assert small["attempts"][0]["pool"] == "echo:b"


def test_a_stop_names_the_limit_that_caused_it(world: World) -> None:
    world.echo("a")
    end = run(world, writes("one"), writes("two", "one"), options={"maxAttempts": 1})
    assert end["state"] == "partial" and end["limit"] == "maxAttempts"
    assert "maxAttempts (1)" in end["why"] and end["counts"]["done"] == 1
    refused = world.bullswarm("workflow", "step", "rerun", end["runId"], "one", "--reason", "again")
    assert refused.code == 1 and "maxAttempts" in refused.stderr
    raised = world.root / "raised.json"
    raised.write_text(json.dumps({"options": {"maxAttempts": 5}}))
    done = world.bullswarm(
        "workflow", "plan", "revise", end["runId"], str(raised), "--base-revision", "1"
    )
    assert done.code == 0, done.stderr
    assert world.bullswarm("workflow", "watch", end["runId"]).code == 0
