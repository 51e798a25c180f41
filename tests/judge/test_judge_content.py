"""The content gate: what is an answer, and what only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullswarm.dispatch.types import Notice
from bullswarm.judge import content_gate
from bullswarm.judge.content import split, without_substance
from bullswarm.judge.provider_error import provider_error

ANNOUNCEMENTS = [
    "I'll start by looking at the code.",
    "I’ll start by looking at the code.",
    "I'll begin by exploring the repository structure.",
    "Let me start by reading the existing tests.",
    "Let me look at the parser.",
    "Let me take a look at the code base first:",
    "I'll help you with that. Let me look at the files first.",
    "Sure! I'll take a look at the repository.",
    "Okay, let me check the configuration.",
    "I'm going to read the README first.",
    "I am going to analyze the failing tests.",
    "First, I'll explore the project.",
    "First, let me understand the structure. Then I'll make the changes.",
    "I will now implement the feature.",
    "I need to look at the code before I can answer.",
    "To begin, I'll examine src/parser.py.",
    "To answer this, I'll search for usages of the function.",
    "Before making changes, let me review the code.",
    "Let's start by listing the files.",
    "We'll begin with the tests.",
    "I'm looking at the code now.",
    "I am now checking the logs.",
    "Starting by reading the configuration.",
    "Looking at the repository now.",
    "Reading the file...",
    "Searching for the definition…",
    "Great, I'll create the file.",
    "I'd be happy to help! Let me read through the project.",
    "I'll fix the bug.",
    "I'll do that.",
    "Working on it.",
    "One moment, please.",
    "On it!",
    "Understood. I'll get started.",
    "I'll go ahead and run the test suite.",
    "**Let me** explore the code base.",
    "⏺ I'll read the file first.",
    "Now let me run the tests.",
    "I'll check e.g. the parser first.",
    "Ich werde zunächst den Code ansehen.",
    "Ich schaue mir zuerst die Tests an.",
    "Zuerst werde ich die Dateien lesen.",
    "Je vais d'abord examiner le code.",
    "Voy a empezar por leer los archivos.",
    "让我先看看代码。",
    "まずコードを確認します。",
    "I'll look at the code.\n\nThen I'll fix it.\n\nI'll also add tests.",
]

NO_REQUEST = [
    "I don't see a request in your message",
    "I don't see a request in your message. What would you like me to help with?",
    "I don’t see a specific question in your message. Could you clarify what you'd like?",
    "It looks like your message is empty. How can I help you today?",
    "It seems your message was cut off. Could you please resend it?",
    "Your message appears to be empty.",
    "Your prompt didn't come through. Please send it again.",
    "You haven't provided a task yet. What would you like me to do?",
    "You didn't include a question. Please tell me what you need.",
    "No task was provided.",
    "No prompt was given in your message.",
    "I don't see a task here. What can I help you with?",
    "Hello! How can I help you today?",
    "Hi there! What would you like me to do?",
    "I'm ready to help. What would you like to work on?",
    "I didn't receive any instructions in your message, just context. What should I do?",
]

REFUSALS = [
    "I can't help with that.",
    "I'm sorry, but I can't assist with that request.",
    "I’m sorry, but I can’t help with this.",
    "I cannot comply with this request.",
    "Sorry, I won't do that.",
    "I'm unable to help with that.",
    "I am not able to assist with this request.",
    "I must decline this request.",
    "As an AI language model, I cannot help with that.",
    "I can't create that for you.",
    "I'm not comfortable helping with this.",
    "I can't help with that. If you have something else, let me know.",
    "API Error: Claude Code is unable to respond to this request, which appears to violate our"
    " Usage Policy (https://example.com/aup). Please double press esc to edit your last message.",
    "Dabei kann ich nicht helfen.",
]

NOTHING = [
    "",
    "   \n\t\n",
    "...",
    "…",
    ".",
    "```\n```",
    "\u200b\u200b",
    "\x1b[0m\x1b[2K",
    "<think>what should I do?</think>",
    "(no content)",
    "No response requested.",
    "[Request interrupted by user]",
    "***",
    "\x00",
]

WAITING = [
    "I need your permission to write to this file.",
    "I need permission to edit src/app.py. Please approve the request.",
    "I'm waiting for your approval to run this command.",
    "I'll update the file. Would you like me to proceed?",
    "Would you like me to proceed?",
]

PROVIDER_ERRORS = [
    ("[API Error: 401 Incorrect API key provided]", "auth"),
    ("API Error: Rate limit reached", "throttle"),
    ("API Error: 401 Unauthorized", "auth"),
    ("API Error: 429 Too Many Requests", "throttle"),
    (
        "API Error: Request rejected (429) · This request would exceed your account's rate limit."
        " Please try again later.",
        "throttle",
    ),
    (
        'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Busy"}}',
        "provider",
    ),
    ("API Error: 500 Internal server error", "provider"),
    ("API Error: Connection error.", "provider"),
    ("API Error: Request timed out.", "provider"),
    ("API Error: Repeated 529 Overloaded errors", "provider"),
    ("API Error (opus): 400 The model is not available", "provider"),
    ("API Error: fetch failed", "provider"),
    ("[API Error: 503 The model is overloaded. Please try again later.]", "provider"),
    ("**API Error: 403 Forbidden**", "auth"),
    ("You've hit your session limit · resets 9:10pm (UTC)", "quota"),
    ("You've hit your weekly limit · resets Dec 4, 6:30am (UTC)", "quota"),
    ("You’ve hit your usage limit. Visit the settings page or try again at 9:07 PM.", "quota"),
    ("You've hit your Opus limit · resets Dec 4, 6:30am (UTC)", "quota"),
    ("Claude AI usage limit reached|1749924000", "quota"),
    ("Credit balance is too low", "quota"),
    ("You're out of extra usage · resets 3pm (Europe/Berlin)", "quota"),
    ("Individual quota reached. Resets in 2h42m39s", "quota"),
    ("quota exceeded", "quota"),
    ("Rate limit exceeded", "quota"),
    ("Invalid API key · Please run /login", "auth"),
    ("Not logged in · Please run /login", "auth"),
    ("exceeded retry limit, last status: 429 Too Many Requests", "throttle"),
    ("unexpected status 401 Unauthorized: Incorrect API key provided, url: http://h/v1", "auth"),
    ("stream disconnected before completion: error sending request", "provider"),
    ("Server is temporarily limiting requests (not your usage limit)", "throttle"),
    ('{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}', "throttle"),
    (
        '{"error":{"message":"Incorrect API key provided","type":"invalid_request_error",'
        '"code":"invalid_api_key"}}',
        "auth",
    ),
    (
        '{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}',
        "quota",
    ),
    ("Error: 401 Unauthorized", "auth"),
    ("Prompt is too long", "provider"),
    ("Too many requests, please wait before trying again.", "throttle"),
    ("Overloaded", "provider"),
]

ANSWERS = [
    "42",
    "-1",
    "0",
    "yes",
    "No.",
    "OK",
    "Done",
    "Done.",
    "✅",
    "👍",
    "true",
    "null",
    "[]",
    "{}",
    "`|`",
    "`*`.",
    "{'a': 1}",
    '{"error": null, "items": [1, 2]}',
    '{"error": {"message": "boom", "where": "parser.py"}}',
    "Done: renamed 3 files.",
    "No issues found.",
    "The parser reads tokens from src/parser.py and builds a tree. DONE.",
    "src/app.py:14",
    "Nothing to do: the file is already formatted.",
    "I was unable to find any bugs in the parser.",
    "I couldn't reproduce the failure; all 14 tests pass here.",
    "I cannot find a function named foo in the repository.",
    "I can't complete the migration: the schema in db/v3.sql lacks the users table.",
    "I will not change the file, because the tests pin its format.",
    "I'll leave the file as it is: it is correct.",
    "I'll start by looking at the code. The parser has two bugs: it drops the last token, and it"
    " never closes the file.",
    "I'll look at the parser — it uses recursive descent with one token of look-ahead.",
    "Let me check. It works.",
    "Let me run the tests: all 14 pass.",
    "Let me explain. The cache is keyed by path, so a rename misses it.",
    "Let me know if you need anything else. I renamed the three files.",
    "I'm going to use a dict because look-ups are constant time.",
    "Reading the file twice is the cause of the slowdown.",
    "Starting with version 3, the option is deprecated.",
    "Looking at the logs, the crash comes from a missing key.",
    "I've started the server on port 8080.",
    "Die Funktion gibt die Summe zurück.",
    "Ich sehe keine Fehler im Code.",
    "Ja.",
    "Erledigt: drei Dateien umbenannt.",
    "La fonction renvoie la somme.",
    "No hay errores.",
    "関数は合計を返します。",
    "函数返回总和。",
    "Функция возвращает сумму.",
    "الدالة تعيد المجموع.",
    "I'll start by looking at the code.\n\n```python\nprint('hello')\n```",
    "I'll look at three things:\n\n1. src/a.py imports b\n2. src/b.py imports a\n3. so a cycle",
    "I don't see a request handler in the middleware.",
    "I don't see a question mark in line 3.",
    "I don't see any problems in your code.",
    "Your message queue drops items when it is full.",
    "No task was found in the queue table, so the worker idles.",
    "API Error handling lives in src/errors.py and retries three times.",
    "API errors are raised as ApiError with the status.",
    "API Error: 401 means that the key is wrong. Rotate it and set the variable again.",
    "The code prints 'API Error: Rate limit reached' when the server says 429.",
    "The provider says 'You've hit your session limit' when the window is full.",
    "Rate limits: the client backs off for 20 s, then for 60 s.",
    "rate limit exceeded is raised in src/client.py line 40, and handled by the caller.",
    "quota exceeded errors are now handled in meters.py.",
    "Usage limit reached errors are mapped in limits.py; resets are parsed by resets.py.",
    "API Error: 529 overloaded_error at 10:22, and then it recovered after three retries.",
    "I could not complete the task. The schema in db/v3.sql lacks the users table.",
    "You've reached your limit of three retries, so the loop ends.",
    "You have exceeded your own buffer: limit it to 4 KiB.",
    "You've hit your head on a known bug: the limit is checked twice.",
    "401 Unauthorized is returned by the login handler when the token is missing.",
    "Overloaded operators are defined in vec.py.",
    "Too many requests are sent because the cache is cold: each page view sends 14.",
    "I decline nothing here; the pull request is fine.",
    'The refusal text is "I can\'t help with that".',
    "I found 3 bugs. Would you like me to fix them?",
    "The file needs write permission 0644.",
    "Approved.",
    "I'll fix the bug in three steps.\n- `a.py`: the index is off by one.",
    "Hello",
    "Hello, world!",
    "Hi there!",
]


@pytest.mark.parametrize("answer", ANNOUNCEMENTS)
def test_an_announcement_without_substance_is_no_answer(answer: str) -> None:
    gate = content_gate(answer, "Find the bug in the parser.")
    assert (gate.ok, gate.failure_kind) == (False, "not-produced")
    assert "announcement" in gate.why


@pytest.mark.parametrize("answer", NO_REQUEST)
def test_a_worker_that_saw_no_request_gave_no_answer(answer: str) -> None:
    gate = content_gate(answer, "Find the bug in the parser.")
    assert (gate.ok, gate.failure_kind) == (False, "not-produced")
    assert "no request" in gate.why


@pytest.mark.parametrize(
    "answer",
    [
        "I was unable to complete the task.",
        "I'm unable to complete this task.",
        "I apologize, but I cannot complete this task.",
        "Sorry, I couldn't finish the work.",
    ],
)
def test_giving_up_without_a_reason_is_no_answer(answer: str) -> None:
    gate = content_gate(answer, "Find the bug in the parser.")
    assert (gate.ok, gate.failure_kind) == (False, "not-produced")


@pytest.mark.parametrize("answer", REFUSALS)
def test_a_refusal_is_no_answer(answer: str) -> None:
    gate = content_gate(answer, "Find the bug in the parser.")
    assert (gate.ok, gate.why, gate.failure_kind) == (False, "a refusal", "not-produced")


@pytest.mark.parametrize("answer", NOTHING)
def test_an_empty_answer_is_no_answer(answer: str) -> None:
    gate = content_gate(answer, "Find the bug in the parser.")
    assert (gate.ok, gate.failure_kind) == (False, "not-produced")


@pytest.mark.parametrize("answer", WAITING)
def test_waiting_for_a_permission_is_no_answer(answer: str) -> None:
    gate = content_gate(answer, "Update the file.")
    assert (gate.ok, gate.failure_kind) == (False, "not-produced")


@pytest.mark.parametrize(("answer", "kind"), PROVIDER_ERRORS)
def test_a_provider_error_is_no_answer_and_keeps_its_kind(answer: str, kind: str) -> None:
    gate = content_gate(answer, "Find the bug in the parser.")
    assert (gate.ok, gate.failure_kind) == (False, kind)
    assert gate.why.startswith("the answer is a provider error: ")


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_real_answer_passes(answer: str) -> None:
    gate = content_gate(answer, "Do what the issue says.")
    assert gate.ok, gate.why


def test_the_tables_are_large_enough_to_mean_something() -> None:
    assert len(ANNOUNCEMENTS) >= 40
    assert len(ANSWERS) >= 40
    assert len(ANNOUNCEMENTS + NO_REQUEST + REFUSALS + NOTHING + WAITING) >= 80


def test_an_empty_final_text_after_tools_is_incomplete() -> None:
    assert (
        content_gate("", tools=3).why == "incomplete: ended after 3 tool calls without a final word"
    )
    assert (
        content_gate("", tools=1).why == "incomplete: ended after 1 tool call without a final word"
    )
    assert content_gate("", tools=0).why == "empty answer"


def test_a_turn_that_never_started_has_failed() -> None:
    assert not content_gate("", turns=0).ok
    assert not content_gate("All good.", turns=0).ok
    assert content_gate("All good.", turns=1).ok


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        ("Say exactly: I'll start by looking at the code.", "I'll start by looking at the code."),
        ("Reply with 'I can't help with that.'", "I can't help with that."),
        (
            "Draft a mail that declines the offer.",
            "I'm sorry, but I can't assist with this request.",
        ),
        ("hi", "Hello! How can I help you today?"),
        (
            "What would you do about the failing tests?",
            "First, I'd like to read the logs. Then I'll fix the fixture.",
        ),
        (
            "Propose a plan for the migration.",
            "I'll start by exporting the table. Then I'll create the new one.",
        ),
    ],
)
def test_what_was_asked_for_is_an_answer_whatever_it_says(prompt: str, answer: str) -> None:
    assert content_gate(answer, prompt).ok


def test_one_announced_look_is_no_plan() -> None:
    assert not content_gate("I'll start by looking at the code.", "Propose a plan.").ok


def test_an_error_that_the_prompt_quotes_is_still_an_error() -> None:
    prompt = "Why does the client print [API Error: 401 Incorrect API key provided]?"
    assert not content_gate("[API Error: 401 Incorrect API key provided]", prompt).ok


def test_the_injected_notice_decides_the_kind() -> None:
    def notice_of(text: str) -> Notice | None:
        if text.startswith("Kein Kontingent"):
            return Notice(kind="quota", text=text, source="text")
        return None

    gate = content_gate("Kein Kontingent mehr.", notice_of=notice_of)
    assert (gate.ok, gate.failure_kind) == (False, "quota")
    assert content_gate("Alles gut.", notice_of=notice_of).ok
    assert content_gate("Kein Kontingent" + " lang" * 600, notice_of=notice_of).ok


@pytest.mark.parametrize(
    ("kind", "failure"),
    [
        ("quota", "quota"),
        ("throttle", "throttle"),
        ("auth", "auth"),
        ("auth-race", "auth"),
        ("login-damaged", "auth"),
        ("overloaded", "provider"),
    ],
)
def test_each_notice_kind_has_its_failure_kind(kind: str, failure: str) -> None:
    notice = Notice(kind=kind, text="x", source="text")  # type: ignore[arg-type]
    assert content_gate("x", notice_of=lambda _: notice).failure_kind == failure


@pytest.mark.parametrize("answer", ANNOUNCEMENTS)
def test_substance_behind_it_makes_it_an_answer(answer: str) -> None:
    tail = "\n\nThe index in src/parser.py:14 is off by one.\n" * 8
    assert content_gate(answer + tail, "Find the bug.").ok


@pytest.mark.parametrize("answer", ANSWERS)
def test_no_answer_is_a_provider_error_by_itself(answer: str) -> None:
    assert provider_error(answer) is None


@given(st.text(max_size=400), st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_text_is_judged_without_an_error(answer: str, prompt: str) -> None:
    gate = content_gate(answer, prompt)
    assert gate.ok == (gate.failure_kind is None)


@given(st.sampled_from(ANNOUNCEMENTS), st.text(alphabet=" \n\t", max_size=6))
@settings(max_examples=100, deadline=None)
def test_white_space_never_decides(answer: str, space: str) -> None:
    assert not content_gate(space + answer + space).ok


def test_a_hostile_text_is_judged_quickly() -> None:
    import time

    begun = time.perf_counter()
    for text in ("I'll " * 780, "to a b c, " * 380, "sure " * 790, "API Error: " * 150, "[{" * 900):
        content_gate(text)
        without_substance(text)
    assert time.perf_counter() - begun < 2.0


def test_sentences_keep_their_dots_only_where_they_trail_off() -> None:
    assert split("Look at a.py. Then **go**...\n- item!") == [
        "look at a.py",
        "then go...",
        "- item",
    ]
