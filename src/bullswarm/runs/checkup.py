"""``health``: is the home sound, does every provider load, do the saved answers still pass."""

from __future__ import annotations

import stat
from pathlib import Path

import msgspec

from bullswarm.errors import BullswarmError
from bullswarm.runs.app import App
from bullswarm.runs.orphans import is_orphan, words


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One thing that was looked at."""

    what: str
    ok: bool
    text: str


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One saved answer, judged again by content."""

    path: str
    ok: bool
    why: str


class Checkup(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The whole report. ``ok`` is about the home and its providers; an old answer that fails the
    gate is shown, not counted: it is history."""

    ok: bool
    home: str
    findings: tuple[Finding, ...]
    answers: tuple[Answer, ...]


def checkup(app: App, *, limit: int | None = None) -> Checkup:
    """Looks; changes nothing but dead entries in the store. ``limit``: only so many of the newest
    saved answers (None: every one)."""
    findings = [_mode(app.home.path), *_settings(app), *_store(app), *_providers(app)]
    return Checkup(
        ok=all(f.ok for f in findings),
        home=str(app.home.path),
        findings=tuple(findings),
        answers=tuple(_answers(app, limit)),
    )


def _mode(path: Path) -> Finding:
    mode = stat.S_IMODE(path.stat().st_mode)
    private = mode & 0o077 == 0
    text = f"{path} is private" if private else f"{path} can be read by others: chmod 700 {path}"
    return Finding(what="home", ok=private, text=text)


def _settings(app: App) -> list[Finding]:
    try:
        mode = app.settings.limits.mode
    except BullswarmError as error:
        return [Finding(what="settings", ok=False, text=str(error))]
    return [Finding(what="settings", ok=True, text=f"state.json is valid (limits.mode {mode})")]


def _store(app: App) -> list[Finding]:
    try:
        agents = app.store.agents()
        benches = app.store.quarantines(app.now())
    except BullswarmError as error:
        return [Finding(what="store", ok=False, text=str(error))]
    text = f"{len(agents)} in flight or in line, {len(benches)} benched"
    lost = app.store.reconcile()
    found = [Finding(what="store", ok=True, text=text)]
    found += [
        Finding(what=f"run {run}", ok=True, text="its process died; marked as lost") for run in lost
    ]
    found += [
        Finding(what=f"agent {agent.id}", ok=False, text=words(agent))
        for agent in agents
        if is_orphan(agent)
    ]
    return found


def _providers(app: App) -> list[Finding]:
    try:
        accounts = app.accounts
    except BullswarmError as error:
        return [Finding(what="providers", ok=False, text=str(error))]
    found = [
        Finding(what=f"provider {f.provider}", ok=False, text=f.message)
        for f in app.registry.faults()
    ]
    ready = [name for name, (_, account) in accounts.items() if account.unavailable is None]
    found.append(
        Finding(
            what="pools",
            ok=bool(ready),
            text=f"{len(ready)} ready: {', '.join(ready)}" if ready else "none is ready for work",
        )
    )
    found += [
        Finding(what=f"pool {name}", ok=True, text=f"not available: {account.unavailable}")
        for name, (_, account) in accounts.items()
        if account.unavailable is not None
    ]
    return found


def _answers(app: App, limit: int | None) -> list[Answer]:
    from bullswarm.judge.health import rejudge_file

    newest = sorted(app.home.runs.glob("out-*.md"), reverse=True)[:limit]
    answers = []
    for path in newest:
        gate = rejudge_file(path)
        answers.append(Answer(path=str(path), ok=gate.ok, why=gate.why))
    return answers
