"""What a worker changed, in a repository and in a plain folder; and that looking changes
nothing."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from bullswarm.judge import Before, Changes, compare, snapshot, take
from bullswarm.judge import git as git_room

Work = Callable[[Path], object]


@pytest.fixture(autouse=True)
def plain_git(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of the person who runs the tests; and a repository named in the environment
    (as in a git hook) that must not be taken for ours."""
    home = tmp_path_factory.mktemp("home")
    config = "[user]\nname = T\nemail = t@example.com\n[init]\ndefaultBranch = main\n"
    (home / ".gitconfig").write_text(config + '[protocol "file"]\nallow = always\n')
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("BULLSWARM_HOME", raising=False)


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """One commit of a, b and sub/c; ``dirty`` and ``loose`` were changed before; ``*.log`` is
    ignored."""
    top = tmp_path / "repo"
    top.mkdir()
    git(top, "init", "-q")
    for name in ("a", "b", "dirty", "sub/c"):
        write(top / name, f"{name}\n")
    write(top / ".gitignore", "*.log\nout/\n")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "first")
    write(top / "dirty", "changed before\n")
    write(top / "loose", "untracked before\n")
    return top


def commit(folder: Path, message: str = "work") -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)


def after(folder: Path, work: Work) -> Changes:
    """The changes of ``work``, through the first look's stored form."""
    before = take(folder)
    stored = msgspec.json.decode(msgspec.json.encode(before), type=Before)
    assert stored == before
    work(folder)
    return compare(stored)


def shape(changes: Changes) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], int]:
    return (changes.created, changes.modified, changes.deleted, len(changes.commits))


def _hook(top: Path) -> None:
    write(top / "a", "2\n")
    git(top, "checkout", "-q", "-b", "feature")
    commit(top)
    git(top, "checkout", "-q", "main")


GIT_CASES: dict[str, tuple[Work, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], int]]] = {
    "nothing": (lambda r: None, ((), (), (), 0)),
    "a tracked file": (lambda r: write(r / "a", "2\n"), ((), ("a",), (), 0)),
    "a new file": (lambda r: write(r / "new", "2\n"), (("new",), (), (), 0)),
    "a new file in a new folder": (lambda r: write(r / "n/e/w", "2"), (("n/e/w",), (), (), 0)),
    "a deleted file": (lambda r: (r / "a").unlink(), ((), (), ("a",), 0)),
    "a dirty file again": (lambda r: write(r / "dirty", "again\n"), ((), ("dirty",), (), 0)),
    "a dirty file put back": (lambda r: write(r / "dirty", "dirty\n"), ((), ("dirty",), (), 0)),
    "a dirty file rewritten as it was": (
        lambda r: write(r / "dirty", "changed before\n"),
        ((), (), (), 0),
    ),
    "a loose file again": (lambda r: write(r / "loose", "x"), ((), ("loose",), (), 0)),
    "a loose file gone": (lambda r: (r / "loose").unlink(), ((), (), ("loose",), 0)),
    "an ignored file": (lambda r: write(r / "x.log", "x"), ((), (), (), 0)),
    "an ignored folder": (lambda r: write(r / "out/x", "x"), ((), (), (), 0)),
    "a touched file": (lambda r: (r / "a").touch(), ((), (), (), 0)),
    "an empty folder": (lambda r: (r / "empty").mkdir(), ((), (), (), 0)),
    "an execute bit": (lambda r: (r / "a").chmod(0o755), ((), ("a",), (), 0)),
    "a renamed file": (lambda r: (r / "a").rename(r / "z"), (("z",), (), ("a",), 0)),
    "a file staged": (
        lambda r: (write(r / "new", "x"), git(r, "add", "new")),
        (("new",), (), (), 0),
    ),
    "what was dirty, committed": (lambda r: commit(r), ((), (), (), 1)),
    "a change, committed": (
        lambda r: (write(r / "a", "2\n"), git(r, "commit", "-qam", "x")),
        ((), ("a",), (), 1),
    ),
    "an empty commit": (
        lambda r: git(r, "commit", "-q", "--allow-empty", "-m", "x"),
        ((), (), (), 1),
    ),
    "a commit on a new branch, back on main": (_hook, ((), ("dirty",), ("loose",), 1)),
    "an amended commit": (
        lambda r: git(r, "commit", "-q", "--amend", "--allow-empty", "-m", "x"),
        ((), (), (), 1),
    ),
    "strange names": (
        lambda r: (write(r / "ä ö\t.txt", "x"), write(r / 'q"u\no', "x")),
        (('q"u\no', "ä ö\t.txt"), (), (), 0),
    ),
    "a file by a link": (lambda r: (r / "link").symlink_to("a"), (("link",), (), (), 0)),
}


