"""Whole programs through the real kernel process, with echo workers."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

import pytest
from kernelkit import result, run, start, step_of, wait_for, writes

from rig import World


def test_a_graph_runs_to_its_end_and_its_labels_are_exact(world: World) -> None:
    world.echo("a", "b")
    end = run(
        world,
        writes("one", evidence=[{"type": "command", "command": "grep -q made one.txt"}]),
        writes("two", "one"),
        {
            "id": "three",
            "role": "investigate",
            "prompt": 'echo: answer {"found": 3}',
            "answerSchema": {"type": "object", "required": ["found"]},
        },
        {
            "id": "four",
            "role": "produce",
            "prompt": 'echo: write four.json {"n": 1}\necho: answer It is written down now.',
            "deliverable": {"type": "data", "paths": ["four.json"]},
            "evidence": [
                {
                    "type": "schema",
                    "file": "four.json",
                    "schema": {"type": "object", "properties": {"n": {"type": "integer"}}},
                }
            ],
        },
    )
    assert end["state"] == "completed" and end["ended"]
    labels = {s["id"]: s["label"] for s in end["steps"]}
    assert labels == {
        "one": "proven by command",
        "two": "finished · unproven",
        "three": "answer checked",
        "four": "proven by schema",
    }
    assert end["counts"]["done"] == end["counts"]["total"] == 4
    assert (world.work / "two.txt").read_text().strip() == "made by two"


def test_a_failed_check_is_told_to_the_same_pool_once_then_to_the_caller(world: World) -> None:
    world.echo("a")
    end = run(
        world,
        writes("one", evidence=[{"type": "command", "command": "echo nothing here; exit 3"}]),
        writes("two", "one"),
        writes("three"),
    )
    assert end["state"] == "partial"
    one = step_of(end, "one")
    assert one["status"] == "needs-caller" and one["failureKind"] == "evidence"
    assert len(one["attempts"]) == 2
    assert "nothing here" in one["tail"]
    assert one["waiting"] == ["two"]
    commands = [option["command"] for option in one["options"]]
    assert any("step rerun" in c for c in commands) and any("step accept" in c for c in commands)
    assert step_of(end, "two")["status"] == "blocked"
    assert step_of(end, "three")["status"] == "done"
    second = max(world.bull.glob("workflows/*/attempts/task-*-one.md"), key=os.path.getmtime)
    assert "nothing here" in second.read_text()


def test_accepting_and_rerunning_open_an_ended_run_again(world: World) -> None:
    world.echo("a")
    marker = world.work / "ready"
    run_id = start(
        world,
        writes("one", evidence=[{"type": "command", "command": f"test -e {marker}"}]),
        writes("two", "one"),
    )
    wait_for(lambda: result(world, run_id)["ended"])
    marker.touch()
    again = world.bullswarm("workflow", "step", "rerun", run_id, "one", "--reason", "it is ready")
    assert again.code == 0, again.stderr
    wait_for(lambda: result(world, run_id)["state"] == "completed")
    document = result(world, run_id)
    assert step_of(document, "one")["label"] == "proven by command"
    assert len(step_of(document, "one")["attempts"]) == 3


def test_accept_is_a_choice_and_never_proof(world: World) -> None:
    world.echo("a")
    run_id = start(
        world,
        writes("one", evidence=[{"type": "command", "command": "exit 1"}]),
        writes("two", "one"),
    )
    wait_for(lambda: result(world, run_id)["ended"])
    done = world.bullswarm("workflow", "step", "accept", run_id, "one", "--reason", "good enough")
    assert done.code == 0, done.stderr
    wait_for(lambda: result(world, run_id)["state"] == "completed")
    document = result(world, run_id)
    assert document["verified"] is False
    assert step_of(document, "one")["status"] == "accepted"
    assert step_of(document, "one")["accepted"] == "good enough"
    assert "proven" not in (step_of(document, "one")["label"] or "")


def review(passed: bool) -> dict[str, Any]:
    answer = {"requirements": [{"id": "R1", "pass": passed, "reason": "one.txt was looked at"}]}
    return {
        "id": "look",
        "role": "check",
        "dependsOn": ["one"],
        "evidenceFor": ["R1"],
        "prompt": f"echo: answer {json.dumps(answer)}",
    }


GOAL = "1. one.txt says who made it"


def test_a_review_that_passes_proves_what_it_judged(world: World) -> None:
    world.echo("a", "b")
    end = run(world, writes("one", requirements=["R1"]), review(True), goal=GOAL)
    assert end["state"] == "completed" and end["verified"] is True, end
    assert step_of(end, "one")["label"] == "proven by review"


def test_a_failed_review_gets_one_fix_and_one_more_review(world: World) -> None:
    world.echo("a", "b")
    for name in ("a", "b"):
        # Whoever fixes changes something, and says so.
        script = "echo: append notes.txt more\necho: say I changed notes.txt as the review asked.\n"
        (world.root / "echo" / name / "script").write_text(script)
    end = run(
        world,
        writes("one", requirements=["R1"]),
        review(False),
        goal=GOAL,
        options={"verifyRounds": 1},
    )
    assert end["state"] == "partial" and end["verified"] is False
    generated = [s for s in end["steps"] if s["generatedFor"] == "look"]
    assert len(generated) == 2, [s["id"] for s in end["steps"]]
    fix, again = generated
    assert fix["status"] == "done" and len(fix["attempts"]) == 1
    assert len(again["attempts"]) == 1
    assert step_of(end, "look")["status"] == "needs-caller"


def test_pause_resume_and_cancel(world: World) -> None:
    world.echo("a")
    slow = {"id": "slow", "role": "investigate", "prompt": "echo: sleep 30\necho: answer Slept."}
    run_id = start(world, slow, writes("two", "slow"))
    wait_for(lambda: world.alive())
    paused = world.bullswarm("workflow", "pause", run_id, "--now")
    assert paused.code == 0, paused.stderr
    wait_for(lambda: not world.alive())
    assert result(world, run_id)["state"] == "paused"
    assert world.bullswarm("workflow", "resume", run_id).code == 0
    wait_for(lambda: world.alive())
    cancelled = world.bullswarm("workflow", "cancel", run_id)
    assert cancelled.code == 0, cancelled.stderr
    wait_for(lambda: result(world, run_id)["state"] == "cancelled")
    wait_for(lambda: not world.alive())
    counts = result(world, run_id)["counts"]
    assert counts["cancelled"] == 2 and counts["total"] == 2


def test_a_plan_is_revised_while_it_runs_and_an_old_revision_is_refused(world: World) -> None:
    world.echo("a")
    slow = {"id": "slow", "role": "investigate", "prompt": "echo: sleep 3\necho: answer Slept."}
    run_id = start(world, slow)
    changes = world.root / "changes.json"
    changes.write_text(json.dumps({"add": [writes("extra", "slow")]}))
    args = ("workflow", "plan", "revise", run_id, str(changes), "--base-revision", "1")
    wait_for(lambda: world.alive())
    assert world.bullswarm(*args).code == 0
    refused = world.bullswarm(*args)
    assert refused.code != 0 and "revision" in refused.stderr
    wait_for(lambda: result(world, run_id)["state"] == "completed")
    assert (world.work / "extra.txt").exists()
    exported = world.bullswarm("workflow", "plan", "export", run_id)
    assert "extra" in exported.stdout


def test_a_step_with_its_own_workspace_is_merged_back(world: World) -> None:
    world.echo("a")
    end = run(world, writes("one", workspace="own"), writes("two", workspace="own"))
    assert end["state"] == "completed", end
    assert (world.work / "one.txt").exists() and (world.work / "two.txt").exists()
    assert not list(world.bull.glob("workflows/*/worktrees/*"))
    assert "bullswarm" not in world.git("branch", "--list")


def test_a_merge_conflict_is_a_failed_gate_and_nothing_is_lost(world: World) -> None:
    world.echo("a")
    (world.work / "same.txt").write_text("first\n")
    world.git("add", "-A")
    world.git("commit", "-q", "-m", "base")
    clash = {
        "id": "mine",
        "prompt": "echo: sleep 2\necho: write same.txt mine\necho: answer I changed same.txt here.",
        "deliverable": {"type": "files", "paths": ["same.txt"]},
        "workspace": "own",
    }
    run_id = start(world, clash)
    wait_for(lambda: world.alive())
    (world.work / "same.txt").write_text("theirs\n")
    world.git("commit", "-q", "-a", "-m", "theirs")
    wait_for(lambda: result(world, run_id)["ended"], 60)
    document = result(world, run_id)
    assert document["state"] == "partial"
    assert step_of(document, "mine")["failureKind"] == "merge-conflict"
    assert (world.work / "same.txt").read_text() == "theirs\n"
    kept = list(world.bull.glob("workflows/*/worktrees/mine/same.txt"))
    assert kept and kept[0].read_text().strip() == "mine"
    doctor = world.bullswarm("workflow", "doctor")
    assert "mine" in doctor.stdout and doctor.code == 1


def test_a_limit_moves_the_step_and_spends_no_retry(world: World) -> None:
    world.echo("a", "b")
    until = int(time.time()) + 3600
    (world.root / "echo" / "a" / "script").write_text(f"echo: limit-event five_hour {until}\n")
    end = run(world, *[writes(f"s{i}") for i in range(6)], options={"concurrency": 2})
    assert end["state"] == "completed", end
    ended = [a for s in end["steps"] for a in s["attempts"]]
    on_a = [a for a in ended if a["pool"] == "echo:a"]
    assert 1 <= len(on_a) <= 2, "one proof of a limit stops new work on that pool"
    assert all(a.get("failureKind") == "quota" for a in on_a)


def test_two_resumes_at_once_one_carries_the_run(world: World) -> None:
    world.echo("a")
    slow = {"id": "slow", "role": "investigate", "prompt": "echo: sleep 4\necho: answer Slept."}
    run_id = start(world, slow)
    folder = world.bull / "workflows" / run_id
    wait_for(lambda: world.alive())
    os.kill(int((folder / "kernel.lock").read_text()), signal.SIGKILL)
    both = [world.start("workflow", "resume", run_id, "--json") for _ in range(2)]
    outs = [p.communicate(timeout=60) for p in both]
    assert all(out for out, _ in outs), outs
    said = [json.loads(out) for out, _ in outs]
    assert sorted(s["started"] for s in said) in ([False, True], [True, True]), said
    wait_for(lambda: result(world, run_id)["state"] == "completed")
    assert len(step_of(result(world, run_id), "slow")["attempts"]) == 1
    spawned = list((folder / "attempts").glob("pid-*"))
    assert len(spawned) == 1


@pytest.mark.parametrize("bad", ["{", '{"schemaVersion": 3, "steps": [{"id": "a b"}]}'])
def test_a_bad_program_is_refused_before_anything_starts(world: World, bad: str) -> None:
    path = world.root / "bad.json"
    path.write_text(bad)
    ran = world.bullswarm("workflow", "run", str(path))
    assert ran.code == 2
    assert not list((world.bull / "workflows").glob("*"))
