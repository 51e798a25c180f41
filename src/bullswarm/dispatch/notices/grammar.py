"""Is this text a provider's "no"? By its shape and its words, on the channel it came from.

Conservative where a worker's own words may be: only a whole answer that is nothing but the notice
counts, and on stderr only a line that starts like one.
"""

from __future__ import annotations

import re
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import Literal

import msgspec

from bullswarm.dispatch.notices import lines
from bullswarm.dispatch.notices.kinds import kind_of_code, kind_of_status
from bullswarm.dispatch.notices.resets import parse_reset, plain
from bullswarm.dispatch.notices.structured import body_fields
from bullswarm.dispatch.notices.words import AUTH_TOKENS, Said, said
from bullswarm.dispatch.types import Notice, NoticeKind
from bullswarm.providers.types import Connector, Phrases

Channel = Literal["error", "stderr", "answer", "final-error"]

SHORT_WAIT_S = 300.0
"""Quota words with a wait shorter than this, and no window named, are a throttle."""

MAX_ANSWER = 600
"""A longer answer is never nothing but a notice."""

_FLAGS = re.ASCII | re.IGNORECASE
_NOTHING = Phrases()
_KINDS: tuple[NoticeKind, ...] = ("quota", "throttle", "auth", "overloaded")
_MAX_LINES = 60

# What may follow the core of a notice on its line.
_TAIL = re.compile(
    r"[\"'\]})]*(?:$|\s*[.!,;:·∙•|—–({\[\]-]|\s+(?:for|on (?:this|the) model|of|until|till"
    r"|resets?|will|try"
    r"|please|and|to|at|in|after|upgrade|visit|wait|reached|this|your|again|due|per|before|or|you"
    r"|we"
    r"|the request|the model|retrying|provided|credentials|\(|-|—)(?!\w))",
    _FLAGS,
)
# Every sentence after the core of an answer that is nothing but a notice.
_TAIL_SENTENCE = re.compile(
    r"(?:(?:it |they |your? (?:\w+ ){0,3}|(?:usage|limit|quota) )?(?:will )?(?:resets?|try|retry"
    r"|please|upgrade"
    r"|visit|contact|check|wait|see|ask|notify|fix|subscribe|learn|switch|increase|enable|add|buy"
    r"|use|run|log in|login|sign in|go to)\b"
    r"|(?:or|and|to|for|in|at|on|until|after|before|by)\b|you (?:can|will|may|have|need|are)\b"
    r"|/[\w-]+"
    r"|this (?:request|may|is|would|model)\b|(?:incorrect|invalid|no|missing) |(?:request"
    r"|trace)[ _-]?id"
    r"|need more|want more|more info|https?:|www\.|the (?:server|service|model|limit|request"
    r"|usage)\b"
    r"|your (?:limit|quota|plan|account|organi[sz]ation|usage)\b|[{}\[\]\"')(]"
    r"|\d{1,2}(?::\d\d)?\s?[ap]m\b"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|\d{10}|[\w-]+\.(?:com|ai|dev)\b"
    r"|https|url:|status|code|type|message|error|retrying)",
    _FLAGS,
)
# A worker that talks of the notice.
_TALK = re.compile(
    r"\b(?:comes? from|taken from|(?-i:I)(?:'ve|'m|'ll)?|we|my|our|says|prints?|text|words?)\b",
    _FLAGS,
)
_BREAK = re.compile(r"[.!;|·∙•—–]+(?:\s+|$)|(?<=\w)\s[-|·∙•]\s")
_ERROR_BODY = re.compile(r"[\"']error[\"']\s*:|[\"']type[\"']\s*:\s*[\"']error", _FLAGS)


