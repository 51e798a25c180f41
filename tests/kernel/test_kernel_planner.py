"""An agent proposes the program: the same validation applies to it, and nothing else starts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kernelkit import ended, writes

from rig import World

GOAL = "1. one.txt says who made it"


def plan(*steps: dict[str, Any]) -> str:
    return json.dumps({"schemaVersion": 3, "goal": GOAL, "steps": list(steps)})


GOOD = plan(writes("one", requirements=["R1"], route={"use": ["echo:b"]}))
BAD = plan({"id": "one", "prompt": "x", "dependsOn": ["two"]})


def answers(world: World, *texts: str) -> None:
    """What the planner on echo:a says, one text an attempt; the last one again and again."""
    home = world.root / "echo" / "a"
    for n, text in enumerate(texts):
        following = home / f"script{min(n + 1, len(texts) - 1)}"
        lines = f"echo: run cp {following} {home}/script\necho: answer {text}\n"
        (home / f"script{n}").write_text(lines)
    (home / "script").write_text((home / "script0").read_text())


def orchestrate(world: World, *more: str) -> Any:
    return world.bullswarm(
        "workflow", "run", "--orchestrator", "echo:a", "--goal", GOAL, "--json", *more
    )


def tasks(world: World) -> list[str]:
    found = sorted((world.bull / "runs").glob("task-*"), key=lambda p: p.stat().st_mtime_ns)
    return [path.read_text() for path in found]


def test_a_proposed_program_runs_like_any_other(world: World) -> None:
    world.echo("a", "b")
    answers(world, f"Here it is: {GOOD}")
    ran = orchestrate(world)
    assert ran.code == 0, ran.stderr
    end = ended(world, ran.json["runId"])
    assert end["state"] == "completed" and end["steps"][0]["attempts"][0]["pool"] == "echo:b"
    [told] = tasks(world)
    assert GOAL in told and '"$defs"' in told, "it is told the goal and the schema"


def test_a_refused_proposal_is_told_its_faults_once(world: World) -> None:
    world.echo("a", "b")
    answers(world, BAD, GOOD)
    ran = orchestrate(world, "--dry-run")
    assert ran.code == 0, ran.stderr
    assert ran.json["program"]["steps"][0]["id"] == "one"
    first, second = tasks(world)
    assert "there is no step 'two'" in second and "there is no step 'two'" not in first
    assert not world.bullswarm("workflow", "runs", "--json").json["runs"]


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [(BAD, 2, "there is no step 'two'"), ("I would rather not plan anything here.", 1, "JSON")],
)
def test_a_planner_that_never_gets_it_right_starts_nothing(
    world: World, text: str, code: int, words: str
) -> None:
    world.echo("a")
    answers(world, text)
    ran = orchestrate(world)
    assert ran.code == code and words in ran.stdout + ran.stderr
    assert len(tasks(world)) == 2
    assert not world.bullswarm("workflow", "runs", "--json").json["runs"]


def test_a_scout_surveys_first_and_its_survey_is_told_to_the_planner(world: World) -> None:
    world.echo("a", "b")
    answers(world, "There is a parser in src, and tests beside it.", GOOD)
    ran = orchestrate(world, "--scout", "--dry-run")
    assert ran.code == 0, ran.stderr
    scout, planner = tasks(world)
    assert "Survey this folder" in scout and GOAL in scout
    assert "There is a parser in src" in planner


def test_auto_lets_the_router_choose_the_planner(world: World) -> None:
    world.echo("a")
    answers(world, plan(writes("one")))
    ran = world.bullswarm(
        *("workflow", "run", "--orchestrator", "auto", "--goal", GOAL, "--json", "--dry-run")
    )
    assert ran.code == 0, ran.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--orchestrator", "auto"), "--goal"),
        (("--orchestrator", "auto", "--goal", "@nowhere.md"), "nowhere.md"),
        (("--orchestrator", "auto", "--goal", "  "), "--goal"),
        (("--orchestrator", "ehco:a", "--goal", GOAL), "echo:a"),
        (("--scout",), "--orchestrator"),
        (("--scout", "program.json"), "--orchestrator"),
        (("--goal", GOAL, "program.json"), "--orchestrator"),
        ((), "program"),
        (("--orchestrator", "auto", "--goal", GOAL, "program.json"), "program"),
    ],
)
def test_what_makes_no_sense_together_is_refused(
    world: World, args: tuple[str, ...], words: str
) -> None:
    world.echo("a")
    (world.work / "program.json").write_text(plan(writes("one")))
    ran = world.bullswarm("workflow", "run", *args)
    assert ran.code == 2 and words in ran.stderr, (ran.code, ran.stderr)
    assert not tasks(world)
