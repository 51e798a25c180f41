"""Is the whole answer a provider's "no"? Some CLIs print it as their result and exit 0.

Only an answer that is nothing but the error counts: an answer that explains, quotes or discusses
one never does.
"""

from __future__ import annotations

import json
import re
from typing import Any

from bullswarm.dispatch.types import FailureKind

MAX_CHARS = 2000
"""A longer answer is never taken for a bare error."""

MAX_PROSE = 400
"""Characters of prose (JSON payloads left out) that a bare error may have."""

_API_ERROR = re.compile(
    r"\[?\s*(?:API|Upstream|Provider|Request) Error\s*(?:\([^)\n]{1,120}\))?\s*[:\-–—]\s*"
    r"(?P<rest>.+)",
    re.I | re.S,
)

# What follows "API Error:" when a client prints one, as against a sentence that is about one.
_REST = re.compile(
    r"(?:(?:Error code:?\s*)?[1-5]\d\d\b|\{|rate limit|"
    r"request (?:rejected|timed out|was aborted|failed)|"
    r"too many requests|connection|could(?: not|n't) connect|network|timed? ?out|overloaded|"
    r"repeated \d|server|service|internal|unauthori[sz]ed|forbidden|invalid|authentication|"
    r"oauth|token|credit|quota|usage|you(?:'ve| have)|your |prompt is too long|the model|model |"
    r"no available|stream|fetch failed|socket|terminated|exceeded|bad gateway|gateway|unable|"
    r"claude code|unexpected|failed|cannot|exhausted|resource|billing|insufficient|payment|"
    r"unknown|premature|econn|etimedout|enotfound|aborted|\[)",
    re.I,
)

_BARE = re.compile(
    r"(?:"
    r"error: [45]\d\d\b.{0,200}|"
    r"[45]\d\d (?:unauthorized|forbidden|too many requests|internal server error|bad gateway|"
    r"service unavailable|gateway timeout|payment required)\b.{0,160}|"
    r"unexpected status [45]\d\d\b.{0,300}|"
    r"exceeded retry limit, last status: .{1,80}|"
    r"stream disconnected before completion.{0,200}|"
    r"(?:error: )?invalid api key(?: .{0,80})?|"
    r"(?:not logged in|oauth token (?:has )?expired|your session has expired|token expired)"
    r"(?:\W.{0,80}please run /login.{0,20})?|please run /login.{0,40}|"
    r"credit balance is too low.{0,80}|"
    r"claude ai usage limit reached(?:\|\d{6,13})?.{0,20}|"
    r"(?:error: )?(?:rate limit|quota|usage limit) (?:reached|exceeded)\b"
    r"(?! (?:errors?|exceptions?|events?|messages?|responses?|cases?|handling)\b).{0,160}|"
    r"(?:individual |daily |monthly )?quota (?:reached|exhausted|exceeded)\b.{0,160}|"
    r"you(?:'ve| have) (?:hit|reached|exceeded|exhausted) your (?:[\w'-]+ ){0,5}"
    r"(?:limit|quota|capacity)(?:\s*[·∙•|.!,;(—-].{0,300}|"
    r"\s+(?:for|resets?|reached|until|try|and|upgrade)\b.{0,300})?|"
    r"you(?:'re| are) out of (?:extra usage|credits|quota).{0,160}|"
    r"server is temporarily limiting requests.{0,160}|"
    r"your (?:quota|limit) will reset .{1,120}|"
    r"prompt is too long.{0,80}|"
    r"(?:error: )?(?:connection error|request timed out|overloaded|fetch failed)|"
    r"too many requests(?:[,.:] .{0,120})?"
    r")[\s.!]*",
    re.I | re.S,
)

# The words of somebody who writes about an error rather than of a client that met one.
_ABOUT = re.compile(
    r"\b(?:means|indicates|happens (?:when|if|because)|occurs (?:when|if|because)|"
    r"is (?:raised|thrown|returned|logged|shown|caught|handled|caused|printed|emitted|expected)|"
    r"are (?:raised|thrown|returned|logged|caught|handled)|was (?:fixed|handled|caused|added)|"
    r"(?:now|no longer) (?:handled|retried|raised)|fixed (?:in|by)|handled (?:in|by)|"
    r"(?:it|and|then) recovered|i (?:added|fixed|found|changed|updated|removed)|"
    r"the (?:client|code|test|parser|function|handler|wrapper) |src/|tests?/|line \d+)",
    re.I,
)

_QUOTA = re.compile(
    r"usage limit|rate limit exceeded|(?:hit|reached|exceeded|exhausted) your\b(?! account's rate)"
    r"|quota|usage_credits_required|out of (?:extra usage|credits)|credit balance|billing|"
    r"insufficient|payment required|spend limit|\b402\b",
    re.I,
)
_AUTH = re.compile(
    r"\b40[13]\b|unauthori[sz]ed|forbidden|api key|authenticat|oauth|/login|not logged in|"
    r"token (?:has )?expired|session has expired|auth_unavailable|no available channel for model|"
    r"permission_error",
    re.I,
)
_THROTTLE = re.compile(r"\b429\b|rate.?limit|too many requests|temporarily limiting|throttl", re.I)
_POLICY = re.compile(r"usage policy|content policy|safety (?:policy|system)", re.I)

_ERROR_TYPES = re.compile(
    r"error|invalid_|rate_limit|insufficient|overloaded|unauthori|quota|exhausted|unavailable|"
    r"permission_denied|unauthenticated",
    re.I,
)


def provider_error(text: str) -> FailureKind | None:
    """The failure kind when ``text`` as a whole is a provider's error message, else None.

    ``quota``, ``throttle``, ``auth`` or ``provider``. A message that only refuses on policy grounds
    is not a provider failure: None (it is a refusal).
    """
    flat = text.strip().replace("’", "'").strip("*`_ \n")
    if not flat or len(flat) > MAX_CHARS:
        return None
    if _POLICY.search(flat):
        return None
    payload = _json_error(flat)
    if payload is not None:
        return kind_of(payload)
    prose = re.sub(r"\{.*\}", "{}", flat, flags=re.S)
    if len(prose) > MAX_PROSE or _ABOUT.search(prose):
        return None
    match = _API_ERROR.match(flat)
    if match:
        return kind_of(flat) if _REST.match(match["rest"]) else None
    return kind_of(flat) if _BARE.fullmatch(prose) else None


def kind_of(message: str) -> FailureKind:
    """The failure kind of a text that is known to be a provider's error."""
    message = message.replace("’", "'")
    if _QUOTA.search(message) and not re.search(r"\(not your usage limit\)", message, re.I):
        return "quota"
    if _THROTTLE.search(message):
        return "throttle"
    if _AUTH.search(message):
        return "auth"
    return "provider"


def kind_of_status(status: int | None) -> FailureKind | None:
    """The failure kind an HTTP status stands for; None for a success or no status."""
    if status is None or status < 400:
        return None
    return {401: "auth", 403: "auth", 402: "quota", 429: "throttle"}.get(status, "provider")  # type: ignore[return-value]


def _json_error(flat: str) -> str | None:
    """The error text of an answer that is one JSON error body, as APIs send it, else None."""
    if not (flat.startswith("{") and flat.endswith("}")):
        return None
    try:
        value: Any = json.loads(flat)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("error"), dict):
        return None
    error = value["error"]
    named = [str(error.get(k, "")) for k in ("type", "code", "status")]
    if "message" not in error or not _ERROR_TYPES.search(" ".join(named)):
        return None
    if set(value) - {"type", "error", "request_id", "status", "code"}:
        return None
    return " ".join([*named, str(error["message"])])
