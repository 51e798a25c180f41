"""Every workflow verb: its answers for people and programs, its exit codes, and bad input."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from kernelkit import (
    ended,
    events,
    folder_of,
    program,
    result,
    slow,
    start,
    step_of,
    wait_for,
    writes,
)

from rig import World


def failing(name: str = "one") -> dict[str, Any]:
    return writes(name, evidence=[{"type": "command", "command": "echo not yet; exit 1"}])


# words that are wrong


@pytest.mark.parametrize(
    "args",
    [
        ("watch",),
        ("show",),
        ("result",),
        ("pause",),
        ("resume",),
        ("cancel",),
        ("delete",),
        ("plan", "export"),
        ("step", "rerun"),
        ("step", "accept"),
        ("plan", "revise"),
    ],
    ids=" ".join,
)
def test_a_run_that_is_not_there_is_named_with_what_is(
    stopped_once: tuple[World, str], args: tuple[str, ...]
) -> None:
    world, run_id = stopped_once
    more = {"rerun": ["one", "--reason", "x"], "accept": ["one", "--reason", "x"]}
    rest = more.get(args[-1], ["changes.json"] if args[-1] == "revise" else [])
    short = run_id[-6:]
    typo = short[:-1] + ("x" if short[-1] != "x" else "y")
    said = world.bullswarm("workflow", *args, typo, *rest)
    assert said.code == 2 and f"did you mean '{short}'?" in said.stderr, said
    far = world.bullswarm("workflow", *args, "000", *rest)
    assert far.code == 2 and short in far.stderr


@pytest.fixture(scope="module")
def stopped_once(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from rig import Rig

    rig = Rig()
    world = World(tmp_path_factory.mktemp("stopped"), rig)
    world.echo("a")
    run_id = start(world, failing(), writes("two", "one"), slow("three", 0))
    ended(world, run_id)
    yield world, run_id
    rig.close()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("wach",), "Did you mean 'watch'?"),
        (("plan", "valdate"), "Did you mean 'validate'?"),
        (("step", "redo"), "There are: accept, rerun"),
        (("watch", "RUN", "--until", "later"), "attention"),
        (("watch", "RUN", "--timeout", "-1"), "--timeout"),
        (("runs", "--limit", "0"), "--limit"),
        (("step", "rerun", "RUN", "one"), "--reason"),
        (("step", "rerun", "RUN", "one", "--reason", " "), "empty"),
        (("step", "rerun", "RUN", "onne", "--reason", "x"), "did you mean 'one'?"),
        (("step", "accept", "RUN", "R1", "--reason", "x"), "no step or requirement 'R1'"),
        (("run", "program.json", "--concurrency", "0"), "--concurrency"),
        (("run", "program.json", "--verify-rounds", "4"), "--verify-rounds"),
        (("run", "program.json", "--on-limit", "pray"), "--on-limit"),
        (("run", "nowhere.yaml"), "nowhere.yaml"),
        (("run", "program.json", "--cwd", "nowhere"), "nowhere"),
        (("plan", "validate", "nowhere.json"), "nowhere.json"),
        (("run", "odd.json", "--concurrency", "2"), "$.options"),
        (("plan", "export", "RUN", "--yaml", "--json"), "not both"),
        (("plan", "revise", "RUN", "nowhere.json"), "nowhere.json"),
    ],
)
def test_bad_words_are_named_and_nothing_starts(
    stopped_once: tuple[World, str], args: tuple[str, ...], words: str
) -> None:
    world, run_id = stopped_once
    program(world, slow("one", 0))
    (world.work / "program.json").write_text((world.root / "program.json").read_text())
    odd = {"schemaVersion": 3, "options": [1], "steps": [slow("one", 0)]}
    (world.work / "odd.json").write_text(json.dumps(odd))
    before = len(events(world, run_id))
    said = world.bullswarm("workflow", *[run_id if a == "RUN" else a for a in args])
    assert said.code == 2 and words in said.stderr, said
    assert len(list((world.bull / "workflows").iterdir())) == 1
    assert len(events(world, run_id)) == before


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"add": []}, 2, "nothing is to be changed"),
        ({"add": [{"id": "four"}]}, 2, "prompt"),
        ({"add": [slow("four", 0, "nine")]}, 2, "'nine'"),
        ({"add": [writes("four"), writes("four")]}, 2, "used twice"),
        ({"amend": [{"id": "nine", "prompt": "x"}]}, 2, "no step 'nine'"),
        ({"amend": [{"id": "one", "promt": "x"}]}, 2, "did you mean 'prompt'?"),
        ({"amend": [{"prompt": "x"}]}, 2, "no step ''"),
        ({"amend": [{"id": "three", "prompt": "x"}]}, 2, "rerun"),
        ({"remove": ["nine"]}, 2, "no step 'nine'"),
        ({"remove": ["one"]}, 2, "'one'"),
        ({"rerun": ["two"]}, 2, "still to run"),
        ({"options": {"concurrency": 0}}, 2, "concurrency"),
        ({"frobnicate": 1}, 2, "unknown key frobnicate"),
        ({"add": "four"}, 2, "add"),
        ([1], 2, "must be an object"),
    ],
)
def test_a_bad_revision_is_refused_with_its_faults_and_changes_nothing(
    stopped_once: tuple[World, str], changes: Any, code: int, words: str
) -> None:
    world, run_id = stopped_once
    path = world.root / "changes.json"
    path.write_text(json.dumps(changes))
    said = world.bullswarm("workflow", "plan", "revise", run_id, str(path), "--base-revision", "1")
    assert said.code == code and words in said.stderr, said
    assert result(world, run_id)["revision"] == 1


def test_a_revision_needs_the_revision_it_was_made_on(stopped_once: tuple[World, str]) -> None:
    world, run_id = stopped_once
    path = world.root / "changes.json"
    path.write_text(json.dumps({"rerun": ["one"]}))
    said = world.bullswarm("workflow", "plan", "revise", run_id, str(path))
    assert said.code == 2 and "the plan is at revision 1" in said.stderr
    old = world.bullswarm(
        *("workflow", "plan", "revise", run_id, str(path), "--base-revision", "7", "--json")
    )
    assert (
        old.code == 2 and not old.json["ok"] and old.json["faults"][0]["path"] == "$.baseRevision"
    )


# what they answer


def test_runs_show_and_result_agree(stopped_once: tuple[World, str]) -> None:
    world, run_id = stopped_once
    [row] = world.bullswarm("workflow", "runs", "--json").json["runs"]
    assert (row["runId"], row["phase"], row["done"], row["steps"]) == (run_id, "partial", 1, 3)
    assert run_id[-6:] in world.bullswarm("workflow", "runs").stdout
    document = world.bullswarm("workflow", "result", run_id)
    assert document.code == 1 and document.json["resultVersion"] == 1
    shown = world.bullswarm("workflow", "show", run_id, "--json")
    assert shown.code == 0
    extra = {"carried", "folder"}
    assert {k: v for k, v in shown.json.items() if k not in extra} == document.json
    saved = json.loads((folder_of(world, run_id) / "result.json").read_text())
    assert saved == document.json
    counts = document.json["counts"]
    assert counts["total"] == sum(n for key, n in counts.items() if key != "total") == 3
    for step in document.json["steps"]:
        assert step.keys() == document.json["steps"][0].keys()
        for attempt in step["attempts"]:
            assert attempt.keys() == document.json["steps"][0]["attempts"][0].keys()


def test_the_words_for_people_say_why_what_waits_and_what_to_type(
    stopped_once: tuple[World, str],
) -> None:
    world, run_id = stopped_once
    summary = world.bullswarm("workflow", "result", run_id, "--summary")
    shown = world.bullswarm("workflow", "show", run_id)
    assert summary.code == 1 and shown.code == 0
    for text in (summary.stdout, shown.stdout):
        for words in ("partial", "not yet", "waiting on it: two", "the check exited 1"):
            assert words in text
        for option in step_of(result(world, run_id), "one")["options"]:
            assert option["command"] in text


def test_watch_gives_one_line_an_event(stopped_once: tuple[World, str]) -> None:
    world, run_id = stopped_once
    seen = world.bullswarm("workflow", "watch", run_id, "--json")
    lines = [json.loads(line) for line in seen.stdout.splitlines()]
    assert seen.code == 1
    assert [line["n"] for line in lines if "n" in line] == list(range(1, len(lines)))
    assert lines[-1]["end"]["state"] == "partial"
    told = world.bullswarm("workflow", "watch", run_id).stdout
    assert "one: started on echo:a" in told and "1 check(s) failed" in told
    new = world.bullswarm("workflow", "watch", run_id, "--new")
    assert "started" not in new.stdout and new.code == 1


def test_the_program_comes_back_as_it_was_written(stopped_once: tuple[World, str]) -> None:
    world, run_id = stopped_once
    given = json.loads((folder_of(world, run_id) / "program.json").read_text())
    assert world.bullswarm("workflow", "plan", "export", run_id, "--json").json == given
    text = world.bullswarm("workflow", "plan", "export", run_id, "--yaml").stdout
    valid = world.bullswarm("workflow", "plan", "validate", "-", "--json", stdin=text)
    assert valid.code == 0 and valid.json["ok"] and valid.json["advice"]


def test_validate_prints_every_fault_with_its_path(world: World) -> None:
    bad = {"schemaVersion": 3, "steps": [{"id": "a b", "prompt": 1, "dependsOn": ["c"]}, {}]}
    path = world.root / "bad.json"
    path.write_text(json.dumps(bad))
    said = world.bullswarm("workflow", "plan", "validate", str(path))
    assert said.code == 2
    for words in ("$.steps[0].id", "$.steps[0].prompt", "$.steps[0].dependsOn[0]", "$.steps[1]"):
        assert words in said.stderr
    asked = world.bullswarm("workflow", "plan", "validate", str(path), "--json")
    assert asked.code == 2 and len(asked.json["faults"]) == len(said.stderr.splitlines())
    ran = world.bullswarm("workflow", "run", str(path), "--json")
    assert ran.code == 2 and ran.json["faults"] == asked.json["faults"]


def test_the_contract_validates_in_an_editor_and_here(world: World) -> None:
    from jsonschema import Draft202012Validator

    goal = "1. The parser accepts tabs\n2. A test shows it"
    made = world.bullswarm("workflow", "plan", "contract", "--goal", goal).json
    published = Path("src/bullswarm/workflow/program.schema.json")
    schema = world.bullswarm("workflow", "plan", "contract", "--schema").json
    assert made["schema"] == schema
    if published.exists():
        assert json.loads(published.read_text()) == schema
    Draft202012Validator(schema).validate(made["example"])
    ran = world.bullswarm(
        *("workflow", "run", "-", "--dry-run", "--json"), stdin=json.dumps(made["example"])
    )
    assert ran.code == 0 and ran.json["program"]["goal"] == goal
    assert not world.bullswarm("workflow", "runs", "--json").json["runs"]


def test_a_pool_that_is_not_there_is_a_fault_with_its_path(world: World) -> None:
    world.echo("a")
    path = program(world, {**slow("one", 0), "route": {"use": ["ecko:a"], "avoid": ["nobody"]}})
    said = world.bullswarm("workflow", "run", path, "--json")
    assert said.code == 2
    paths = [fault["path"] for fault in said.json["faults"]]
    assert paths == ["$.steps[0].route.use[0]", "$.steps[0].route.avoid[0]"]
    assert "echo:a" in said.json["faults"][0]["fix"]


def test_yaml_from_stdin_runs_and_its_flags_win(world: World) -> None:
    world.echo("a")
    text = """
