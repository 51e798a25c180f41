"""The words by which an answer without substance is known.

Every pattern is matched against one whole sentence, lower-cased, with straight apostrophes and
without markdown marks. They are narrow on purpose: a real answer that is thrown away costs a whole
run, and an empty one that slips through is still caught by the deliverable gate or by evidence.
"""

from __future__ import annotations

import re

_GREETING = (
    r"(?:sure(?: thing)?|okay|ok|alright|all right|great|certainly|of course|absolutely|got it|"
    r"understood|perfect|thanks|thank you|hi|hello|hey|hi there|hello there|sounds good|"
    r"great question|good question|no problem|i see|i understand|i'd be happy to help|"
    r"i'll be happy to help|happy to help|i'm sorry|sorry|i apologize|my apologies|"
    r"alles klar|gut|gerne|natürlich|verstanden|d'accord|bien sûr|claro|por supuesto|好的|"
    r"はい|わかりました|承知しました)"
)

FILLER = re.compile(rf"{_GREETING}(?: {_GREETING})*")

_PREFIX = (
    rf"(?:{_GREETING}[,;]? )?"
    r"(?:(?:so|and|then|now|next|first|firstly|finally|to (?:start|begin)(?: with)?|"
    r"to [^,.;:]{3,90},|before [^,.;:]{3,90},|for (?:this|that)(?: task)?),? )*"
)

_INTENT = (
    r"(?:i'll|i will|i shall|i'm going to|i am going to|i'm about to|i am about to|i'd like to|"
    r"i want to|i need to|i have to|let me|let's|let us|we'll|we will|we need to|going to)"
)

_ADVERB = (
    r"(?:(?:now|first|then|next|also|just|quickly|briefly|carefully|systematically|go ahead and|"
    r"proceed to|continue to|try to|need to|take a moment to|start by|start with|begin by|"
    r"begin with|start|begin) )*"
)

_VERB = (
    r"(?:start|starting|begin|beginning|look|looking|take a (?:look|closer look|moment)|"
    r"have a look|explore|exploring|examine|examining|read|reading|check|checking|investigate|"
    r"investigating|inspect|inspecting|analy[sz]e|analy[sz]ing|review|reviewing|search|searching|"
    r"dig|digging|gather|gathering|get|getting|understand|understanding|scan|scanning|list|"
    r"listing|find|finding|locate|locating|open|opening|study|survey|go through|going through|"
    r"walk through|trace|see|figure out|work|proceed|continue|run|running|try|create|creating|"
    r"make|making|write|writing|implement|implementing|add|adding|fix|fixing|update|updating|"
    r"edit|editing|build|set up|verify|test|help|do|tackle|handle|prepare|think|break|fetch|load|"
    r"pull|view|grep|map|identify|determine|clone|install|refactor|launch|spawn|delegate|"
    r"come back|get back|familiarize|carry out|address|apply)"
)

_DOING = (
    r"(?:looking|starting|beginning|reading|checking|exploring|examining|investigating|"
    r"analy[sz]ing|reviewing|searching|scanning|gathering|working|inspecting|listing|running|"
    r"opening|digging|going through|proceeding|getting started)"
)

