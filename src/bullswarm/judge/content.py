"""The content gate: did the worker say something, or only that it would?

Pure, and conservative: it rejects an answer only when all of it is of a kind that can't be a
result. Short answers, other languages, and answers about limits or errors pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from bullswarm.dispatch.types import FailureKind, Notice
from bullswarm.judge.provider_error import MAX_CHARS, provider_error
from bullswarm.judge.types import Gate

NAME = "content"

NoticeOf = Callable[[str], Notice | None]
"""Given a whole answer, the notice it is, or None: the grammar of notices is dispatch's."""

MAX_SENTENCES = 40
MAX_TEXT = 4000
"""Longer answers are never called announcements: they are not worth the risk of a wrong no."""

NOTICE_FAILURE: dict[str, FailureKind] = {
    "quota": "quota",
    "throttle": "throttle",
    "auth": "auth",
    "auth-race": "auth",
    "login-damaged": "auth",
    "overloaded": "provider",
}
"""What each kind of notice makes of the attempt."""

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.S)
_INVISIBLE = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad\x00"))
_MARKS = re.compile(r"[\s.…`*_~#>|\"']*")
_SPAN = re.compile(r"`[^`\s]{1,8}`[.]?")
_ABBREVIATED = re.compile(r"\b(e\.g|i\.e|etc|vs|approx|no)\.", re.I)
_BREAK = re.compile(r"(?<=[.!?:;…])\s+|(?<=[。！？])|\n+|\s+[-–—]+\s+|\s*—\s*")


def content_gate(
    answer: str,
    prompt: str = "",
    *,
    tools: int = 0,
    turns: int | None = None,
    notice_of: NoticeOf | None = None,
) -> Gate:
    """Judge the final words of a worker.

    ``tools`` is the number of tool calls it made, ``turns`` the turns it reported (0 means that it
    never started). A gate that failed carries ``not-produced``, or the provider's own failure kind
    where the answer is the provider's error.
    """
    text = plain(answer)
    # A mark in a code span was asked for: "which character separates the fields?"
    bare = not _MARKS.sub("", text) and not _SPAN.fullmatch(text)
    if turns == 0:
        return _no("the turn never started: 0 turns reported")
    if bare and tools > 0:
        calls = "call" if tools == 1 else "calls"
        return _no(f"incomplete: ended after {tools} tool {calls} without a final word")
    if bare:
        return _no("empty answer")
    failed = _provider(text, notice_of)
    if failed is not None:
        return failed
    why = without_substance(text, prompt)
    return _no(why) if why else Gate(name=NAME, ok=True, why="the answer has content")


def answer_notice(answer: str, notice_of: NoticeOf | None) -> Notice | None:
    """The notice that the whole answer is, if it is one."""
    text = plain(answer)
    if notice_of is None or not text or len(text) > MAX_CHARS:
        return None
    return notice_of(text)


def plain(answer: str) -> str:
    """The words alone: no terminal escapes, no thinking block, no invisible characters."""
    text = _ANSI.sub("", answer) if "\x1b" in answer else answer
    if "<think" in text:
        text = _THINKING.sub("", text)
    return text.translate(_INVISIBLE).strip()


def without_substance(text: str, prompt: str = "") -> str | None:
    """Why the answer is no answer (announcement, refusal, no request seen), or None when it is one.

    An answer that the prompt itself spells out was asked for, whatever it says.
    """
    if len(text) > MAX_TEXT or "```" in text:
        return None
    from bullswarm.judge import phrases  # compiled only when there is something short to read

    asked = _flat(prompt)
    if _flat(text) in asked:
        return None
    sentences = split(text)
    if not sentences or len(sentences) > MAX_SENTENCES:
        return None
    if all(phrases.PLACEHOLDER.fullmatch(s) for s in sentences):
        return "no answer: a placeholder"
    told = [s for s in sentences if not phrases.FILLER.fullmatch(s) and s != "api error"]
    if not told:
        return None
    if _no_request(told, asked):
        return "the worker saw no request: the prompt did not reach it"
    refuses = phrases.REFUSAL.fullmatch(told[0]) and len(text) <= 900 and len(told) <= 6
    if refuses and not phrases.ASKS_FOR_REFUSAL.search(asked):
        return "a refusal"
    if len(told) == 1 and phrases.GAVE_UP.fullmatch(told[0]):
        return "it says that it did not do the task, and not why"
    if all(phrases.ASKS_PERMISSION.fullmatch(s) for s in told):
        return "it waits for a permission that nobody can give"
    if all(phrases.ANNOUNCEMENT.fullmatch(s) or phrases.ASKS_PERMISSION.fullmatch(s) for s in told):
        if len(told) > 1 and phrases.ASKS_FOR_PLAN.search(asked):
            return None
        return "an announcement without substance"
    return None


def split(text: str) -> list[str]:
    """Sentences, lower-cased, without list marks, emphasis and end marks; empty ones left out.

    Three dots are kept: "Reading the file..." is not "Reading the file".
    """
    text = _ABBREVIATED.sub(lambda m: m[1].replace(".", "") + " ", text.replace("’", "'"))
    found = []
    for piece in _BREAK.split(text):
        flat = re.sub(r"[*_`#>]+", "", piece).strip().lower()
        flat = re.sub(r"\s+", " ", flat).strip("⏺●• ")
        if flat.endswith(("...", "…")):
            flat = flat.rstrip(".… ") + "..."
        else:
            flat = flat.rstrip(".!?:;,。！？： ")
        if flat:
            found.append(flat)
    return found


def _no_request(told: list[str], asked: str) -> bool:
    from bullswarm.judge import phrases

    if len(told) > 6 or sum(map(len, told)) > 700:
        return False
    if phrases.NO_REQUEST.fullmatch(told[0]):
        return True
    asks = [bool(phrases.ASKS_FOR_TASK.fullmatch(s)) for s in told]
    if phrases.WEAK_NO_REQUEST.fullmatch(told[0]) and any(asks):
        return True
    greeted = len(asked) <= 60 and re.search(r"\b(?:hi|hello|hey|greet\w*|hallo)\b", asked)
    return all(asks) and not greeted


def _provider(text: str, notice_of: NoticeOf | None) -> Gate | None:
    notice = answer_notice(text, notice_of)
    if notice is not None:
        kind = NOTICE_FAILURE[notice.kind]
    else:
        found = provider_error(text)
        if found is None:
            return None
        kind = found
    words = _short(text)
    return Gate(
        name=NAME, ok=False, why=f"the answer is a provider error: {words}", failure_kind=kind
    )


def _no(why: str) -> Gate:
    return Gate(name=NAME, ok=False, why=why, failure_kind="not-produced")


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text.replace("’", "'")).strip().lower()


def _short(text: str, limit: int = 160) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 3] + "..."