schemaVersion: 3
goal: look around
options: {concurrency: 9, onLimit: return}
steps:
  - id: one
    role: investigate
    prompt: |
      echo: answer I looked around in the folder.
"""
    ran = world.bullswarm(
        *("workflow", "run", "-", "--json", "--concurrency", "2", "--verify-rounds", "3"),
        *("--on-limit", "wait"),
        stdin=text,
    )
    assert ran.code == 0, ran.stderr
    assert ended(world, ran.json["runId"])["state"] == "completed"
    plan = world.bullswarm("workflow", "plan", "export", ran.json["shortId"]).json
    assert plan["options"] == {"concurrency": 2, "verifyRounds": 3, "onLimit": "wait"}


# steering


def obey(world: World, run_id: str, name: str, label: str) -> Any:
    """Type what a step's option says; the result after it."""
    options = step_of(result(world, run_id), name)["options"]
    [command] = [o["command"] for o in options if o["label"].startswith(label)]
    words = shlex.split(command)
    assert words[0] == "bullswarm"
    if "FILE" in words:
        changes = world.root / "changes.json"
        changes.write_text(json.dumps({"amend": [{"id": name, "evidence": []}]}))
        words[words.index("FILE")] = str(changes)
    said = world.bullswarm(*words[1:], "--json")
    assert said.code == 0 and said.json["ok"], said
    return wait_for(lambda: _settled(world, run_id))