def classify(
    text: str,
    *,
    now: datetime,
    zone: tzinfo | None = None,
    phrases: Phrases = _NOTHING,
    channel: Channel = "error",
) -> Notice | None:
    """The notice that ``text`` is, or None.

    ``channel``: ``error`` is an error on the provider's own channel, ``final-error`` a final word
    flagged as an error, ``stderr`` a line (or some) of the CLI's stderr, ``answer`` the whole
    answer of a worker. ``phrases`` are the connector's own words. ``zone`` is that of times without
    one (None: this machine's). A reset that can't be read for certain is None.

    Whether the attempt has failed already is the caller's to know: sign-in words count only then.
    """
    if not text or not text.strip():
        return None
    # A frame around a notice is decoration; the marks of a quotation or a diff are not.
    if channel == "answer":
        return _answer(text, now, zone, phrases)
    body = text[:8000]
    found: Notice | None = None
    pieces = [line for line in body.splitlines() if line.strip()][:_MAX_LINES]
    for raw in pieces:
        found = _stronger(found, _line(raw, text, now, zone, phrases, channel))
    if len(pieces) > 1 and (found is None or found.resets_at is None):
        joined = " ".join(piece.strip() for piece in pieces)
        whole = _line(joined, text, now, zone, phrases, channel)
        found = whole if found is None else _stronger(found, whole)
    if found is None and channel != "stderr" and len(pieces) == 1:
        return _bare_reset(text, now, zone)
    return found


def _bare_reset(text: str, now: datetime, zone: tzinfo | None) -> Notice | None:
    """An error that says no more than when a limit resets."""
    flat = plain(text)
    if len(flat) > 80 or not re.match(r"(?:it )?(?:will )?resets?\b", flat, _FLAGS):
        return None
    at = parse_reset(flat, now, zone)
    if at is None:
        return None
    wait_s = (at - now).total_seconds()
    if wait_s < SHORT_WAIT_S:
        return Notice(kind="throttle", text=flat, source="text", wait_s=wait_s)
    return Notice(kind="quota", text=flat, source="text", resets_at=at, wait_s=wait_s)


def phrases_of(connector: Connector) -> Phrases:
    """The connector's phrases, with its ``auth_signatures`` (plain words) among those for auth."""
    extra = tuple(re.escape(words) for words in connector.auth_signatures)
    own = connector.phrases
    return msgspec.structs.replace(own, auth=(*own.auth, *extra)) if extra else own


def _stronger(a: Notice | None, b: Notice | None) -> Notice | None:
    if a is None or b is None:
        return a or b
    rank = {"auth-race": 6, "quota": 5, "login-damaged": 4, "auth": 3, "throttle": 2}
    if rank.get(b.kind, 1) != rank.get(a.kind, 1):
        return a if rank.get(a.kind, 1) > rank.get(b.kind, 1) else b
    return b if a.resets_at is None and b.resets_at is not None else a


def _answer(text: str, now: datetime, zone: tzinfo | None, phrases: Phrases) -> Notice | None:
    bold = re.fullmatch(r"\s*(\*\*|__)(.+)\1\s*", text, re.S)
    text = bold[2] if bold else text
    flat = plain(text)
    if len(flat) > MAX_ANSWER or "```" in text:
        return None
    if lines.ABOUT.search(flat) or _TALK.search(flat):
        return None
    if lines.foreign(text.strip()):
        return None
    line = lines.undress(flat)
    if " " not in flat and "|" not in flat:
        return None  # a bare word may well be what was asked for
    parsed = _parse(line, flat, phrases, "answer")
    if parsed is None:
        return None
    bare = line.text[parsed.end :]
    sentences = [piece.strip(" .!·,:|") for piece in _BREAK.split(bare)]
    # "401 Incorrect API key provided": after a status few words are left, and no sentence.
    few = bool(line.status) and line.error and len(bare) <= 160 and len(sentences) <= 2
    if not few and not all(_TAIL_SENTENCE.match(p) or said(p) for p in sentences if p):
        return None
    return _notice(parsed, line, flat, now, zone)


def _line(
    raw: str, whole: str, now: datetime, zone: tzinfo | None, phrases: Phrases, channel: Channel
) -> Notice | None:
    flat = plain(raw)
    if not flat or lines.too_long(flat) or lines.foreign(raw.strip(" \t│┃║")):
        return None
    line = lines.undress(flat)
    if lines.ABOUT.search(re.sub(r"https?://\S+|\{.*\}", "", line.text)):
        return None
    parsed = _parse(line, flat, phrases, channel)
    if parsed is None:
        return None
    return _notice(parsed, line, flat, now, zone, whole)


