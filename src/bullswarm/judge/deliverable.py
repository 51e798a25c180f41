"""What did the worker change? A look before, a look after, and the difference.

In a git repository: tracked and untracked files and new commits, whatever was dirty before. In a
folder without one: every file, within limits. Nothing is ever written to the user's folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from bullswarm.judge import git
from bullswarm.judge.snapshot import Budget, Sig, file_digest, same, sign, walk
from bullswarm.judge.types import Changes, Declared

MAX_LISTED = 2000
"""Paths of one kind that are listed; the note says how many more there are."""

MAX_BLANK = 4096
"""A declared file up to this size with nothing but white space in it is empty."""


RUNNABLE = 0o111
"""The bits of a mode that are part of the work."""


class Before(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A first look: plain data, so that another process can compare later.

    ``files`` holds, in a git repository, only what was dirty (relative to its top; None: gone),
    else every file (relative to ``cwd``). ``declared`` holds the deliverables' state (None:
    missing). ``taken_ns`` is the wall clock in nanoseconds.
    """

    kind: Literal["git", "hash"]
    cwd: str
    taken_ns: int
    ignore: tuple[str, ...] = ()
    position: git.Position | None = None
    files: dict[str, Sig | None] = {}
    declared: dict[str, str | None] = {}
    truncated: bool = False
    had_git: bool = False
    note: str | None = None


def take(
    cwd: str | Path, *, deliverables: Sequence[str] = (), ignore: Iterable[str | Path] | None = None
) -> Before:
    """Look at a folder before the work starts.

    A run takes it once, before its first attempt: what an earlier attempt left counts for the
    run. ``deliverables`` are the declared paths, relative to ``cwd``. ``ignore`` are folders that
    are none of the work (None: bullswarm's own home).
    """
    folder = os.path.realpath(cwd)
    left_out = _ignored(ignore)
    declared = {path: _state_of(folder, path) for path in deliverables}
    now = time.time_ns()
    try:
        where = git.position(folder)
        budget = Budget()
        files = {
            path: _sign(where.top, path, budget)
            for path in git.dirty(where.top)
            if not _under(where.top, path, left_out)
        }
    except git.GitError as error:
        return _take_files(folder, left_out, declared, now, str(error))
    return Before(
        kind="git",
        cwd=folder,
        taken_ns=now,
        ignore=left_out,
        position=where,
        files=files,
        declared=declared,
    )


def compare(before: Before) -> Changes:
    """Look again, and say what is different. Never raises for what a worker may have done."""
    declared = tuple(_declared(before, path) for path in before.declared)
    if before.kind == "git":
        try:
            changes = _compare_git(before)
        except git.GitError as error:
            changes = Changes(kind="git", note=f"the repository can't be read any more: {error}")
    else:
        changes = _compare_files(before)
    return msgspec.structs.replace(
        changes,
        created=tuple(map(spelled, changes.created)),
        modified=tuple(map(spelled, changes.modified)),
        deleted=tuple(map(spelled, changes.deleted)),
        commits=tuple(map(spelled, changes.commits)),
        note=None if changes.note is None else spelled(changes.note),
        declared=declared,
    )