def _settled(world: World, run_id: str) -> Any:
    document = result(world, run_id)
    last = events(world, run_id)[-1]["event"]
    return document if document["ended"] and last not in ("StepRerun", "PlanRevised") else None


def test_the_options_that_are_shown_work(world: World) -> None:
    world.echo("a")
    run_id = start(world, failing("one"), failing("two"), writes("three", "one", "two"))
    ended(world, run_id)
    document = obey(world, run_id, "one", "do it again")
    assert document["state"] == "partial" and len(step_of(document, "one")["attempts"]) == 4
    document = obey(world, run_id, "one", "change the plan")
    assert document["state"] == "partial" and document["revision"] == 2
    assert step_of(document, "one")["status"] == "done"
    document = obey(world, run_id, "two", "take the step")
    assert document["state"] == "completed" and not document["verified"]
    assert step_of(document, "two")["accepted"] == "WHY"
    assert (world.work / "three.txt").exists()


def test_a_failing_requirement_can_be_taken_by_the_command_that_is_shown(world: World) -> None:
    world.echo("a")
    verdict = {"requirements": [{"id": "R1", "pass": False, "reason": "it does not say who"}]}
    look = {"id": "look", "evidenceFor": ["R1"], "prompt": f"echo: answer {json.dumps(verdict)}"}
    path = world.root / "program.json"
    document = {
        "schemaVersion": 3,
        "goal": "1. one.txt says who made it",
        "options": {"verifyRounds": 0},
        "steps": [writes("one", requirements=["R1"]), look],
    }
    path.write_text(json.dumps(document))
    seen = world.bullswarm("workflow", "run", str(path), "--watch", "--json")
    end = json.loads(seen.stdout.splitlines()[-1])["end"]
    assert end["state"] == "partial" and end["requirements"][0]["standing"] == "failing"
    assert not [s for s in end["steps"] if s["generatedFor"]], "no rounds were asked for"
    options = step_of(end, "look")["options"]
    [command] = [o["command"] for o in options if o["label"].startswith("take R1")]
    assert world.bullswarm(*shlex.split(command)[1:]).code == 0
    document = wait_for(lambda: _settled(world, end["runId"]))
    assert document["state"] == "completed" and not document["verified"]
    assert document["requirements"][0]["standing"] == "choice"
    assert document["requirements"][0]["reason"] == "WHY"


