"""A step's own git worktree: made, merged back when its gates pass, and never lost.

Names are unique to the run and the step. A worktree with anything that is not in the run's folder
is kept and named, whatever happened.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bullswarm.errors import BullswarmError, UsageError

AUTHOR = (
    *("-c", "user.name=bullswarm"),
    *("-c", "user.email=bullswarm@localhost"),
    # Nobody is there to type a passphrase.
    *("-c", "commit.gpgSign=false"),
)


LOCKED_S = 15.0
"""How long another git may hold the repository."""


class GitError(BullswarmError):
    """Git would not do it: something about the repository, not about us."""


class MergeResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a merge; ``tail`` is git's own words."""

    ok: bool
    why: str = ""
    tail: str = ""


class Leftover(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A worktree that was kept, and why."""

    path: str
    branch: str
    why: str


def branch_of(run_id: str, step: str) -> str:
    """The branch of a step that works in its own worktree."""
    return f"bullswarm/{run_id}/{step}"


class Workspaces:
    """The worktrees of one run, below ``root``, of the repository that holds ``cwd``."""

    def __init__(self, root: Path, cwd: str, run_id: str) -> None:
        self._root = root
        self._cwd = cwd
        self._run_id = run_id

    def branch(self, step: str) -> str:
        return branch_of(self._run_id, step)

    def path(self, step: str) -> str:
        """Where the step works: the same place below its worktree as ``cwd`` is below the top."""
        top = Path(self._top())
        return str(self._tree(step) / Path(self._cwd).resolve().relative_to(top))

    def make(self, step: str) -> str:
        """The step's worktree, made from the present commit unless it is there already. Raises
        ``UsageError`` where the folder is in no git repository or has no commit, ``GitError`` where
        git refuses."""
        tree = self._tree(step)
        if not (tree / ".git").exists():
            top = self._top()
            if _git(top, "rev-parse", "--verify", "-q", "HEAD", check=False).returncode:
                raise UsageError("workspace own needs a repository with a commit to start from")
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            _git(top, "worktree", "prune")
            branch = self.branch(step)
            known = _git(top, "rev-parse", "--verify", "-q", f"refs/heads/{branch}", check=False)
            if known.returncode == 0:
                _git(top, "worktree", "add", str(tree), branch)
            else:
                _git(top, "worktree", "add", "-b", branch, str(tree), "HEAD")
        where = self.path(step)
        # The folder may be one that no commit knows.
        Path(where).mkdir(parents=True, exist_ok=True)
        return where

    def merge(self, step: str, message: str, keep: Sequence[str] = ()) -> MergeResult:
        """Commit what the step left and merge it into the run's folder. ``keep`` are paths that
        come along though git ignores them. A conflict is undone and reported; the worktree stays as
        it is. Done twice, the second finds nothing to do."""
        try:
            return self._merge(step, message, keep)
        except (GitError, UsageError) as error:
            return MergeResult(ok=False, why=str(error))

    def _merge(self, step: str, message: str, keep: Sequence[str]) -> MergeResult:
        tree, top, branch = self._tree(step), self._top(), self.branch(step)
        if not (tree / ".git").exists():
            return MergeResult(ok=True)
        _git(str(tree), "add", "-A")
        here = [path for path in keep if Path(self.path(step), path).exists()]
        if here:
            _git(self.path(step), "add", "-A", "-f", "--", *here)
        if _git(str(tree), "diff", "--cached", "--quiet", check=False).returncode:
            _git(str(tree), *AUTHOR, "commit", "-q", "--no-verify", "-m", message)
        if _git(top, "merge-base", "--is-ancestor", branch, "HEAD", check=False).returncode == 0:
            return MergeResult(ok=True)
        if _head(top, "MERGE_HEAD") == _head(top, branch):
            # A crash cut our own merge short.
            _git(top, "merge", "--abort", check=False)
        merged = _git(
            top, *AUTHOR, "merge", "--no-edit", "--no-verify", "-m", message, branch, check=False
        )
        if merged.returncode == 0:
            return MergeResult(ok=True)
        said = (merged.stdout + merged.stderr).strip()
        _git(top, "merge", "--abort", check=False)
        head = _git(top, "rev-parse", "--short", "HEAD").stdout.strip()
        return MergeResult(
            ok=False,
            why=f"merging {branch} failed; the work is in {tree}. "
            f"'git merge {head}' there brings in what it clashes with",
            tail=said[-4000:],
        )

    def drop(self, step: str) -> Leftover | None:
        """Remove the step's worktree and branch; kept, and said so, where that would lose
        anything."""
        tree, branch = self._tree(step), self.branch(step)
        if not (tree / ".git").exists():
            return None
        try:
            why = self._unsaved(tree, branch) or self._remove(tree, branch)
        except UsageError as error:
            why = str(error)
        return Leftover(path=str(tree), branch=branch, why=why) if why is not None else None

    def _remove(self, tree: Path, branch: str) -> str | None:
        gone = _git(self._top(), "worktree", "remove", str(tree), check=False)
        if gone.returncode:
            return gone.stderr.strip() or "git would not remove it"
        _git(self._top(), "branch", "-q", "-d", branch, check=False)
        return None

    def sweep(self) -> tuple[Leftover, ...]:
        """Remove every worktree and branch of the run that holds nothing of its own; name the
        others."""
        left = [self.drop(tree.name) for tree in _folders(self._root)]
        # Where the repository is gone, its branches are, too.
        with contextlib.suppress(UsageError):
            left += [self._drop_branch(branch) for branch in self._lone_branches()]
        return tuple(one for one in left if one is not None)

    def _lone_branches(self) -> list[str]:
        """Branches of the run without a worktree: a crash came between the two."""
        below = f"refs/heads/{branch_of(self._run_id, '')}"
        found = _git(self._top(), "for-each-ref", "--format=%(refname:short)", below, check=False)
        kept = {branch_of(self._run_id, tree.name) for tree in _folders(self._root)}
        return [name for name in found.stdout.split() if name not in kept]

    def _drop_branch(self, branch: str) -> Leftover | None:
        top = self._top()
        _git(top, "worktree", "prune", check=False)
        if _git(top, "branch", "-q", "-d", branch, check=False).returncode == 0:
            return None
        return Leftover(path=top, branch=branch, why="it has commits that were not merged")

    def discard(self) -> None:
        """Remove every worktree and branch of the run with all that is in them."""
        for tree in _folders(self._root):
            _git(self._top(), "worktree", "remove", "--force", "--force", str(tree), check=False)
            _git(self._top(), "branch", "-q", "-D", self.branch(tree.name), check=False)
        for branch in self._lone_branches():
            _git(self._top(), "branch", "-q", "-D", branch, check=False)

    def _unsaved(self, tree: Path, branch: str) -> str | None:
        status = _git(str(tree), "status", "--porcelain", "--untracked-files=all", check=False)
        if status.returncode or status.stdout.strip():
            return "it has changes that are not committed"
        inside = _git(self._top(), "merge-base", "--is-ancestor", branch, "HEAD", check=False)
        return None if inside.returncode == 0 else "it has commits that were not merged"

    def _tree(self, step: str) -> Path:
        return self._root / step

    def _top(self) -> str:
        found = _git(self._cwd, "rev-parse", "--show-toplevel", check=False)
        if found.returncode:
            raise UsageError(f"workspace own needs a git repository; {self._cwd} is in none")
        return found.stdout.strip()


def _folders(root: Path) -> list[Path]:
    return sorted(p for p in root.iterdir() if p.is_dir()) if root.is_dir() else []


def _verb(args: Sequence[str]) -> str:
    rest = list(args)
    while rest and rest[0] == "-c":
        rest = rest[2:]
    return rest[0] if rest else ""


def _head(cwd: str, name: str) -> str | None:
    found = _git(cwd, "rev-parse", "--verify", "-q", name, check=False)
    return found.stdout.strip() if found.returncode == 0 else None


def _git(cwd: str, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run git; while another git holds the repository's lock, for some time again and again: a
    person's, a worker's, or one that a dead kernel left running."""
    deadline = time.monotonic() + LOCKED_S
    while True:
        done = subprocess.run(
            ["git", *args], cwd=cwd, capture_output=True, text=True, errors="replace"
        )
        if done.returncode and ".lock'" in done.stderr and time.monotonic() < deadline:
            time.sleep(0.1)
            continue
        break
    if check and done.returncode:
        said = done.stderr.strip() or done.stdout.strip()
        raise GitError(f"git {_verb(args)} failed in {cwd}: {said}")
    return done
