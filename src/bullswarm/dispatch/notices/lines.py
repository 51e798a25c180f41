"""The shape of a notice: a short line that starts like one, once a logger's decoration is off it.

Diffs, quotes, code, search results, lists and test names never have it, whatever they say.
"""

from __future__ import annotations

import re

import msgspec

MAX_LINE = 700
"""A longer line is prose or a dump, web addresses and JSON left out."""

_HEAD = 300

_FLAGS = re.ASCII | re.IGNORECASE

_FOREIGN = re.compile(
    r"""\s*(?:
      [+\->#/*|`~=]|\[[\ x]\]|\d+[.)]\s|@@|\\|  # diff, quote, list, heading, code
      "(?!(?:message|error|status|code|type|reason|detail)"\s*:)|['\u2018\u201c]|  # a quotation
      (?:diff|index|commit|import|from|def|class|return|assert|raise|throw|if|elif|const|let|var|fn
        |func|function|print|echo|console|expect|it|describe|test|grep|rg|sed|cat)\b(?![:,])|
      (?:PASS|FAIL|ok|not\ ok|XFAIL|SKIP|TRY|SLOW|FLAKY|E\ )\b(?!:)|[✓✔✗✘☐☑]|  # test runners
      [\w./\\-]*[\w-]+\.\w{1,5}:\d+|                        # file:line
      [\w./\\-]+::\w+(?!\S*:\ )|                            # test::name
      \w+\(|[\w.]+\s*=(?!=)|\$\s|at\ \S+\s\(                # call, assignment, prompt, stack frame
    )""",
    _FLAGS | re.VERBOSE,
)
_RETRY = re.compile(
    r"(?:\[persistent\] )?attempt \d+ failed(?: with status (?P<status>\w+)| with (?P<class>[45]xx"
    r"|\d{3}) error)?(?: \([^)]{0,60}\))?[.:]? *(?P<rest>retrying.*|.*)"
    r"|(?:reconnecting|retrying)\.{0,3} ?(?:\(?(?:attempt )?\d+ ?(?:/|of) ?\d+\)?)?[.:]* ?"
    r"(?P<inner>\(.*\)|.*)",
    _FLAGS,
)
_STATUS = re.compile(
    r"(?:(?:unexpected|http|response|error|last) )*(?:status|http|code)(?: code)?[ :=]*"
    r"(?P<a>[1-5]\d\d)\b|(?P<b>[45]\d\d)(?=$|[\s:,.{)\]])(?! (?:lines?|files?|tests?|ms|times?)\b)",
    _FLAGS,
)
_REASON = re.compile(
    r"[ :,-]*(?P<reason>unauthorized|forbidden|payment required|bad gateway|service unavailable"
    r"|internal server error|gateway time-?out|bad request|not found|conflict)?[ :,.-]*",
    _FLAGS,
)
_DECOR = re.compile(
    r"""(?:
      \[(?!api\ error)[^\]\n]{1,60}\](?=\s)|
      \[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?[:,]?|
      \[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?[:,]?|
      (?:error|err|warn|warning|fatal|info|critical|debug|failed|fatal\ error)
        (?:[:\]]|(?=\s+(?-i:[A-Z\d\[{]|\w+(?:::\w+)*:)))|
      (?P<error>(?:\[\s*)?(?:(?:api|upstream|provider|request|stream|server|http|llm|turn|model)\s)?
        [\w.]*(?:error|exception|failure)(?:\scode|\sfrom\sprovider)?\s*
        (?:[(\[][^)\]\n]{1,80}[)\]])?\s*[:\-–—]|error\s(?=[45]\d\d\b))|
      (?P<json>["']?(?:message|error|status|code|type|reason|detail)["']?\s*[:=]\s*["']?)|
      [a-z_]\w*(?:::\w+)+:|[a-z]+_\w+:|
      (?:claude|codex|opencode|gemini|qwen|grok|command-code|antigravity|agy|cursor|copilot)
        (?:[ -](?:code|cli))?:|
      \(api\ error:?\)?|
      [⚠❌⛔■●⏺⎿×▲!\ufe0f]+|
      exceeded\sretry\slimit,\s(?=last\sstatus)
    )\s*""",
    _FLAGS | re.VERBOSE,
)
_URL = re.compile(r"https?://\S+")
_BODY = re.compile(r"\{.*\}", re.S)

