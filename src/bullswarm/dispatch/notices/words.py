"""What the words of a notice say: its kind, the window that is spent, the model family it binds."""

from __future__ import annotations

import re

import msgspec

from bullswarm.dispatch.types import NoticeKind

_FLAGS = re.ASCII | re.IGNORECASE


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """``firm``: a usage window or a balance is named, so that a short wait makes no throttle of
    it. ``end``: where the wording ends."""

    kind: NoticeKind
    window: str | None = None
    family: str | None = None
    firm: bool = False
    end: int = 0


_DONE = r"(?:reached|hit|exceeded|exhausted|spent|used up|depleted|over)"
_SPENT = r"(?:limits?|quotas?|capacity|allowance|usage|credits?|budget)"

# Words that make a sentence, or a limit of another kind, of what stands before "limit reached".
_NOUN = (
    r"(?!(?:when|if|once|after|says?|prints?|that|is|was|are|because|and|or|with|then|so|it|we|i"
    r"|they|provider|no|not|any|an?|saw|got|met|shows?|reports?|context|window|tokens?|output|input"
    r"|prompt|turns?|iterations?|recursion|time|memory|size|depth|tools?|loop|retry|retries|files?"
    r"|lines?|characters?|length|stack|heap|connections?|upload|disk|steps?|thinking|max-?turns"
    r"|watch|watch(?:er)?s"
    r"|\w+(?<!includ)(?<!extend)(?<!shar)(?<!allocat)(?<!specifi)ed)\b)"
)

_NOT_USAGE = re.compile(
    r"(?:the )?(?:server|service|provider|api)?(?: is| are)? ?temporarily limiting requests"
    r"|.{0,60}\(not your usage limit\)",
    _FLAGS,
)
_THROTTLE = re.compile(
    r"too many requests|request rejected \(429\)|rate[ _-]limit(?:ed| reached| hit|_error"
    r"| error)?(?!\w)"
    r"(?! (?:has been )?exceeded)|(?:this request would exceed|you(?:'ve| have)? (?:hit|exceeded"
    r"|reached)) "
    r"(?:your|the) (?:account|organi[sz]ation|workspace)(?:'s)? (?:\w+ )?rate limit"
    r"|(?:the )?number of "
    r"(?:\w+ ){0,3}(?:tokens|requests) has exceeded|throttl(?:ed|ing)(?:exception)?(?!\w)"
    r"|slow down(?!\w)"
    r"|(?:requests are|you are|you're) (?:being )?(?:rate[ -]limited|throttled|sending)"
    r"|concurrency limit",
    _FLAGS,
)
_QUOTA = (
    # You've hit your session limit; you exceeded your current quota; you are out of credits.
    re.compile(
        rf"(?:sorry, )?you(?:'ve| have|r account has| already)?(?: already)? (?:hit|reached"
        rf"|exceeded"
        rf"|exhausted|used(?: up)?|spent|run out of|ran out of) (?:your|the|all(?: of)? your|all"
        rf"|today's|this \w+'s) (?P<what>(?:{_NOUN}[\w'.|{{}}-]+ ){{0,7}}?){_SPENT}(?!\w)"
        rf"(?! {_SPENT}(?!\w))",
        _FLAGS,
    ),
    re.compile(
        r"(?:you(?:'re| are)|your (?:workspace|account|organi[sz]ation|plan) is|you(?:'ve"
        r"| have)? r[au]n)"
        r" (?:now )?out of "
        r"(?P<what>extra usage|usage credits|credits?|usage|quota|tokens|messages)",
        _FLAGS,
    ),
    # Claude AI usage limit reached; the usage limit has been reached; individual quota reached.
    re.compile(
        rf"(?:the |your |this )?(?P<what>(?:{_NOUN}[\w'.-]+ ){{0,5}}?)(?:limit|quota|capacity"
        rf"|spending cap|free usage|usage"
        rf"|allowance|allocation) (?:(?:has been|was|is|have been) (?:already "
        rf"|fully )?)?{_DONE}(?!\w)",
        _FLAGS,
    ),
    re.compile(
        r"(?:your |the )?(?P<what>credit balance|account balance|balance|credits?|funds) (?:is "
        r"|are )?"
        r"(?:too low|insufficient|exhausted|depleted|used up)"
        r"|insufficient (?P<what2>balance|credits?|funds|quota)|payment required"
        r"|billing hard limit(?: has been)? reached",
        _FLAGS,
    ),
    re.compile(r"(?:your |the )?(?P<what>)(?:quota|limit|usage) (?:will )?resets?(?= )", _FLAGS),
    re.compile(
        r"(?P<what>)(?:resource(?: has been|_)? ?exhausted|usage[_ ]credits[_ ]required"
        r"|insufficient_(?:quota|credits|balance|funds)|(?:usage|quota|session|weekly)(?:_limit)?_"
        r"(?:exceeded|reached)|usage_not_included|out_of_credits|credits_required"
        r"|billing_hard_limit_reached)(?!\w)",
        _FLAGS,
    ),
)
_RACE = re.compile(
    r".{0,120}(?:refresh_token_reused|refresh token (?:was|has been|has) already (?:been )?used)",
    _FLAGS,
)
_DAMAGED = re.compile(
    r"json parse error: (?:unexpected eof|unterminated|expected)|(?=.{0,240}(?:\.claude(?:\.json|/)"
    r"|\.codex/|auth\.json|credentials?\b|config(?:uration)?\b|settings\.json"
    r"|login file))(?:.{0,200}"
    r"(?:invalid json|json parse error|corrupt(?:ed)?|malformed|not valid json|unexpected end of "
    r"(?:json|file|input)|unexpected eof|eof while parsing|failed to parse|could not be parsed))",
    _FLAGS,
)
_AUTH_START = re.compile(
    r"(?:you(?:'re| are) )?not (?:logged|signed) in|(?:please )?(?:run|use) /login"
    r"|invalid (?:x-)?api[ -]?key"
    r"|incorrect api key|(?:no|missing) (?:valid )?(?:api key|credentials)|api key (?:not valid"
    r"|is invalid"
    r"|expired|has expired|not found)|(?:your |the )?(?:oauth |access |auth(?:entication)? "
    r"|refresh )?"
    r"(?:token|session|login|credentials?)(?: has| have| is| was)?(?: been)? (?:expired|revoked"
    r"|invalid"
    r"|invalidated|no longer valid)|(?:failed to|could not|couldn't) (?:authenticate"
    r"|refresh (?:the |your )?"
    r"(?:access |oauth )?token)|authentication (?:failed|required|error)|unauthori[sz]ed(?!\w)"
    r"|unauthenticated(?!\w)|your access token could not be refreshed|please (?:log|sign) in"
    r"|set an auth method|please set an auth method|login required|permission denied: .{0,40}token"
    r"|your organi[sz]ation has (?:been )?disabled"
    r"|oauth authentication is currently not (?:supported|allowed)",
    _FLAGS,
)
AUTH_TOKENS = re.compile(
    r"(?<!\w)(?:auth_unavailable|authentication_(?:error|failed)|invalidated oauth token"
    r"|no available channel for model|invalid_api_key|invalid_grant|token_(?:expired|revoked"
    r"|invalidated)|refresh_token_(?:invalidated|expired)|api_key_invalid|unauthenticated)(?!\w)",
    _FLAGS,
)
_OVERLOADED = re.compile(
    r"(?:the )?(?:provider|server|service|api|model|selected model)?(?: is|'s)?(?: currently)? ?"
    r"(?:overloaded(?:_error)?(?!\w)|unavailable(?!\w)|experiencing high (?:load|demand)"
    r"|at capacity)"
    r"|service unavailable|server[_ ]overloaded|internal server error|bad gateway|gateway time-?out"
    r"|model_capacity_(?:exhausted|exceeded)|overloaded_error",
    _FLAGS,
)
_PER_MINUTE = re.compile(
    r"per[ _-]?minute|per[ _-]?second|\b[rt]pm\b|requests/min|tokens/min|in the last minute", _FLAGS
)