ANNOUNCEMENT = re.compile(
    "|".join(
        (
            rf"{_PREFIX}{_INTENT} {_ADVERB}{_VERB}\b(?!.*\bbecause\b).*",
            rf"{_PREFIX}(?:i'm|i am)(?: now| currently)? {_DOING}\b(?!.*\bbecause\b).*",
            rf"{_PREFIX}(?:starting|beginning) by {_VERB}\b.*",
            rf"{_PREFIX}{_DOING}\b.*(?:\bnow|\bfirst|\.\.\.|…)",
            rf"{_PREFIX}(?:working on (?:it|this|that)(?: now)?|on it|one moment(?:,? please)?|"
            r"just a (?:moment|second|sec)|please wait|stand by|please stand by|will do|"
            r"give me a (?:moment|second|minute))",
            # German
            rf"{_PREFIX}ich werde (?:mir )?(?:jetzt|nun|zuerst|zunächst|erst|erstmal)\b.*",
            rf"{_PREFIX}ich (?:schaue|sehe) mir (?:jetzt|nun|zuerst|zunächst|erst|erstmal|mal)\b.*",
            rf"{_PREFIX}ich (?:beginne|fange|starte) (?:jetzt|nun|damit|mit|zunächst|zuerst)\b.*",
            rf"{_PREFIX}(?:zuerst|zunächst|als erstes) (?:werde|schaue|sehe|lese|prüfe|"
            r"untersuche|durchsuche) ich\b.*",
            rf"{_PREFIX}lass(?:en sie)? mich (?:zuerst|zunächst|erst|erstmal|mal|kurz)\b.*",
            # French
            rf"{_PREFIX}je vais (?:d'abord|maintenant|commencer|examiner|regarder|lire|analyser|"
            r"explorer|vérifier)\b.*",
            rf"{_PREFIX}commençons par\b.*",
            rf"{_PREFIX}laisse(?:z)?-moi (?:d'abord|regarder|examiner|lire|vérifier)\b.*",
            # Spanish
            rf"{_PREFIX}(?:primero,? )?voy a (?:empezar|comenzar|revisar|examinar|leer|analizar|"
            r"mirar|explorar)\b.*",
            rf"{_PREFIX}(?:empezaré|comenzaré) (?:por|con)\b.*",
            rf"{_PREFIX}d[ée]jame (?:ver|revisar|mirar|leer|examinar)\b.*",
            # Chinese, Japanese
            r"(?:好的)?[，,]?(?:首先[，,]?)?(?:让我|我先|我来|我将|我会)(?:先|来)?"
            r"(?:看|查看|检查|分析|阅读|了解|读取|搜索).*",
            r"(?:まず|最初に|これから).{0,60}(?:確認|調べ|調査|見て|読んで|探し).{0,8}(?:ます|ましょう)",
        )
    )
)

ASKS_FOR_PLAN = re.compile(
    r"\b(?:what|how) (?:would|will) you\b|\bwhat (?:are|is) (?:you|your) (?:going|next|plan)|"
    r"\b(?:write|make|draft|propose|outline|give|describe|create|sketch|suggest)\b[^.\n]{0,40}"
    r"\b(?:plan|approach|outline|strategy|next steps?|roadmap)\b"
)

_THING = r"(?:request|question|task|instructions?|prompt|query|message|assignment)s?"

NO_REQUEST = re.compile(
    "|".join(
        (
            rf"(?:{_GREETING},? )?(?:but )?(?:it (?:looks|seems) like )?i (?:don't|do not|didn't|"
            r"did not|can't|cannot) (?:actually |currently )?(?:see|find|have|receive)"
            rf"(?: (?:a|an|any|the|your|actual|specific|clear|concrete|real|new))* {_THING}"
            r"(?: or \w+)? (?:in|from|with) (?:your|the|this|our) (?:\w+ )?"
            r"(?:message|prompt|input|conversation|chat)\b.{0,120}",
            rf"(?:it (?:looks|seems|appears) (?:like |that )?)?(?:your|the) {_THING} (?:appears|"
            r"seems|looks|is|was|got|came|did|didn't)(?: to (?:be|have been))?(?: come)?"
            r"(?: through)? ?(?:empty|blank|cut off|missing|incomplete|truncated|come through|"
            r"lost)\b.{0,120}",
            r"(?:it (?:looks|seems|appears) (?:like |that )?)?you(?:'ve| have)? (?:haven't|"
            r"have not|didn't|did not|sent|provided|submitted)"
            r"(?: yet)?(?: (?:provide|provided|send|sent|include|included|"
            r"given|asked))?(?: me)?(?: (?:a|an|any|the|with|specific|actual|"
            rf"empty|blank|no))* {_THING}(?: (?:yet|here|to act on|for me))?",
            rf"no (?:actual |specific |clear )?{_THING} (?:was|were|is|has been|seems? to be) "
            r"(?:provided|given|included|found|present|specified|received|visible)"
            r"(?: (?:in|with) (?:your|the|this) (?:message|prompt|input))?",
        )
    )
)
"""The polite "I see no request": the prompt was lost on its way."""

WEAK_NO_REQUEST = re.compile(
    rf"(?:{_GREETING},? )?(?:but )?i (?:don't|do not|didn't|did not) (?:actually )?(?:see|have|"
    rf"receive)(?: (?:a|an|any|the|actual|specific|clear))* {_THING}(?: (?:here|yet|to act on|"
    r"from you))?"
)
"""Counts only beside a question for the task: alone it may be the answer to a question."""

