"""Questions to git that never write: no index refresh, no lock, no hook, no prompt."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

TIMEOUT_S = 60.0
MAX_COMMITS = 200
OWN_BRANCHES = "refs/heads/bullswarm/"
"""Branches of steps that work in a tree of their own; they are judged by their own look."""


class GitError(Exception):
    """git could not answer; the text says why, in one line."""


class Branch(msgspec.Struct, frozen=True, array_like=True):
    """A local branch: its tip, and the tree it is checked out in ("" where in none)."""

    tip: str
    tree: str = ""


class Position(msgspec.Struct, frozen=True):
    """Where a repository stands. ``commit`` None: no commit yet. ``branch`` None: detached."""

    top: str
    commit: str | None
    branch: str | None
    branches: dict[str, Branch]


def git(cwd: str, *args: str, feed: str | None = None, ok: Sequence[int] = (0,)) -> str:
    """Run one git command and return its output. Raises ``GitError``."""
    import subprocess

    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    env |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    # The worker owns the repository's configuration: nothing in it may start a program.
    quiet = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]
    try:
        done = subprocess.run(
            ["git", *quiet, *args],
            cwd=cwd,
            env=env,
            input=feed.encode() if feed is not None else None,
            stdin=subprocess.DEVNULL if feed is None else None,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        missing = "git is not installed" if Path(cwd).is_dir() else "the folder is gone"
        raise GitError(missing) from error
    except (OSError, subprocess.SubprocessError) as error:
        raise GitError(f"git {args[0]} gave no answer ({type(error).__name__})") from error
    if done.returncode not in ok:
        words = os.fsdecode(done.stderr).strip().splitlines()
        raise GitError(words[0] if words else f"git {args[0]} failed ({done.returncode})")
    return os.fsdecode(done.stdout)


def position(cwd: str) -> Position:
    """Where the repository around ``cwd`` stands. Raises ``GitError`` where there is none to use:
    no repository, a bare one, or one that ignores this folder."""
    inside = git(cwd, "rev-parse", "--is-inside-work-tree").strip()
    if inside != "true":
        raise GitError("not inside a working tree")
    top = git(cwd, "rev-parse", "--show-toplevel").rstrip("\n")
    if os.path.realpath(cwd) != os.path.realpath(top):
        # The outer repository of a folder that it ignores sees nothing of what happens here.
        try:
            git(cwd, "check-ignore", "-q", "--no-index", cwd)
        except GitError:
            pass
        else:
            raise GitError("the repository around this folder ignores it")
    head = git(cwd, "rev-parse", "-q", "--verify", "HEAD^{commit}", ok=(0, 1, 128)).strip()
    branch = git(cwd, "symbolic-ref", "-q", "HEAD", ok=(0, 1)).strip()
    shape = "--format=%(refname)%09%(objectname)%09%(worktreepath)"
    branches: dict[str, Branch] = {}
    for line in git(cwd, "for-each-ref", shape, "refs/heads").splitlines():
        name, tip, tree = (*line.split("\t"), "", "")[:3]
        branches[name] = Branch(tip, tree)
    return Position(top, head or None, branch or None, branches)


def dirty(top: str) -> dict[str, str]:
    """Paths that differ from the last commit, relative to ``top``: "A" untracked or added, "M"
    modified, "D" deleted. Ignored files are left out."""
    out = git(top, "status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames")
    found: dict[str, str] = {}
    for entry in out.split("\0"):
        kind = entry[:1]
        if kind == "?":
            found[entry[2:]] = "A"
        elif kind == "1":
            fields = entry.split(" ", 8)
            states = fields[1]
            found.setdefault(fields[8], _letter(states, fields[3]))
        elif kind == "u":
            found.setdefault(entry.split(" ", 10)[10], "M")
    return found


def against(top: str, commit: str | None) -> dict[str, str]:
    """Tracked paths whose file differs from what ``commit`` holds (None: the empty tree)."""
    base = commit or git(top, "hash-object", "-t", "tree", "/dev/null").strip()
    out = git(top, "diff", "--name-status", "-z", "--no-renames", "--no-ext-diff", base, "--")
    fields = out.split("\0")
    return {path: kind[:1] for kind, path in zip(fields[0::2], fields[1::2], strict=False)}


def untracked(top: str) -> list[str]:
    out = git(top, "ls-files", "--others", "--exclude-standard", "-z")
    return [path for path in out.split("\0") if path]


def is_old(top: str, commit: str, tips: Sequence[str]) -> bool:
    """Whether ``commit`` was already reachable from one of ``tips``."""
    try:
        return not new_commits(top, [commit], tips, limit=1)
    except GitError:
        return False


def new_commits(
    top: str, to: Sequence[str], known: Sequence[str], limit: int = MAX_COMMITS
) -> tuple[str, ...]:
    """Commits reachable from ``to`` and from none of ``known``, newest first."""
    if not to:
        return ()
    # Tips that are gone (a branch deleted and pruned) must not make the question fail.
    feed = "".join(f"{name}\n" for name in (*to, *(f"^{tip}" for tip in known)))
    shape = "--format=%h %s"
    args = ["log", "--stdin", "--no-show-signature", f"--max-count={limit}", "--abbrev=10", shape]
    return tuple(git(top, *args, "--ignore-missing", feed=feed).splitlines())


def nested_state(folder: str) -> str:
    """A word for the state of a repository inside the repository (a submodule or a clone)."""
    try:
        head = git(folder, "rev-parse", "-q", "--verify", "HEAD", ok=(0, 1, 128)).strip()
        return f"{head} {git(folder, 'status', '--porcelain', '-z', '--untracked-files=normal')}"
    except GitError as error:
        return f"? {error}"


def _letter(states: str, mode_at_head: str) -> str:
    if mode_at_head == "000000":
        return "A"
    return "D" if "D" in states and states[1] != "M" else "M"