_WINDOWS = (
    ("five_hour", re.compile(r"session|\b(?:5|five)[- _]?(?:h|hours?)\b|hourly", _FLAGS)),
    ("weekly", re.compile(r"week|\b(?:7|seven)[- _]?days?\b", _FLAGS)),
    ("daily", re.compile(r"daily|today|\bday\b", _FLAGS)),
    ("monthly", re.compile(r"month|\bspend(?:ing)?\b", _FLAGS)),
)
_BALANCE = re.compile(r"credit|balance|extra usage|fund|billing|payment|insufficient", _FLAGS)
_FAMILY = re.compile(r"\b(opus|sonnet|haiku|fable|mythos)\b", _FLAGS)
_FOR_MODEL = re.compile(
    r" for (?:the )?(?:model )?(?P<model>(?:gpt|gemini|claude|o\d|qwen|grok|codex|deepseek|kimi"
    r"|glm)"
    r"[\w.-]*\w|(?:opus|sonnet|haiku|fable))(?!\w)",
    _FLAGS,
)
_PLAIN = re.compile(r"\b(?:usage|session|week\w*|month\w*|daily|limit)\b", _FLAGS)


def said(text: str) -> Said | None:
    """What ``text`` says, if it starts as a notice does. Auth tokens are looked for by the caller,
    who knows whether the line is error-shaped."""
    match = _NOT_USAGE.match(text)
    if match:
        return Said(kind="throttle", end=match.end())
    match = _RACE.match(text)
    if match:
        return Said(kind="auth-race", end=len(text))
    match = _DAMAGED.match(text)
    if match:
        return Said(kind="login-damaged", end=len(text))
    throttle = _THROTTLE.match(text)
    if throttle:
        return Said(kind="throttle", end=throttle.end())
    for pattern in _QUOTA:
        match = pattern.match(text)
        if match:
            return _quota(text, match)
    match = _AUTH_START.match(text)
    if match:
        return Said(kind="auth", end=match.end())
    match = _OVERLOADED.match(text)
    if match:
        return Said(kind="overloaded", end=match.end())
    return None


def _quota(text: str, match: re.Match[str]) -> Said:
    if _PER_MINUTE.search(text):
        return Said(kind="throttle", end=match.end())
    core = match[0]
    if re.search(r"model_capacity|capacity$", core, _FLAGS) and not _PLAIN.search(core):
        return Said(kind="quota", end=match.end())
    window = next((name for name, pattern in _WINDOWS if pattern.search(core)), None)
    family = None
    found = _FAMILY.search(core) or _FOR_MODEL.match(text, match.end())
    if found:
        family = found[1].lower()
        window = window or "model"
    if window is None and _BALANCE.search(core):
        window = "balance"
    rate = re.search(r"rate limit|quota", core, _FLAGS)
    firm = not rate and bool(_PLAIN.search(core) or window)
    return Said(kind="quota", window=window, family=family, firm=firm, end=match.end())