def spelled(name: str) -> str:
    """A name as records and terminals can hold it: bytes of it that are no UTF-8 are spelled
    out."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return name


def dump(before: Before) -> bytes:
    """A first look as JSON, with names that are no UTF-8 kept as they are."""
    try:
        return msgspec.json.encode(before)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(before)).encode()


def restore(data: bytes) -> Before:
    """What ``dump`` made. Raises ``msgspec.DecodeError`` or ``ValueError`` for anything else."""
    try:
        return msgspec.json.decode(data, type=Before)
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(data), type=Before)


# git


def _compare_git(before: Before) -> Changes:
    was = before.position
    assert was is not None
    now = git.position(before.cwd)
    top = was.top
    if os.path.realpath(now.top) != os.path.realpath(top):
        raise git.GitError("the working folder belongs to another repository now")
    known = [*{b.tip for b in was.branches.values()} | ({was.commit} if was.commit else set())]
    fresh = _fresh_tips(was, now, before.ignore)
    commits = git.new_commits(top, fresh, known)
    note: str | None = None
    base = was.commit
    if now.commit == was.commit:
        found = git.dirty(top)
    else:
        if now.branch != was.branch and now.commit and git.is_old(top, now.commit, known):
            # It only went to another branch; what that branch holds was there before.
            base = now.commit
            note = f"it left {_name(was)} for {_name(now)}, which was there before"
        found = git.against(top, base)
        found |= {path: found.get(path, "A") for path in git.untracked(top)}
    created: list[str] = []
    modified: list[str] = []
    deleted: list[str] = []
    budget = Budget()
    for path in sorted({*found, *before.files}):
        if _under(top, path, before.ignore):
            continue
        shown = _relative(top, path, before.cwd)
        if path in before.files:
            old = before.files[path]
            new = _sign(top, path, budget, old)
            if old is None or new is None:
                if new is not None:
                    created.append(shown)
                elif old is not None:
                    deleted.append(shown)
            elif not same(old, new):
                modified.append(shown)
        else:
            there = os.path.lexists(f"{top}/{path}")
            kind = found[path]
            (deleted if not there else created if kind == "A" else modified).append(shown)
    if budget.by_time_only:
        note = _join(note, f"{budget.by_time_only} large files were compared by size and time only")
    return _changes("git", created, modified, deleted, commits, note)


def _fresh_tips(was: git.Position, now: git.Position, ignore: tuple[str, ...]) -> list[str]:
    """Tips that moved or are new, leaving out the branches of other people's trees."""
    here = os.path.realpath(was.top)
    trees = {b.tree for b in was.branches.values() if b.tree}
    fresh = {now.commit} if now.commit and now.commit != was.commit else set()
    for name, branch in now.branches.items():
        old = was.branches.get(name)
        if (old is not None and old.tip == branch.tip) or name.startswith(git.OWN_BRANCHES):
            continue
        tree = os.path.realpath(branch.tree) if branch.tree else ""
        elsewhere = tree and tree != here
        if elsewhere and (branch.tree in trees or _inside(tree, ignore)):
            continue
        fresh.add(branch.tip)
    return sorted(fresh)


def _sign(top: str, path: str, budget: Budget, known: Sig | None = None) -> Sig | None:
    full = f"{top}/{path.rstrip('/')}"
    state = sign(full, budget, known)
    if state is None or stat.S_IFMT(state.mode) != stat.S_IFDIR:
        return state
    # A submodule or a clone inside: its own state is what counts, not its folder's times.
    word = hashlib.blake2b(git.nested_state(full).encode(errors="replace"), digest_size=16)
    return Sig(0, 0, 0, 0, state.mode, word.hexdigest())


def _name(where: git.Position) -> str:
    if where.branch:
        return where.branch.removeprefix("refs/heads/")
    return where.commit[:10] if where.commit else "no commit"


# folders without git


def _take_files(
    folder: str,
    ignore: tuple[str, ...],
    declared: dict[str, str | None],
    now: int,
    why: str,
) -> Before:
    budget = Budget()
    seen = walk(Path(folder), budget, ignore=ignore)
    notes = [] if why.startswith("fatal: not a git repository") else [why.removeprefix("fatal: ")]
    return Before(
        kind="hash",
        cwd=folder,
        taken_ns=now,
        ignore=ignore,
        files={**seen.files},
        declared=declared,
        truncated=seen.truncated,
        had_git=os.path.lexists(f"{folder}/.git"),
        note="; ".join(notes) or None,
    )