ASKS_FOR_TASK = re.compile(
    rf"(?:{_GREETING},? )?(?:and )?(?:so )?(?:(?:what|how) (?:can|may|could|should|would|do)"
    r" (?:i|you|we) (?:help|assist|do|like|want|need)\b.{0,100}|"
    r"what(?:'s| is) (?:the|your) (?:task|question|request)|"
    r"(?:could|can|would) you (?:please )?(?:share|provide|send|resend|tell me|let me know|"
    r"clarify|re-send|repeat|describe|specify)\b.{0,140}|"
    r"please (?:share|provide|send|resend|tell me|let me know|clarify|describe|specify|go ahead|"
    r"repeat)\b.{0,140}|let me know (?:what|how)\b.{0,120}|what would you like\b.{0,100}|"
    r"(?:i'm|i am) (?:ready|here) to (?:help|assist)\b.{0,80})"
)

_THAT = r"(?:that|this|it|your request|the request|such|these|those|requests? like)"
_CANT = (
    r"(?:can't|cannot|can not|won't|will not|am unable to|'m unable to|am not able to|"
    r"'m not able to|am not willing to|'m not willing to|must decline to|have to decline to|"
    r"must refuse to|am not allowed to|'m not allowed to|am not comfortable|'m not comfortable|"
    r"don't feel comfortable|do not feel comfortable)"
)
_SORRY = (
    r"(?:(?:i'm sorry|i am sorry|sorry|i apologize|my apologies|unfortunately|"
    r"as an ai(?: language)?(?: model| assistant)?)[,.]? ?(?:but )?)*"
)

REFUSAL = re.compile(
    "|".join(
        (
            rf"{_SORRY}i ?{_CANT} (?:to )?(?:help|assist|helping|assisting)"
            rf"(?: you)?(?: (?:with|on|in|to)\b.{{0,200}})?",
            rf"{_SORRY}i ?{_CANT} (?:to )?(?:comply|fulfil|fulfill|complying)"
            rf"(?: with)? {_THAT}\b.{{0,200}}",
            rf"{_SORRY}i ?{_CANT} (?:to )?(?:do|create|write|provide|generate|produce|discuss|"
            rf"answer|continue|proceed|engage)(?: with| in)? (?:that|this|it)"
            r"(?: request| task| kind of request)?(?: for you)?",
            rf"{_SORRY}i (?:must|have to|need to) (?:respectfully )?(?:decline|refuse)\b.{{0,200}}",
            rf"{_SORRY}i (?:respectfully )?(?:decline|refuse) to\b.{{0,200}}",
            r".{0,120}\bappears to violate our usage policy\b.{0,300}",
            r"(?:es tut mir leid,? (?:aber )?)?(?:dabei|damit) kann ich (?:dir |ihnen |leider )?"
            r"nicht (?:helfen|dienen)",
            r"(?:je suis désolée?,? (?:mais )?)?je ne peux pas (?:vous |t')?aider\b.{0,80}",
            r"(?:lo siento,? (?:pero )?)?no puedo ayudar(?:te|le)?\b.{0,80}",
        )
    )
)

GAVE_UP = re.compile(
    rf"{_SORRY}i ?(?:{_CANT}|was unable to|was not able to|wasn't able to|couldn't|"
    r"could not|didn't|did not|failed to) (?:complete|finish|accomplish|carry out|perform|fulfil|"
    r"fulfill|do) (?:this|that|the|your) (?:task|request|work|job|assignment|instructions?)"
    r"(?: (?:at this time|right now|as requested|successfully))?"
)
"""Counts only alone: with a reason beside it, it is a report of what stands in the way."""

ASKS_FOR_REFUSAL = re.compile(r"\b(?:refus|declin|reject|apolog|turn(?:ing)? down|say no)")

ASKS_PERMISSION = re.compile(
    rf"(?:{_GREETING},? )?(?:it (?:looks|seems) like )?"
    r"(?:i(?:'ll| will)? (?:still )?(?:need|require)|"
    r"(?:i'm|i am) (?:still )?(?:waiting|asking) for|"
    r"i've requested|waiting for) (?:your |the |write |edit |user )*(?:permission|approval|"
    r"confirmation)\b.{0,160}|"
    r"(?:please |could you (?:please )?|can you (?:please )?)"
    r"(?:approve|grant|allow|confirm)\b.{0,160}|"
    r"(?:would you like|do you want|shall|should) (?:me to|i) "
    r"(?:proceed|continue|go ahead)\b.{0,100}"
)

PLACEHOLDER = re.compile(
    r"\(?no content\)?|no response requested|\[?request interrupted by user.{0,40}|"
    r"execution error|\[?no output\]?|\(?empty response\)?"
)
