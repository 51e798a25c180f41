"""The judge: from how an attempt ended to one judgement, gate by gate. Pure.

Order: exit, provider failure, content, deliverable, answer schema. The first that fails decides
``why`` and ``failure_kind``; the later ones that can still be judged are judged too, because a
person who reads the record wants to know whether the content was good all the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from bullswarm.dispatch.types import Ended, FailureKind, Notice
from bullswarm.judge.content import (
    NAME as CONTENT,
)
from bullswarm.judge.content import (
    NOTICE_FAILURE,
    NoticeOf,
    answer_notice,
    content_gate,
)
from bullswarm.judge.provider_error import kind_of_status, provider_error
from bullswarm.judge.schema import Schema, answer_gate
from bullswarm.judge.types import Changes, Gate, Judgement

VERIFIED = "verified"
CHANGING_LANES = ("build", "chore")
"""Lanes whose run must change a file or make a commit."""

MAX_WORDS = 240


def judge(
    ended: Ended,
    *,
    lane: str,
    prompt: str = "",
    changes: Changes | None = None,
    schema: Schema | dict[str, Any] | bool | None = None,
    terminal: bool = True,
    deliverables: Sequence[str] = (),
    must_change: bool | None = None,
    notice_of: NoticeOf | None = None,
    timeout_s: float | None = None,
) -> Judgement:
    """The one judgement of an attempt.

    ``changes`` is what it left behind (None: nobody looked). ``terminal``: the CLI promises a final
    event. ``deliverables`` are the declared paths; ``must_change`` None means that the lane decides
    (build and chore must; a workflow step whose deliverable is no file says False). ``timeout_s``
    is only for the words.
    """
    exit_ = exit_gate(ended, timeout_s=timeout_s, notice_of=notice_of)
    provider = provider_gate(ended, terminal=terminal, notice_of=notice_of)
    gates = [exit_]
    if provider is not None and exit_.failure_kind not in ("cancelled", "unavailable"):
        gates.append(provider)
    spoke = ended.ended_by != "spawn-failed"
    content = _content(ended, prompt, terminal, notice_of)
    answer: Any = None
    if spoke:
        gates.append(content)
        change = deliverable_gate(lane, changes, deliverables, must_change=must_change)
        if change is not None:
            gates.append(change)
        if schema is not None and content.ok:
            typed, answer = answer_gate(ended.answer, schema)
            gates.append(typed)
    failed = next((g for g in gates if not g.ok), None)
    complete = _complete(ended, terminal)
    usable = (
        not exit_.ok
        and spoke
        and complete
        and content.ok
        and (provider is None or provider.ok)
        and all(g.ok for g in gates if g.name == "schema")
    )
    return Judgement(
        ok=failed is None,
        why=VERIFIED if failed is None else failed.why,
        failure_kind=None if failed is None else failed.failure_kind,
        content_usable_despite_exit=usable,
        gates=tuple(gates),
        answer=answer,
        notice=_notice_behind(ended, failed, notice_of),
        notes=_notes(ended, lane, changes, failed),
    )


def exit_gate(
    ended: Ended, *, timeout_s: float | None = None, notice_of: NoticeOf | None = None
) -> Gate:
    """How the process ended. A non-zero exit is never a success; a process that said its final
    word and then never exited has ended, whatever signal it took to end it."""
    by, code = ended.ended_by, ended.exit_code
    tail = _last_line(ended.stderr_tail)
    if by == "final-grace":
        return _ok("exit", "said its final word; it never exited and was ended")
    if by == "cancelled":
        return _fail("exit", "cancelled", "cancelled")
    if by == "spawn-failed":
        reason = ended.notes[-1] if ended.notes else tail or "the command could not be run"
        return _fail("exit", f"the worker could not be started: {reason}", "unavailable")
    if by == "timeout":
        after = timeout_s if timeout_s is not None else ended.wall_s
        return _fail("exit", f"timed out after {_seconds(after)}", "stalled")
    if by == "stalled":
        return _fail("exit", _noted(ended, "silent for too long"), "stalled")
    if by == "loop":
        why = "the same events over and over, with nothing produced"
        return _fail("exit", _noted(ended, why), "provider")
    if by == "notice":
        notice = _certain(ended) or (ended.notices[-1] if ended.notices else None)
        if notice is None:
            return _fail("exit", "ended on a notice of its provider", "provider")
        return _fail("exit", _said(notice), NOTICE_FAILURE[notice.kind])
    if by == "lost" or code is None:
        return _fail("exit", "it ended while nobody watched and left no exit status", "process")
    if code == 0:
        return _ok("exit", "exit 0")
    notice = _blamed(ended)
    if notice is not None:
        return _fail("exit", f"exit {code}: {_said(notice)}", NOTICE_FAILURE[notice.kind])
    if ended.final is not None and ended.final.is_error:
        kind = _error_kind(ended, notice_of)
        words = _short(ended.answer or ended.final.text)
        return _fail("exit", f"exit {code}" + (f": {words}" if words else ""), kind)
    if code in (126, 127) and ended.lines == 0 and ended.final is None:
        why = f"the command could not be run (exit {code})" + (f": {tail}" if tail else "")
        return _fail("exit", why, "unavailable")
    how = f"ended by signal {-code}" if code < 0 else f"exit {code}"
    return _fail("exit", how + (f": {tail}" if tail else ""), "process")


def provider_gate(
    ended: Ended, *, terminal: bool = True, notice_of: NoticeOf | None = None
) -> Gate | None:
    """Whether the provider failed, whatever the exit said. None: the exit gate has said it all.

    ``is_error`` beats any subtype. A certain notice counts where no final event contradicts it.
    """
    if ended.ended_by not in ("exit", "final-grace", "lost"):
        return None
    final = ended.final
    if final is not None and final.is_error:
        notice = _blamed(ended)
        kind = NOTICE_FAILURE[notice.kind] if notice else _error_kind(ended, notice_of)
        words = _short(ended.answer or final.text or (final.code or ""))
        named = f": {words}" if words else ""
        return _fail("provider", f"the final event is an error{named}", kind)
    if final is None:
        notice = _certain(ended)
        if notice is None and terminal and ended.last_kind in ("retry", "error", "limit"):
            notice = ended.notices[-1] if ended.notices else None
        if notice is not None:
            return _fail("provider", _said(notice), NOTICE_FAILURE[notice.kind])
    return _ok("provider", "no provider failure")


def deliverable_gate(
    lane: str,
    changes: Changes | None,
    deliverables: Sequence[str] = (),
    *,
    must_change: bool | None = None,
) -> Gate | None:
    """Whether the work left what it had to leave. None: nothing had to be left.

    Declared paths are the only ones that are asked for: no path is ever guessed.
    """
    must = must_change if must_change is not None else lane in CHANGING_LANES
    if deliverables:
        problems = [p for p in (_undelivered(path, changes) for path in deliverables) if p]
        if not problems:
            count = len(deliverables)
            return _ok("deliverable", f"{count} declared path{'s' * (count > 1)} produced")
        shown = "; ".join(problems[:5])
        more = f"; and {len(problems) - 5} more" if len(problems) > 5 else ""
        return _fail("deliverable", f"not produced: {shown}{more}", "not-produced")
    if not must:
        return None
    if changes is None:
        why = "what it changed in the working folder is not known"
        return _fail("deliverable", f"not produced: {why}", "not-produced")
    if changes.any:
        return _ok("deliverable", _counted(changes))
    note = f" ({changes.note})" if changes.note else ""
    why = f"a {lane} run must change a file or make a commit, and it did neither{note}"
    return _fail("deliverable", f"not produced: {why}", "not-produced")


def _content(ended: Ended, prompt: str, terminal: bool, notice_of: NoticeOf | None) -> Gate:
    turns = ended.final.turns if ended.final is not None else None
    gate = content_gate(ended.answer, prompt, tools=ended.tools, turns=turns, notice_of=notice_of)
    if gate.ok and terminal and ended.final is None:
        why = "incomplete: the stream ended without its final event"
        return _fail(CONTENT, why, "not-produced")
    return gate


def _complete(ended: Ended, terminal: bool) -> bool:
    """A whole answer, not the part of one that a kill left behind."""
    if ended.final is not None:
        return True
    return not terminal and ended.ended_by in ("exit", "lost")


def _undelivered(path: str, changes: Changes | None) -> str | None:
    if changes is None:
        return f"{path} (nobody looked)"
    for declared in changes.declared:
        if declared.path == path:
            return None if declared.ok else f"{path} ({declared.state})"
    plain = path.removeprefix("./")
    if plain in changes.created or plain in changes.modified:
        return None
    if plain in changes.deleted:
        return f"{path} (missing)"
    return f"{path} (missing or unchanged)"


def _certain(ended: Ended) -> Notice | None:
    """The last certain notice: a later one replaces an earlier (the longer window binds)."""
    return next((n for n in reversed(ended.notices) if n.certain), None)


def _blamed(ended: Ended) -> Notice | None:
    """The notice that explains a failed end, if one does: a certain one, or the last one where
    nothing but retries and errors came after it."""
    certain = _certain(ended)
    if certain is not None or not ended.notices:
        return certain
    failed = ended.final is not None and ended.final.is_error
    broken = ended.final is None and ended.last_kind in ("retry", "error", "limit")
    return ended.notices[-1] if failed or broken else None


def _error_kind(ended: Ended, notice_of: NoticeOf | None) -> FailureKind:
    final = ended.final
    notice = answer_notice(ended.answer, notice_of)
    if notice is not None:
        return NOTICE_FAILURE[notice.kind]
    code = (final.code or "") if final is not None else ""
    if code.startswith("error_max"):
        return "not-produced"  # its own limit of turns or money: the work is unfinished
    by_text = provider_error(ended.answer) or provider_error(final.text if final else "")
    by_status = kind_of_status(final.status if final is not None else None)
    return by_text or by_status or "provider"


def _notice_behind(ended: Ended, failed: Gate | None, notice_of: NoticeOf | None) -> Notice | None:
    if failed is None:
        return None
    if failed.name == CONTENT:
        return answer_notice(ended.answer, notice_of)
    if failed.name not in ("exit", "provider") or failed.failure_kind == "cancelled":
        return None
    notice = _certain(ended) if failed.name == "provider" else None
    notice = notice or _blamed(ended) or answer_notice(ended.answer, notice_of)
    if notice is None and ended.ended_by == "notice" and ended.notices:
        notice = ended.notices[-1]
    return notice if notice and NOTICE_FAILURE[notice.kind] == failed.failure_kind else None


def _notes(
    ended: Ended, lane: str, changes: Changes | None, failed: Gate | None
) -> tuple[str, ...]:
    notes = list(ended.notes)
    if ended.ended_by == "final-grace":
        notes.append("it said its final word but never exited; its process group was ended")
    certain = _certain(ended)
    if failed is None and certain is not None:
        notes.append(
            f"its provider complained, and it finished all the same: {_short(certain.text)}"
        )
    if changes is not None and changes.note:
        notes.append(changes.note)
    if lane == "analyze" and changes is not None and changes.any:
        notes.append(f"a read-only run that {_counted(changes)}")
    return tuple(dict.fromkeys(notes))


def _counted(changes: Changes) -> str:
    parts = []
    for verb, found, noun in (
        ("created", changes.created, "file"),
        ("modified", changes.modified, "file"),
        ("deleted", changes.deleted, "file"),
        ("made", changes.commits, "commit"),
    ):
        if found:
            parts.append(f"{verb} {len(found)} {noun}{'s' * (len(found) > 1)}")
    return ", ".join(parts)


def _said(notice: Notice) -> str:
    words = {
        "quota": "usage limit",
        "throttle": "too many requests",
        "auth": "sign-in failure",
        "auth-race": "lost a race for the login",
        "login-damaged": "damaged login file",
        "overloaded": "provider overloaded",
    }[notice.kind]
    text = _short(notice.text)
    return f"{words}: {text}" if text else words


def _noted(ended: Ended, fallback: str) -> str:
    return ended.notes[-1] if ended.notes else fallback


def _seconds(value: float) -> str:
    return f"{value:.0f}s" if value >= 10 or value == int(value) else f"{value:.1f}s"


_POINTER = re.compile(r"for more information|^(?:try|run|see) .*--help|^usage:", re.I)
_ERROR = re.compile(r"^error\b", re.I)


def _last_line(text: str) -> str:
    """The line that says why: the last one, or the error above it where that only points to the
    help."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or not _POINTER.search(lines[-1]):
        return _short(lines[-1]) if lines else ""
    said = list(lines)
    while said and _POINTER.search(said[-1]):
        said.pop()
    errors = [at for at, line in enumerate(said) if _ERROR.search(line)]
    return _short(" ".join(said[errors[-1] :]) if errors else (said or lines)[-1])


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_WORDS else line[: MAX_WORDS - 3] + "..."


def _ok(name: str, why: str) -> Gate:
    return Gate(name=name, ok=True, why=why)


def _fail(name: str, why: str, kind: FailureKind) -> Gate:
    return Gate(name=name, ok=False, why=why, failure_kind=kind)