def _compare_files(before: Before) -> Changes:
    budget = Budget()
    known = {path: state for path, state in before.files.items() if state is not None}
    limit = len(known) * 2 + 50_000
    seen = walk(Path(before.cwd), budget, ignore=before.ignore, known=known, max_files=limit)
    created = []
    for path in seen.files.keys() - known.keys():
        # Where the first look stopped short, only a file younger than it is surely new.
        if not before.truncated or seen.files[path].ctime_ns >= before.taken_ns:
            created.append(path)
    modified = [p for p in seen.files.keys() & known.keys() if not same(known[p], seen.files[p])]
    deleted = [
        p for p in known.keys() - seen.files.keys()
        if not os.path.lexists(f"{before.cwd}/{p}")
    ]  # fmt: skip
    if not before.had_git and os.path.lexists(f"{before.cwd}/.git"):
        created.append(".git")
    note = before.note
    if seen.skipped:
        shown = ", ".join(sorted(seen.skipped)[:8])
        more = f" and {len(seen.skipped) - 8} more" if len(seen.skipped) > 8 else ""
        note = _join(note, f"not looked at: {shown}{more}")
    if seen.unreadable:
        note = _join(note, f"can't be read: {', '.join(seen.unreadable[:5])}")
    if before.truncated or seen.truncated:
        note = _join(note, f"only the first {len(known):,} files were looked at")
    if budget.by_time_only:
        note = _join(note, f"{budget.by_time_only} large files were compared by size and time only")
    return _changes("hash", sorted(created), sorted(modified), sorted(deleted), (), note)


# declared deliverables


def _declared(before: Before, path: str) -> Declared:
    now = _state_of(before.cwd, path)
    old = before.declared[path]
    if now is None:
        return Declared(path=path, state="missing")
    if now == "":
        return Declared(path=path, state="empty")
    if old is None:
        return Declared(path=path, state="new")
    return Declared(path=path, state="unchanged" if old == now else "changed")


def _state_of(cwd: str, path: str) -> str | None:
    """A digest of what is at a declared path (links followed); "" when empty, None when missing."""
    full = Path(cwd, path)
    try:
        if full.is_dir():
            seen = walk(full, Budget())
            if not seen.files:
                return ""
            parts = (
                f"{p}\0{s.mode & RUNNABLE:o} {s.digest or (s.size, s.mtime_ns)}\n"
                for p, s in seen.files.items()
            )
            text = "".join(sorted(parts))
            return hashlib.blake2b(os.fsencode(text), digest_size=16).hexdigest()
        status = full.stat()
        size = status.st_size
        if size <= MAX_BLANK and full.is_file() and not full.read_bytes().strip():
            return ""
    except (OSError, ValueError):
        return None
    digest = file_digest(full)
    return None if digest is None else f"{status.st_mode & RUNNABLE:o} {digest}"


# paths


def _changes(
    kind: str,
    created: list[str],
    modified: list[str],
    deleted: list[str],
    commits: tuple[str, ...],
    note: str | None,
) -> Changes:
    total = sum(max(0, len(part) - MAX_LISTED) for part in (created, modified, deleted))
    if total:
        note = _join(note, f"{total:,} more paths changed")
    return Changes(
        kind=kind,
        created=tuple(created[:MAX_LISTED]),
        modified=tuple(modified[:MAX_LISTED]),
        deleted=tuple(deleted[:MAX_LISTED]),
        commits=commits,
        note=note,
    )


def _ignored(ignore: Iterable[str | Path] | None) -> tuple[str, ...]:
    if ignore is None:
        home = os.environ.get("BULLSWARM_HOME") or Path.home() / ".bullswarm"
        ignore = (home,)
    return tuple(os.path.realpath(path) for path in ignore)


def _inside(path: str, ignore: tuple[str, ...]) -> bool:
    return any(path == one or path.startswith(one + os.sep) for one in ignore)


def _under(top: str, path: str, ignore: tuple[str, ...]) -> bool:
    return bool(ignore) and _inside(f"{os.path.realpath(top)}/{path.rstrip('/')}", ignore)


def _relative(top: str, path: str, cwd: str) -> str:
    if os.path.realpath(top) == cwd:
        return path
    return os.path.relpath(f"{os.path.realpath(top)}/{path}", cwd)


def _join(note: str | None, more: str) -> str:
    return f"{note}; {more}" if note else more