@pytest.mark.parametrize("name", GIT_CASES)
def test_a_repository_shows_what_was_changed(repo: Path, name: str) -> None:
    work, expected = GIT_CASES[name]
    changes = after(repo, work)
    assert changes.kind == "git"
    assert shape(changes) == expected


def test_a_commit_is_named_by_its_id_and_subject(repo: Path) -> None:
    changes = after(repo, lambda r: commit(r, "fix: the parser"))
    assert changes.commits == (f"{git(repo, 'rev-parse', '--short=10', 'HEAD')} fix: the parser",)


def test_a_branch_put_back_is_a_change(repo: Path) -> None:
    write(repo / "a", "2\n")
    git(repo, "commit", "-qm", "second", "--", "a")
    changes = after(repo, lambda r: git(r, "reset", "-q", "--keep", "HEAD~1"))
    assert (changes.modified, changes.commits) == (("a",), ())


def test_a_commit_undone_leaves_nothing(repo: Path) -> None:
    def work(top: Path) -> None:
        write(top / "a", "2\n")
        git(top, "commit", "-qm", "x", "--", "a")
        git(top, "reset", "-q", "--keep", "HEAD~1")

    assert not after(repo, work).any


def test_going_to_a_branch_that_was_there_is_no_work(repo: Path) -> None:
    git(repo, "stash", "-q", "-u")
    git(repo, "checkout", "-q", "-b", "other")
    write(repo / "a", "2\n")
    commit(repo)
    git(repo, "checkout", "-q", "main")
    changes = after(repo, lambda r: git(r, "checkout", "-q", "other"))
    assert not changes.any
    assert "left main for other" in (changes.note or "")

    def work(top: Path) -> None:
        git(top, "checkout", "-q", "main")
        write(top / "b", "3\n")

    assert shape(after(repo, work)) == ((), ("b",), (), 0)


def test_merging_a_branch_that_was_there_is_work(repo: Path) -> None:
    git(repo, "stash", "-q", "-u")
    git(repo, "checkout", "-q", "-b", "other")
    write(repo / "a", "2\n")
    commit(repo)
    git(repo, "checkout", "-q", "main")
    changes = after(repo, lambda r: git(r, "merge", "-q", "--ff-only", "other"))
    assert changes.modified == ("a",)


def test_a_repository_without_a_commit_is_looked_at(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path / "old", "x")
    assert not after(tmp_path, lambda r: None).any
    assert after(tmp_path, lambda r: write(r / "new", "x")).created == ("new",)
    changes = after(tmp_path, commit)
    assert (changes.created, len(changes.commits)) == ((), 1)


def test_a_detached_head_is_looked_at(repo: Path) -> None:
    git(repo, "checkout", "-q", "--detach")
    changes = after(repo, lambda r: git(r, "commit", "-qam", "x"))
    assert len(changes.commits) == 1


def test_a_folder_inside_a_repository_names_paths_from_itself(repo: Path) -> None:
    def work(folder: Path) -> None:
        write(folder / "c", "2\n")
        write(folder / "d", "2\n")
        write(folder.parent / "a", "2\n")

    changes = after(repo / "sub", work)
    assert (changes.created, sorted(changes.modified)) == (("d",), ["../a", "c"])


def test_a_folder_that_its_repository_ignores_is_looked_at_by_content(repo: Path) -> None:
    write(repo / "out/x", "1")
    changes = after(repo / "out", lambda r: write(r / "x", "2"))
    assert (changes.kind, changes.modified) == ("hash", ("x",))
    assert "ignores it" in (changes.note or "")


def test_looking_writes_nothing(repo: Path) -> None:
    def state() -> dict[str, tuple[int, int]]:
        found = {}
        for path in [repo, *repo.rglob("*")]:
            info = path.lstat()
            found[str(path)] = (info.st_mtime_ns, info.st_size)
        return found

    (repo / "a").touch()  # the index would be refreshed here
    was = state()
    compare(take(repo, deliverables=("a", "none")))
    assert state() == was


def test_a_locked_index_is_no_obstacle(repo: Path) -> None:
    (repo / ".git/index.lock").touch()
    assert after(repo, lambda r: write(r / "a", "2\n")).modified == ("a",)


def test_programs_named_in_the_configuration_are_not_run(repo: Path) -> None:
    hook = repo.parent / "hook"
    write(hook, f"#!/bin/sh\ntouch {repo.parent}/ran\n")
    hook.chmod(0o755)
    git(repo, "config", "core.fsmonitor", str(hook))
    git(repo, "config", "diff.external", str(hook))
    (repo.parent / "ran").unlink(missing_ok=True)
    after(repo, lambda r: write(r / "a", "2\n"))
    assert not (repo.parent / "ran").exists()


