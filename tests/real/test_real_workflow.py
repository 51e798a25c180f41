"""One real program on the real claude and codex: a writer, a checker on the other provider,
evidence, and a limit in the middle."""

from __future__ import annotations

import json

from rig import Rig, Scene, World


def test_a_program_with_a_limit_in_the_middle(world: World, rig: Rig) -> None:
    first = world.claude(key="k-claude")
    world.codex(key="k-codex")
    # Claude writes the first file and then hits its window; Codex is there for the rest.
    rig.scenes["k-claude"] = Scene(
        "write",
        path=str(world.work / "greeting.txt"),
        text="I wrote greeting.txt with one line of greeting in it.",
        after=2,
        then=Scene("limit", reset_s=5400),
    )
    verdict = {"requirements": [{"id": "R1", "pass": True, "reason": "greeting.txt greets"}]}
    rig.scenes["k-codex"] = Scene(
        "write",
        path="notes.txt",
        content="notes on the greeting\n",
        text=json.dumps(verdict),
    )
    program = {
        "schemaVersion": 3,
        "goal": "1. greeting.txt greets the reader\n2. notes.txt describes it",
        "options": {"concurrency": 1},
        "steps": [
            {
                "id": "write",
                "prompt": "Write greeting.txt with a greeting.",
                "deliverable": {"type": "files", "paths": ["greeting.txt"]},
                "requirements": ["R1"],
                "route": {"use": ["claude"]},
                "evidence": [{"type": "command", "command": "grep -q hello greeting.txt"}],
            },
            {
                "id": "notes",
                "prompt": "Write notes.txt about greeting.txt.",
                "dependsOn": ["write"],
                "deliverable": {"type": "files", "paths": ["notes.txt"]},
                "requirements": ["R2"],
                "route": {"use": ["claude", "codex"]},
                "evidence": [{"type": "command", "command": "test -s notes.txt"}],
            },
            {
                "id": "check",
                "prompt": "Check greeting.txt against the requirements.",
                "role": "check",
                "dependsOn": ["write", "notes"],
                "evidenceFor": ["R1"],
                "route": {"independentOf": ["write"]},
            },
        ],
    }
    path = world.root / "program.json"
    path.write_text(json.dumps(program))
    world.bullswarm("strategy", "assign", "claude-code", "--lane", "build")
    ran = world.bullswarm("workflow", "run", str(path), "--watch", "--json", timeout=170)
    end = [json.loads(x)["end"] for x in ran.stdout.splitlines() if x.startswith('{"end"')][-1]
    assert end["state"] == "completed", json.dumps(end, indent=1)[-4000:]
    assert end["verified"] is True
    steps = {s["id"]: s for s in end["steps"]}
    assert steps["write"]["label"] == "proven by command"
    assert steps["write"]["attempts"][0]["provider"] == "claude-code"
    # The limit moved the second step, and spent none of its retries.
    tries = steps["notes"]["attempts"]
    assert [a["provider"] for a in tries] == ["claude-code", "codex"], tries
    assert tries[0]["failureKind"] == "quota"
    assert steps["notes"]["label"] == "proven by command"
    assert steps["check"]["attempts"][0]["provider"] == "codex"
    standing = {r["id"]: r for r in end["requirements"]}
    assert standing["R1"]["standing"] == "proven"
    pools = {p["pool"]: p for p in world.bullswarm("pools", "--json").json["pools"]}
    assert not pools[first]["eligible"]
    assert not world.alive()