# The words of somebody who writes about a limit, as against a client that met one.
ABOUT = re.compile(
    r"\b(?:means|indicates|(?:happens|occurs) (?:when|if|because)|(?:is|are|was|were|gets?|be)"
    r" (?:now )?(?:raised|thrown|returned|logged|shown|caught|handled|caused|printed|emitted|tested"
    r"|expected|retried|surfaced|detected|parsed|classified|mapped|covered|added|fixed|documented)"
    r"|no longer|fixed (?:in|by)|handled (?:in|by)|i(?:'ve| have)? (?:added|fixed|found|changed"
    r"|updated|removed|wrote|implemented|will|can)|(?:the|this|our|a) (?:client|code|test|parser"
    r"|function|handler|wrapper|section|feature|module|class|method|branch|banner|dialog"
    r"|error message|middleware|script|file)\b|should|src/|tests?/|line \d+|e\.g\. (?!check)"
    r"|for example|such as|so that|errors? (?:are|is|now)|todo|fixme)",
    _FLAGS,
)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line without its decoration.

    ``text`` has straight apostrophes, in its own case. ``status``: the HTTP status written before
    it. ``retry``: it says that the CLI tries again. ``error``: it is labelled as an error, so it is
    error-shaped. ``body``: it is a piece of a JSON error body.
    """

    text: str
    status: int | None = None
    retry: bool = False
    error: bool = False
    body: bool = False
    reason: str = ""


def foreign(raw: str) -> bool:
    """True for a line that is a piece of something else: a diff, a quote, code, a list, a test."""
    return _FOREIGN.match(raw[:_HEAD]) is not None


def too_long(text: str) -> bool:
    """True for a text with more prose than a notice has."""
    return len(text) > MAX_LINE and len(_BODY.sub("{}", _URL.sub("", text))) > MAX_LINE


def undress(text: str) -> Line:
    """Take the time stamp, the level, the label, the status and the retry wording off ``text``
    (one line, as ``resets.plain`` leaves it)."""
    rest, status, retry, error, body, reason = text.strip(), None, False, False, False, ""
    for _ in range(8):
        before = rest
        again = _RETRY.match(rest)
        if again and (
            again["status"] or again["class"] or "retry" in rest.lower() or again["inner"]
        ):
            retry = True
            status = status or _number(again["status"] or again["class"])
            rest = (again["rest"] or again["inner"] or "").strip()
            rest = re.sub(r"^retrying\b.*?(?=\{|$)", "", rest, flags=_FLAGS)
        decor = _DECOR.match(rest)
        if decor:
            error = error or bool(decor["error"]) or "error" in decor[0].lower()
            body = body or bool(decor["json"])
            rest = rest[decor.end() :]
        rest = _unwrap(rest)
        found = _STATUS.match(rest)
        if found:
            status = status or _number(found["a"] or found["b"])
            after = _REASON.match(rest, found.end())
            reason = reason or ((after["reason"] if after else "") or "").lower()
            # A bare number is a status only where a label or a reason says so.
            error = error or bool(found["a"] or reason)
            rest = rest[after.end() if after else found.end() :].strip()
        if rest == before:
            break
    rest = rest.rstrip("\"', ") if body else rest
    return Line(text=rest, status=status, retry=retry, error=error, body=body, reason=reason)


def _unwrap(text: str) -> str:
    for opening, closing in ("[]", "()"):
        if text.startswith(opening) and not text.startswith(("[{", "[]")):
            text = text[1:].strip()
            if text.endswith(closing) and text.count(closing) > text.count(opening):
                text = text[:-1]
    if text.endswith("]") and text.count("]") > text.count("["):
        text = text[:-1]
    return text.strip()


def _number(text: str | None) -> int | None:
    if not text:
        return None
    if text.lower().endswith("xx"):
        return int(text[0]) * 100
    return int(text) if text.isdigit() else None