def test_a_repository_in_the_environment_is_not_ours(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    assert after(repo, lambda r: write(r / "a", "2\n")).modified == ("a",)


def test_submodules_are_tolerated_and_seen(repo: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    write(other / "x", "1")
    commit(other)
    git(repo, "submodule", "-q", "add", str(other), "mod")
    commit(repo)
    assert not after(repo, lambda r: None).any
    assert after(repo, lambda r: write(r / "mod/x", "2")).modified == ("mod",)
    assert not after(repo, lambda r: None).any
    assert after(repo, lambda r: write(r / "mod/y", "2")).modified == ("mod",)


def test_a_clone_inside_is_seen(repo: Path) -> None:
    nested = repo / "nested"
    nested.mkdir()
    git(nested, "init", "-q")
    write(nested / "x", "1")
    commit(nested)
    assert not after(repo, lambda r: None).any
    assert after(repo, lambda r: write(r / "nested/x", "2")).modified == ("nested/",)


def test_the_branch_of_another_tree_is_not_this_work(repo: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    git(repo, "worktree", "add", "-q", str(tree), "-b", "side")

    def work(_: Path) -> None:
        write(tree / "a", "2\n")
        commit(tree)

    assert not after(repo, work).any
    assert len(after(tree, work_again(tree)).commits) == 1


def work_again(tree: Path) -> Work:
    def work(_: Path) -> None:
        write(tree / "a", "3\n")
        commit(tree)

    return work


def test_own_branches_of_isolated_steps_are_not_this_work(repo: Path) -> None:
    def work(top: Path) -> None:
        tree = git(top, "commit-tree", "-m", "x", "HEAD^{tree}", "-p", "HEAD")
        git(top, "update-ref", "refs/heads/bullswarm/step-1", tree)

    assert not after(repo, work).any


def test_a_repository_that_git_will_not_trust_is_looked_at_by_content(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(cwd: str) -> git_room.Position:
        raise git_room.GitError("fatal: detected dubious ownership in repository at '/x'")

    monkeypatch.setattr(git_room, "position", refuse)
    changes = after(repo, lambda r: write(r / "a", "2\n"))
    assert (changes.kind, changes.modified) == ("hash", ("a",))
    assert "detected dubious ownership" in (changes.note or "")


def test_without_git_every_folder_is_looked_at_by_content(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    changes = after(repo, lambda r: write(r / "a", "2\n"))
    assert (changes.kind, changes.modified) == ("hash", ("a",))
    assert "git is not installed" in (changes.note or "")


def test_a_repository_that_is_gone_is_no_crash(repo: Path) -> None:
    import shutil

    changes = after(repo, lambda r: shutil.rmtree(r))
    assert "can't be read any more" in (changes.note or "")


# plain folders


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path / "plain"
    for name in ("a", "b", "sub/c"):
        write(top / name, f"{name}\n")
    for name in ("node_modules/x", ".venv/x", "env/pyvenv.cfg", "cache/CACHEDIR.TAG"):
        write(top / name, "x")
    return top


PLAIN_CASES: dict[str, tuple[Work, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]] = {
    "nothing": (lambda r: None, ((), (), ())),
    "a changed file": (lambda r: write(r / "a", "2\n"), ((), ("a",), ())),
    "a new file": (lambda r: write(r / "n/x", "2\n"), (("n/x",), (), ())),
    "a deleted file": (lambda r: (r / "sub/c").unlink(), ((), (), ("sub/c",))),
    "a touched file": (lambda r: (r / "a").touch(), ((), (), ())),
    "the same content": (lambda r: write(r / "a", "a\n"), ((), (), ())),
    "a package": (lambda r: write(r / "node_modules/y", "2"), ((), (), ())),
    "a library": (lambda r: write(r / "env/lib/y", "2"), ((), (), ())),
    "a cache": (lambda r: write(r / "cache/y", "2"), ((), (), ())),
    "a link": (lambda r: (r / "l").symlink_to("/etc"), (("l",), (), ())),
    "an execute bit": (lambda r: (r / "a").chmod(0o755), ((), ("a",), ())),
    "a repository made": (lambda r: git(r, "init", "-q"), ((".git",), (), ())),
}


@pytest.mark.parametrize("name", PLAIN_CASES)
def test_a_plain_folder_shows_what_was_changed(folder: Path, name: str) -> None:
    work, expected = PLAIN_CASES[name]
    changes = after(folder, work)
    assert changes.kind == "hash"
    assert (changes.created, changes.modified, changes.deleted) == expected


def test_a_same_size_change_with_its_old_time_is_seen(folder: Path) -> None:
    def work(top: Path) -> None:
        times = (top / "a").stat()
        write(top / "a", "z\n")
        os.utime(top / "a", ns=(times.st_atime_ns, times.st_mtime_ns))

    assert after(folder, work).modified == ("a",)


def test_what_was_not_looked_at_is_said(folder: Path) -> None:
    note = after(folder, lambda r: None).note or ""
    assert "not looked at: " in note
    assert all(name in note for name in ("node_modules", ".venv", "env", "cache"))


def test_links_are_not_followed(folder: Path) -> None:
    outside = folder.parent / "outside"
    write(outside / "x", "1")
    (folder / "link").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    assert not after(folder, lambda r: write(outside / "x", "2")).any

    def turn(top: Path) -> None:
        (top / "link").unlink()
        (top / "link").symlink_to("/")

    assert after(folder, turn).modified == ("link",)


def test_a_pipe_does_not_block(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    assert not after(folder, lambda r: None).any


@pytest.mark.parametrize("kind", ["plain", "repo"])
def test_the_home_of_bullswarm_inside_is_none_of_the_work(
    kind: str, folder: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = folder if kind == "plain" else repo
    monkeypatch.setenv("BULLSWARM_HOME", str(top / ".home"))
    write(top / ".home/state.json", "1")

    def work(_: Path) -> None:
        write(top / ".home/state.json", "2")
        write(top / ".home/runs/out", "2")

    assert not after(top, work).any


def test_beyond_the_limits_files_are_compared_by_time_or_said_to_be_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "MAX_FILE_BYTES", 1)
    changes = after(folder, lambda r: write(r / "a", "2\n"))
    assert changes.modified == ("a",)
    assert "by size and time only" in (changes.note or "")
    monkeypatch.setattr(
        snapshot.walk, "__kwdefaults__", snapshot.walk.__kwdefaults__ | {"max_files": 1}
    )
    time.sleep(0.02)
    changes = after(folder, lambda r: write(r / "zz", "2\n"))
    assert changes.created == ("zz",)
    assert "only the first 1 files" in (changes.note or "")


def test_a_folder_that_is_gone_is_all_deleted(folder: Path) -> None:
    import shutil

    changes = after(folder, lambda r: shutil.rmtree(r))
    assert set(changes.deleted) == {"a", "b", "sub/c"}


# declared deliverables


@pytest.mark.parametrize("kind", ["plain", "repo"])
@pytest.mark.parametrize(
    ("path", "work", "state"),
    [
        ("none", lambda r: None, "missing"),
        ("new.md", lambda r: write(r / "new.md", "x"), "new"),
        ("new.log", lambda r: write(r / "new.log", "x"), "new"),
        ("new.md", lambda r: write(r / "new.md", ""), "empty"),
        ("new.md", lambda r: write(r / "new.md", " \n"), "empty"),
        ("a", lambda r: None, "unchanged"),
        ("a", lambda r: (r / "a").touch(), "unchanged"),
        ("a", lambda r: write(r / "a", "2"), "changed"),
        ("./a", lambda r: write(r / "a", "2"), "changed"),
        ("a", lambda r: (r / "a").unlink(), "missing"),
        ("sub", lambda r: None, "unchanged"),
        ("sub", lambda r: write(r / "sub/d", "2"), "changed"),
        ("dir", lambda r: (r / "dir").mkdir(), "empty"),
        ("../beside", lambda r: write(r.parent / "beside", "x"), "new"),
        ("nul\0", lambda r: None, "missing"),
    ],
)
def test_a_declared_path_is_looked_at_wherever_it_is(
    kind: str, path: str, work: Work, state: str, folder: Path, repo: Path
) -> None:
    top = folder if kind == "plain" else repo
    before = take(top, deliverables=(path,))
    work(top)
    assert [d.state for d in compare(before).declared] == [state]


@pytest.mark.parametrize("path", ["tool.sh", "bin"])
def test_a_declared_script_that_became_one_that_can_be_run_is_changed(
    path: str, repo: Path
) -> None:
    for script in (repo / "tool.sh", repo / "bin" / "tool.sh"):
        write(script, "echo hello")
        script.chmod(0o644)
    before = take(repo, deliverables=(path,))
    assert compare(before).declared[0].state == "unchanged"
    for script in (repo / "tool.sh", repo / "bin" / "tool.sh"):
        script.chmod(0o755)
    assert compare(before).declared[0].state == "changed"


def test_a_later_attempt_is_judged_from_the_start_of_the_run(repo: Path) -> None:
    before = take(repo, deliverables=("report.md",))
    write(repo / "report.md", "done by the first attempt")
    assert compare(before).declared[0].ok
    assert compare(before).declared[0].ok


def test_a_large_repository_is_looked_at_quickly(tmp_path: Path) -> None:
    for folder in range(40):
        (tmp_path / f"d{folder}").mkdir()
        for name in range(50):
            (tmp_path / f"d{folder}/f{name}").write_text(f"{folder} {name}\n")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    begun = time.perf_counter()
    before = take(tmp_path)
    write(tmp_path / "d3/f7", "new")
    assert compare(before).modified == ("d3/f7",)
    assert time.perf_counter() - begun < 5
