"""What goes wrong around a run: clear words, nothing lost, and it can be resumed."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from kernelkit import (
    ended,
    folder_of,
    kernel_pid,
    program,
    result,
    run,
    slow,
    start,
    step_of,
    wait_for,
    writes,
)

from rig import World


def own(name: str, does: str, path: str = "same.txt") -> dict[str, Any]:
    return {
        "id": name,
        "prompt": f"{does}\necho: answer I changed what I was asked to change.",
        "deliverable": {"type": "files", "paths": [path]},
        "workspace": "own",
    }


def conflict(world: World) -> str:
    """A run that ended with a worktree that could not be merged; its id."""
    world.echo("a")
    (world.work / "same.txt").write_text("first\n")
    world.git("add", "-A")
    world.git("commit", "-q", "-m", "base")
    lines = "echo: sleep 1\necho: write same.txt mine"
    run_id = start(world, own("mine", lines), writes("after", "mine"))
    wait_for(lambda: world.alive())
    (world.work / "same.txt").write_text("theirs\n")
    world.git("commit", "-q", "-a", "-m", "theirs")
    ended(world, run_id, 40)
    return run_id


def test_a_conflict_is_settled_by_hand_with_the_commands_that_are_shown(world: World) -> None:
    run_id = conflict(world)
    shown = world.bullswarm("workflow", "show", run_id).stdout
    assert "CONFLICT" in shown and "waiting on it: after" in shown and "kept " in shown
    accept = ("workflow", "step", "accept", run_id, "mine", "--reason", "as it is")
    assert world.bullswarm(*accept).code == 0
    # It still does not merge, so it comes back and nothing is lost.
    document = wait_for(lambda: _needs(world, run_id, "mine"))
    assert step_of(document, "mine")["failureKind"] == "merge-conflict"
    [by_hand] = [o for o in step_of(document, "mine")["options"] if "by hand" in o["label"]]
    words = by_hand["command"].split()
    assert words[:2] == ["git", "merge"]
    world.git("merge", "-q", "-X", "theirs", "-m", "settled", words[2])
    assert world.bullswarm(*accept).code == 0
    document = ended(world, run_id)
    assert document["state"] == "completed" and not document["worktrees"]
    assert (world.work / "same.txt").read_text().strip() == "mine"
    assert "bullswarm/" not in world.git("branch", "--list") + world.git("worktree", "list")


def test_the_same_worker_may_settle_its_conflict_once_told_of_it(world: World) -> None:
    world.echo("a")
    (world.work / "same.txt").write_text("first\n")
    world.git("add", "-A")
    world.git("commit", "-q", "-m", "base")
    who = "git -c user.name=w -c user.email=w@localhost"
    theirs = f"$(git -C {world.work} rev-parse HEAD)"
    # The first time it has merged before there is anything of theirs.
    merged, go = world.root / "merged", world.root / "go"
    does = (
        "echo: write same.txt mine\n"
        f"echo: run git add -A; {who} commit -qm mine; {who} merge -q -X ours -m ok {theirs}\n"
        f"echo: run touch {merged}; while [ ! -e {go} ]; do sleep 0.05; done"
    )
    run_id = start(world, own("mine", does))
    wait_for(merged.exists)
    (world.work / "same.txt").write_text("theirs\n")
    world.git("commit", "-q", "-a", "-m", "theirs")
    go.touch()
    document = ended(world, run_id)
    mine = step_of(document, "mine")
    assert document["state"] == "completed" and len(mine["attempts"]) == 2
    assert (world.work / "same.txt").read_text() == "mine\n"
    tasks = [t.read_text() for t in (folder_of(world, run_id) / "attempts").glob("task-*")]
    [told] = [text for text in tasks if "CONFLICT" in text]
    assert len(tasks) == 2 and "'git merge " in told


def _needs(world: World, run_id: str, name: str) -> Any:
    document = result(world, run_id)
    found = document["ended"] and step_of(document, name)["status"] == "needs-caller"
    return document if found else None


def test_work_that_was_not_merged_outlives_its_run_until_it_is_thrown_away(world: World) -> None:
    world.echo("a", "b")
    run_id = start(
        world,
        own("full", "echo: write x.txt half\necho: sleep 30", "x.txt"),
        own("idle", "echo: sleep 30", "y.txt"),
    )
    trees = folder_of(world, run_id) / "worktrees"
    wait_for(lambda: (trees / "full" / "x.txt").exists() and (trees / "idle").exists())
    assert world.bullswarm("workflow", "cancel", run_id).code == 0
    document = ended(world, run_id)
    [kept] = wait_for(lambda: result(world, run_id)["worktrees"])
    assert kept["path"] == str(trees / "full") and "not committed" in kept["why"]
    assert not (trees / "idle").exists() and document["state"] == "cancelled"
    doctor = world.bullswarm("workflow", "doctor")
    assert doctor.code == 1 and kept["path"] in doctor.stdout
    refused = world.bullswarm("workflow", "delete", run_id)
    assert refused.code == 1 and "--discard" in refused.stderr
    assert (trees / "full" / "x.txt").exists()
    assert world.bullswarm("workflow", "delete", run_id, "--discard").code == 0
    assert not folder_of(world, run_id).exists()
    assert "bullswarm/" not in world.git("branch", "--list") + world.git("worktree", "list")


def test_doctor_removes_what_a_crash_left_of_a_merged_worktree(world: World) -> None:
    world.echo("a")
    end = run(world, own("one", "echo: write x.txt made", "x.txt"))
    assert end["state"] == "completed"
    world.git("branch", f"bullswarm/{end['runId']}/one")
    world.git("branch", "bullswarm/mine")
    doctor = world.bullswarm("workflow", "doctor")
    assert doctor.code == 0, doctor.stdout
    branches = world.git("branch", "--list", "bullswarm/*")
    assert branches.split() == ["bullswarm/mine"]


def test_a_merge_waits_for_another_git_whoever_it_belongs_to(world: World) -> None:
    world.echo("a")
    lock = world.work / ".git" / "index.lock"
    lines = f"echo: write x.txt made\necho: run touch {lock}"
    run_id = start(world, own("one", lines, "x.txt"))
    wait_for(lambda: step_of(result(world, run_id), "one")["status"] == "merging")
    branch = f"bullswarm/{run_id}/one"
    wait_for(lambda: "made" in _log(world, branch))
    lock.unlink()
    document = ended(world, run_id)
    assert document["state"] == "completed"
    assert len(step_of(document, "one")["attempts"]) == 1
    assert (world.work / "x.txt").read_text() == "made\n"


def _log(world: World, branch: str) -> str:
    try:
        return world.git("show", f"{branch}:x.txt")
    except subprocess.CalledProcessError:
        return ""


def test_a_worktree_is_merged_whatever_the_repository_says_of_commits(world: World) -> None:
    world.echo("a")
    (world.work / ".gitignore").write_text("out/\n")
    world.git("add", "-A")
    world.git("commit", "-q", "-m", "base")
    world.git("config", "commit.gpgSign", "true")
    hook = world.work / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    end = run(world, own("one", "echo: write out/made.txt by one", "out/made.txt"))
    assert end["state"] == "completed", end
    assert (world.work / "out" / "made.txt").read_text() == "by one\n"


def test_git_that_refuses_fails_the_step_and_not_the_kernel(world: World) -> None:
    world.echo("a")
    shutil.rmtree(world.work / ".git")
    end = run(world, own("one", "echo: write same.txt x"), slow("two", 0))
    one = step_of(end, "one")
    assert one["status"] == "needs-caller" and "git repository" in one["why"]
    assert step_of(end, "two")["status"] == "done"


def test_a_full_disk_ends_the_kernel_with_a_reason_and_the_run_goes_on_later(world: World) -> None:
    world.echo("a", "b")
    run_id = start(world, slow("one", 2.5), writes("two", "one"))
    wait_for(lambda: world.alive())
    kernel = psutil.Process(kernel_pid(world, run_id))
    kernel.rlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    wait_for(lambda: not _lives(kernel.pid))
    shown = world.bullswarm("workflow", "show", run_id)
    assert "nobody carries this run (" in shown.stdout and f"resume {run_id}" in shown.stdout
    followed = world.bullswarm("workflow", "watch", run_id)
    assert followed.code == 1 and "nobody carries this run (" in followed.stderr
    assert world.bullswarm("workflow", "resume", run_id).code == 0
    document = ended(world, run_id)
    assert document["state"] == "completed", document
    assert len(step_of(document, "one")["attempts"]) == 1, "its worker was found again"


def test_a_folder_that_is_deleted_under_a_run_is_said_by_every_verb(world: World) -> None:
    world.echo("a")
    run_id = start(world, slow("one", 1), writes("two", "one"))
    pid = kernel_pid(world, run_id)
    wait_for(lambda: world.alive())
    wait_for(lambda: _removed(folder_of(world, run_id)))
    wait_for(lambda: not _lives(pid))
    for verb in ("show", "result", "watch", "pause", "cancel", "resume"):
        said = world.bullswarm("workflow", verb, run_id)
        assert said.code == 1 and "is gone" in said.stderr, (verb, said)
    assert not (world.work / "two.txt").exists()
    doctor = world.bullswarm("workflow", "doctor")
    assert doctor.code == 1 and f"workflow delete {run_id[-6:]}" in doctor.stdout
    assert world.bullswarm("workflow", "delete", run_id).code == 0
    assert world.bullswarm("workflow", "doctor").code == 0


def test_a_damaged_file_is_named_and_hides_no_other_run(world: World) -> None:
    world.echo("a")
    whole, hurt = (start(world, slow("one", 0)) for _ in range(2))
    for run_id in (whole, hurt):
        ended(world, run_id)
    folder = folder_of(world, hurt)
    for name in ("state.json", "events.jsonl"):
        kept = (folder / name).read_bytes()
        (folder / name).write_bytes(b"[1]\n")
        said = world.bullswarm("workflow", "watch", hurt)
        assert said.code == 1 and f"{name} is damaged" in said.stderr, said
        listed = world.bullswarm("workflow", "runs", "--json").json["runs"]
        assert {r["runId"]: r["phase"] for r in listed}[whole] == "completed"
        if name == "state.json":
            doctor = world.bullswarm("workflow", "doctor")
            assert doctor.code == 1 and "is damaged" in doctor.stdout
        (folder / name).write_bytes(kept)
    assert world.bullswarm("workflow", "watch", hurt).code == 0


def test_a_working_folder_that_is_gone_is_a_step_that_needs_you(world: World) -> None:
    world.echo("a")
    run_id = start(world, slow("one", 1), writes("two", "one"))
    wait_for(lambda: world.alive())
    world.work.rename(world.root / "moved")
    home = ("--home", str(world.bull))
    wait_for(lambda: (folder_of(world, run_id) / "result.json").exists())
    (world.root / "moved").rename(world.work)
    two = step_of(result(world, run_id), "two")
    assert two["status"] == "needs-caller" and "is gone" in two["why"]
    again = (*home, "workflow", "step", "rerun", run_id, "two", "--reason", "it is back")
    assert world.bullswarm(*again).code == 0
    assert ended(world, run_id)["state"] == "completed"


@pytest.mark.parametrize(
    ("url", "code", "words"),
    [
        ("mysql://me:secret@host/db", 2, "postgresql://"),
        ("postgresql://host", 2, "no database name"),
        ("postgresql://me:secret@127.0.0.1:1/none", 1, "refused"),
    ],
)
def test_a_database_that_can_not_be_is_refused(
    world: World, url: str, code: int, words: str
) -> None:
    world.echo("a")
    path = program(world, slow("one", 0))
    world.env["BULLSWARM_DATABASE_URL"] = url
    refused = world.bullswarm("workflow", "run", path)
    assert refused.code == code and words in refused.stderr, refused.stderr
    assert "secret" not in refused.stderr and "Traceback" not in refused.stderr
    del world.env["BULLSWARM_DATABASE_URL"]
    runs = world.bullswarm("workflow", "runs", "--json").json["runs"]
    assert len(runs) == (code == 1)
    if runs:
        assert world.bullswarm("workflow", "resume", runs[0]["runId"]).code == 0
        assert ended(world, runs[0]["runId"])["state"] == "completed"


def test_kernels_on_one_shared_database_keep_to_their_own_runs(world: World) -> None:
    world.echo("a", "b")
    shared = world.root / "shared.sqlite"
    world.env["BULLSWARM_DATABASE_URL"] = f"sqlite:///{shared}"
    runs = [start(world, slow("first", 4), slow("second", 0, "first")) for _ in range(2)]
    wait_for(lambda: len(world.alive()) >= 2)
    for run_id in runs:
        os.kill(kernel_pid(world, run_id), signal.SIGKILL)
    for run_id in runs:
        assert world.bullswarm("workflow", "resume", run_id).code == 0
    with sqlite3.connect(shared) as db:
        rows = db.execute("select workflow_uuid, queue_name from workflow_status").fetchall()
    # What is recovered without a queue of its own is anybody's.
    assert rows and all(name.partition("~")[0].partition(".")[0] in queue for name, queue in rows)
    for run_id in runs:
        document = ended(world, run_id)
        assert document["state"] == "completed"
        assert [len(s["attempts"]) for s in document["steps"]] == [1, 1]


def test_the_checks_of_a_dead_kernel_are_ended_before_they_run_again(world: World) -> None:
    world.echo("a")
    check = f"echo $$ >> {world.root}/checks; test -e {world.root}/free || sleep 300"
    run_id = start(world, writes("one", evidence=[{"type": "command", "command": check}]))
    first = int(wait_for(lambda: _read(world, "checks")))
    os.kill(kernel_pid(world, run_id), signal.SIGKILL)
    (world.root / "free").touch()
    assert _lives(first), "it outlives the kernel"
    assert world.bullswarm("workflow", "resume", run_id).code == 0
    assert ended(world, run_id)["state"] == "completed"
    assert not _lives(first)
    assert len(_read(world, "checks").split()) == 2


def _removed(folder: Path) -> bool:
    """Whether it is gone; its kernel may still be writing."""
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _read(world: World, name: str) -> str:
    path = world.root / name
    return path.read_text() if path.exists() else ""


def test_cancel_during_the_checks_ends_them_and_the_run(world: World) -> None:
    world.echo("a")
    check = f"echo $$ > {world.root}/checks; sleep 300"
    run_id = start(world, writes("one", evidence=[{"type": "command", "command": check}]))
    pid = int(wait_for(lambda: _read(world, "checks")))
    assert world.bullswarm("workflow", "cancel", run_id).code == 0
    document = ended(world, run_id)
    assert document["state"] == "cancelled" and document["counts"]["cancelled"] == 1
    assert not _lives(pid)


def test_the_common_cancel_ends_a_workflow_too(world: World) -> None:
    world.echo("a")
    run_id = start(world, slow("one", 60), writes("two", "one"))
    wait_for(lambda: world.alive())
    assert world.bullswarm("cancel", run_id).code == 0
    assert ended(world, run_id)["state"] == "cancelled"
    assert not world.alive()


def test_an_act_whose_kernel_dies_acts_once_and_one_that_nobody_saw_end_comes_back(
    world: World,
) -> None:
    world.echo("a", "b")
    lines = "echo: append sent.log once\necho: sleep 2\necho: answer I sent the message."
    act = {"id": "act", "role": "act", "deliverable": {"type": "outward"}, "prompt": lines}
    run_id = start(world, act)
    wait_for(lambda: (world.work / "sent.log").exists())
    os.kill(kernel_pid(world, run_id), signal.SIGKILL)
    assert world.bullswarm("workflow", "resume", run_id).code == 0
    assert ended(world, run_id)["state"] == "completed"
    assert (world.work / "sent.log").read_text() == "once\n"
    # Killed with everything around it, nobody knows whether it acted.
    lost = start(world, {**act, "prompt": lines.replace("sent", "other").replace("2", "60")})
    wait_for(lambda: (world.work / "other.log").exists())
    os.kill(kernel_pid(world, lost), signal.SIGKILL)
    for process in psutil.process_iter():
        try:
            if f"{lost}.act.1" in process.environ().get("BULLSWARM_ATTEMPT", "").split():
                process.kill()
        except psutil.Error:
            continue
    time.sleep(0.2)
    assert world.bullswarm("workflow", "resume", lost).code == 0
    document = ended(world, lost)
    step = step_of(document, "act")
    assert step["status"] == "needs-caller" and len(step["attempts"]) == 1
    assert (world.work / "other.log").read_text() == "once\n"