def _parse(line: lines.Line, flat: str, phrases: Phrases, channel: Channel) -> Said | None:
    own = _declared(line.text, flat, phrases, channel, line.error)
    if own is not None:
        return own
    if line.body and not line.text.startswith("{"):
        return _field("message", line.text)
    body = _body(line, flat)
    found = said(line.text)
    if found is not None and not _TAIL.match(line.text, found.end):
        found = None
    if body is not None and (found is None or body.kind == "quota"):
        found = body
    if found is not None and (found.kind != "throttle" or line.status in (None, 429)):
        return found
    if (line.error or channel == "error") and AUTH_TOKENS.search(flat):
        return Said(kind="auth", end=len(line.text))
    if AUTH_TOKENS.match(line.text):
        return Said(kind="auth", end=len(line.text))
    labelled = line.error or line.retry or channel in ("error", "final-error")
    kind = kind_of_status(line.status) if labelled else None
    if kind is None or (channel == "stderr" and not (line.retry or _status_led(line))):
        return found
    return found or Said(kind=kind)


def _status_led(line: lines.Line) -> bool:
    """A line that is no more than a status, its reason, and a few words."""
    return bool(line.reason) or len(line.text) <= 160


def _body(line: lines.Line, flat: str) -> Said | None:
    at = flat.find("{")
    if at < 0 or not (line.text.startswith(("{", "[{")) or line.error):
        return None
    if not _ERROR_BODY.search(flat[at:]) and not line.error:
        return None
    weak: Said | None = None
    words: Said | None = None
    for name, value in body_fields(flat[at:]):
        found = _field(name, value)
        if found is None:
            continue
        if name != "message" and found.kind in ("quota", "auth-race") and _strong(value):
            return msgspec.structs.replace(found, end=len(line.text))
        if name in ("message", "detail"):
            words = words or found
        else:
            weak = weak or found
    best = words or weak
    return msgspec.structs.replace(best, end=len(line.text)) if best else None


def _strong(value: str) -> bool:
    return kind_of_code(value) in ("quota", "auth-race") and value.upper() != "RESOURCE_EXHAUSTED"


def _field(name: str, value: str) -> Said | None:
    if name not in ("message", "detail", "error"):
        kind = kind_of_code(value)
        if kind is not None:
            return Said(kind=kind, end=len(value), firm=kind == "quota" and _strong(value))
    inner = lines.undress(value)
    found = said(inner.text) or said(inner.text.replace("_", " "))
    if found is None and AUTH_TOKENS.search(value):
        return Said(kind="auth", end=len(value))
    if found is None or not _TAIL.match(inner.text, found.end):
        return None
    return found


def _declared(text: str, flat: str, phrases: Phrases, channel: Channel, error: bool) -> Said | None:
    """What the connector's own phrases say. Those for auth are looked for anywhere on an
    error-shaped line; the others, and all of them in an answer, must start the notice."""
    if phrases is _NOTHING:
        return None
    for kind in _KINDS:
        for phrase in getattr(phrases, kind):
            pattern = _compiled(phrase)
            match = pattern.match(text) or pattern.match(flat)
            if match is None and channel != "answer" and (error or channel == "error"):
                match = pattern.search(flat)
            if match:
                known = said(text)
                if known is not None and known.kind == kind:
                    return known
                return Said(kind=kind, firm=True, end=min(len(match[0]), len(text)))
    return None


@lru_cache(maxsize=256)
def _compiled(phrase: str) -> re.Pattern[str]:
    try:
        return re.compile(phrase, re.IGNORECASE)
    except re.error:
        return re.compile(re.escape(phrase), re.IGNORECASE)


def _notice(
    found: Said,
    line: lines.Line,
    flat: str,
    now: datetime,
    zone: tzinfo | None,
    whole: str | None = None,
) -> Notice:
    kind, at = found.kind, None
    if kind in ("quota", "throttle", "overloaded"):
        at = parse_reset(flat, now, zone)
        if at is None and whole is not None:
            at = parse_reset(whole, now, zone)
    wait_s = (at - now).total_seconds() if at is not None else None
    if kind == "quota" and not found.firm and wait_s is not None and wait_s < SHORT_WAIT_S:
        kind = "throttle"
    return Notice(
        kind=kind,
        text=flat,
        source="text",
        resets_at=at if kind == "quota" else None,
        window=found.window if kind == "quota" else None,
        family=found.family if kind == "quota" else None,
        status=line.status,
        wait_s=wait_s,
    )