def test_watch_tells_of_a_step_that_needs_you_and_stops_where_asked(world: World) -> None:
    world.echo("a")
    run_id = start(world, failing(), slow("long", 6))
    until = world.bullswarm("workflow", "watch", run_id, "--until", "attention")
    assert until.code == 1 and "one: needs-caller" in until.stdout
    assert not result(world, run_id)["ended"]
    nothing = world.bullswarm("workflow", "watch", run_id, "--new", "--timeout", "0.3")
    assert nothing.code == 1 and "time to watch is up" in nothing.stderr
    following = world.start("workflow", "watch", run_id)
    one = world.bullswarm("workflow", "watch", run_id, "--next")
    assert one.code == 0 and one.stdout.startswith(tuple("0123456789"))
    assert len(one.stdout.splitlines()) == 1 and "long: ok" in one.stdout
    out, _ = following.communicate(timeout=30)
    assert "one: needs you" in out and out.index("one: needs you") < out.index("long: ok")


def test_a_run_that_was_seen_to_end_is_listed_as_over(world: World) -> None:
    world.echo("a")
    seen = world.bullswarm("workflow", "run", program(world, writes("one")), "--watch")
    assert seen.code == 0
    (listed,) = world.bullswarm("runs", "--json").json["runs"]
    assert (listed["state"], listed["endedAt"] is None) == ("ok", False)


def test_pause_lets_workers_end_and_now_ends_them_without_a_retry_spent(world: World) -> None:
    world.echo("a")
    run_id = start(world, slow("one", 1.5), slow("two", 0, "one"))
    wait_for(lambda: world.alive())
    paused = world.bullswarm("workflow", "pause", run_id, "--json")
    assert paused.code == 0 and paused.json["ok"]
    wait_for(lambda: step_of(result(world, run_id), "one")["status"] == "done")
    assert step_of(result(world, run_id), "two")["status"] == "pending"
    assert world.bullswarm("workflow", "resume", run_id, "--json").json["ok"]
    assert ended(world, run_id)["state"] == "completed"
    again = world.bullswarm("workflow", "pause", run_id)
    assert again.code == 1 and "the run is completed" in again.stderr
    resumed = world.bullswarm("workflow", "resume", run_id, "--json")
    assert resumed.code == 1 and not resumed.json["ok"]
    cancelled = world.bullswarm("workflow", "cancel", run_id)
    assert cancelled.code == 1 and "the run is completed" in cancelled.stderr


def test_a_run_is_resumed_from_another_folder(world: World) -> None:
    world.echo("a")
    run_id = start(world, slow("one", 30), writes("two", "one"))
    wait_for(lambda: world.alive())
    assert world.bullswarm("workflow", "pause", run_id, "--now").code == 0
    wait_for(lambda: not world.alive())
    elsewhere = World(world.root / "elsewhere", world.rig)
    elsewhere.env = world.env
    changes = world.root / "changes.json"
    changes.write_text(json.dumps({"amend": [{**slow("one", 0), "id": "one"}]}))
    revise = ("workflow", "plan", "revise", run_id, str(changes), "--base-revision", "1")
    assert elsewhere.bullswarm(*revise).code == 0
    assert elsewhere.bullswarm("workflow", "resume", run_id).code == 0
    document = ended(world, run_id)
    assert document["state"] == "completed"
    assert [a["spent"] for a in step_of(document, "one")["attempts"]] == [False, True]
    assert (world.work / "two.txt").exists()


def test_delete_removes_a_run_that_is_over_and_no_other(world: World) -> None:
    world.echo("a")
    run_id = start(world, slow("one", 30))
    going = world.bullswarm("workflow", "delete", run_id)
    assert going.code == 1 and f"workflow cancel {run_id}" in going.stderr
    assert world.bullswarm("workflow", "cancel", run_id, "--kill", "--json").json["ok"]
    gone = world.bullswarm("workflow", "delete", run_id, "--json")
    assert gone.code == 0 and gone.json == {"deleted": run_id}
    assert not folder_of(world, run_id).exists()
    assert not world.bullswarm("workflow", "runs", "--json").json["runs"]
    assert world.bullswarm("workflow", "doctor", "--json").json["lines"] == []
