"""What is a notice and what is not: one row a wording, each with its kind, window and family."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullswarm.dispatch.notices import classify, failure_of, phrases_of
from bullswarm.dispatch.notices.grammar import Channel
from bullswarm.dispatch.types import Notice
from bullswarm.providers.types import Connector, Phrases

NOW = datetime(2026, 11, 30, 19, 7, tzinfo=UTC)


def read(text: str, channel: Channel = "error", phrases: Phrases | None = None) -> Notice | None:
    return classify(text, now=NOW, zone=UTC, phrases=phrases or Phrases(), channel=channel)


# text, window, family, reset
QUOTA: list[tuple[str, str | None, str | None, str | None]] = [
    (
        "You've hit your session limit · resets 8:20pm (Asia/Hong_Kong)",
        "five_hour",
        None,
        "12-01 12:20",
    ),
    ("You’ve hit your weekly limit · resets Dec 4, 6:30am (UTC)", "weekly", None, "12-04 06:30"),
    (
        "You've hit your weekly limit · resets Dec 2 at 3am (America/Los_Angeles)",
        "weekly",
        None,
        "12-02 11:00",
    ),
    ("You've hit your Opus limit · resets Dec 4, 6:30am (UTC)", "model", "opus", "12-04 06:30"),
    ("You've hit your Sonnet limit ∙ resets Dec 4, 6:30am (UTC)", "model", "sonnet", "12-04 06:30"),
    ("You've hit your Fable 5 limit", "model", "fable", None),
    ("Opus weekly limit reached ∙ resets Dec 4, 5pm", "weekly", "opus", "12-04 17:00"),
    ("You've hit your limit · resets 3:20pm (Asia/Shanghai)", None, None, "12-01 07:20"),
    (
        "You've hit your usage limit. Try again in 4 days 2 hours 46 minutes.",
        None,
        None,
        "12-04 21:53",
    ),
    ("You've hit your monthly spend limit.", "monthly", None, None),
    (
        "You've hit your org's monthly spend limit · run /usage-credits to raise it",
        "monthly",
        None,
        None,
    ),
    ("You've hit your fast limit", None, None, None),
    ("Spending cap reached resets 11pm (UTC)", "monthly", None, "11-30 23:00"),
    ("Free allocated quota exceeded.", None, None, None),
    ("Allocated quota exceeded, please increase your quota limit.", None, None, None),
    (
        "You have reached your specified API usage limits. You will regain access on "
        "2026-12-04 at 06:30 UTC.",
        None,
        None,
        "12-04 06:30",
    ),
    ("You're out of extra usage · resets 11pm (UTC)", "balance", None, "11-30 23:00"),
    ("Credit balance is too low", "balance", None, None),
    (
        "Your credit balance is too low to access the API. Please go to Plans & Billing to "
        "upgrade.",
        "balance",
        None,
        None,
    ),
    ("Claude AI usage limit reached|1796073058", None, None, "11-30 21:10"),
    (
        "Claude usage limit reached. Your limit will reset at 1pm (Etc/GMT+5).",
        None,
        None,
        "12-01 18:00",
    ),
    ("5-hour limit reached ∙ resets 11pm", "five_hour", None, "11-30 23:00"),
    ("Weekly limit reached ∙ resets Fri 9am", "weekly", None, "12-04 09:00"),
    (
        "You've reached your 5-hour usage limit. resets at 2026-12-01T04:00:00Z",
        "five_hour",
        None,
        "12-01 04:00",
    ),
    ("You've reached your weekly usage limit.", "weekly", None, None),
    ("Error: usage_credits_required", "balance", None, None),
    ("rate limit exceeded", None, None, None),
    ("Error: Rate limit exceeded. Try again in 2 hours.", None, None, "11-30 21:07"),
    ("quota exceeded", None, None, None),
    ("insufficient_quota", "balance", None, None),
    (
        "You exceeded your current quota, please check your plan and billing details.",
        None,
        None,
        None,
    ),
    ("Quota exceeded. Check your plan and billing details.", None, None, None),
    ("The usage limit has been reached", None, None, None),
    (
        "Your workspace is out of credits. Ask your workspace owner to add more.",
        "balance",
        None,
        None,
    ),
    (
        "You've hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit "
        "https://chatgpt.com/settings/usage to purchase more credits or try again at 9:07 PM.",
        None,
        None,
        "11-30 21:07",
    ),
    (
        "You've hit your usage limit for GPT-5.3-Codex-Spark. Switch to another model now, or try "
        "again at Dec 4th, 2026 12:27 AM.",
        "model",
        "gpt-5.3-codex-spark",
        "12-04 00:27",
    ),
    (
        "You've hit your\nusage limit. Upgrade to Pro or try again at Dec 4th, 2026\n12:27 AM.",
        None,
        None,
        "12-04 00:27",
    ),
    (
        "Individual quota reached. Contact your administrator. Resets in 2h42m39s",
        None,
        None,
        "11-30 21:49",
    ),
    (
        "RESOURCE_EXHAUSTED: Individual quota reached.\nResets in 2h42m39s",
        None,
        None,
        "11-30 21:49",
    ),
    ("You have exhausted your daily quota on this model.", "daily", None, None),
    (
        "TerminalQuotaError: You have exhausted your capacity on this model. Your quota will "
        "reset after 10h5m3s.",
        None,
        None,
        "12-01 05:12",
    ),
    ("Usage limit reached for gemini-2.5-pro.", "model", "gemini-2.5-pro", None),
    ("Free usage exceeded, subscribe to Go", None, None, None),
    (
        "[API Error: Qwen OAuth quota exceeded: Your free daily quota has been reached.]",
        None,
        None,
        None,
    ),
    (
        '{"error": {"type": "usage_limit_reached", "message": "The usage limit has been reached", '
        '"resets_at": 1796072954}}',
        None,
        None,
        "11-30 21:09",
    ),
    (
        'API Error: 429 {"error":{"code":"insufficient_quota","message":"Too Many Requests"}}',
        None,
        None,
        None,
    ),
    (
        "[2026-11-30T19:07:00Z ERROR codex_core::client] You've hit your usage limit. Try "
        "again in 3 days.",
        None,
        None,
        "12-03 19:07",
    ),
    ("402 Payment Required", None, None, None),
    ("You've run out of credits.", "balance", None, None),
]


def _at(text: str | None) -> datetime | None:
    return datetime.strptime(f"2026-{text}", "%Y-%m-%d %H:%M").replace(tzinfo=UTC) if text else None


@pytest.mark.parametrize(
    ("text", "window", "family", "reset"), QUOTA, ids=[q[0][:60] for q in QUOTA]
)
@pytest.mark.parametrize("channel", ["error", "final-error", "stderr"])
def test_a_usage_limit_with_its_scope_and_reset(
    text: str, window: str | None, family: str | None, reset: str | None, channel: Channel
) -> None:
    notice = read(text, channel)
    assert notice is not None and notice.kind == "quota"
    assert (notice.window, notice.family) == (window, family)
    at = notice.resets_at
    assert (at.replace(second=0) if at else None) == _at(reset)
    assert failure_of(notice) == "quota"


OTHERS = [
    # A throttle: too many requests, nothing spent.
    ("throttle", "API Error: Rate limit reached"),
    ("throttle", "Error: Rate limit reached for requests"),
    (
        "throttle",
        "API Error: Request rejected (429) · This request would exceed your account's rate "
        "limit. Please try again later.",
    ),
    (
        "throttle",
        "API Error: Server is temporarily limiting requests (not your usage limit) · Rate limited",
    ),
    ("throttle", "Too many requests, please try again later."),
    ("throttle", "exceeded retry limit, last status: 429 Too Many Requests"),
    ("throttle", "Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)"),
    ("throttle", "Attempt 2 failed with status 429. Retrying with backoff..."),
    (
        "throttle",
        '{"error": {"message": "Rate limit reached for requests", "code": "rate_limit_exceeded"}}',
    ),
    (
        "throttle",
        '{"type":"error","error":{"type":"rate_limit_error","message":"Number of request '
        'tokens has exceeded your per-minute rate limit"}}',
    ),
    # Quota words with a wait of seconds are a throttle too.
    ("throttle", "Your quota will reset after 1s."),
    (
        "throttle",
        "You have exhausted your capacity on this model. Your quota will reset after 34s.",
    ),
    ("throttle", "Quota exceeded for metric: requests per minute. Please retry in 42.5s."),
    ("throttle", "Rate limit exceeded. Try again in 20 seconds."),
    # Sign-in.
    (
        "auth",
        "unexpected status 401 Unauthorized: Incorrect API key provided, url: "
        "http://127.0.0.1/v1/responses",
    ),
    (
        "auth",
        "Reconnecting... 1/5 (unexpected status 401 Unauthorized: Incorrect API key provided)",
    ),
    ("auth", "[API Error: 401 Incorrect API key provided]"),
    (
        "auth",
        "API Error: 401 "
        '{"type":"error","error":{"type":"authentication_error","message":"OAuth token has '
        'expired."}} · Please run /login',
    ),
    ("auth", "Not logged in · Please run /login"),
    ("auth", "Invalid API key · Please run /login"),
    ("auth", "Error: auth_unavailable: no auth available"),
    ("auth", "Error: 403 invalidated oauth token"),
    ("auth", "Error: no available channel for model gpt-5"),
    ("auth", "Error: 403 Forbidden"),
    # Two processes that spent one refresh token.
    ("auth-race", "2026-11-30T19:07:00.123Z ERROR codex_core: refresh_token_reused"),
    (
        "auth-race",
        "Your access token could not be refreshed because your refresh token was already used. "
        "Please sign in again.",
    ),
    # A login file that was cut off.
    ("login-damaged", "JSON Parse error: Unexpected EOF"),
    (
        "login-damaged",
        "Claude configuration file at /home/u/.claude.json is corrupted: JSON Parse error: "
        "Unexpected EOF",
    ),
    ("login-damaged", "Error: failed to parse /home/u/.codex/auth.json: EOF while parsing a value"),
    # The provider's own trouble.
    (
        "overloaded",
        "API Error: 529 "
        '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
    ),
    (
        "overloaded",
        "unexpected status 503 Service Unavailable: Overloaded, url: http://127.0.0.1/v1",
    ),
    ("overloaded", "API Error: Overloaded"),
    ("overloaded", "Error: 500 Internal Server Error"),
    ("overloaded", "Selected model is at capacity. Please try a different model."),
]


@pytest.mark.parametrize(("kind", "text"), OTHERS, ids=[f"{k}-{t[:50]}" for k, t in OTHERS])
@pytest.mark.parametrize("channel", ["error", "stderr"])
def test_the_other_kinds_name_no_window(kind: str, text: str, channel: Channel) -> None:
    notice = read(text, channel)
    assert notice is not None and notice.kind == kind
    assert notice.resets_at is None and notice.window is None


def test_failure_kinds() -> None:
    wanted = {
        "quota": "quota",
        "throttle": "throttle",
        "auth": "auth",
        "auth-race": "auth",
        "login-damaged": "auth",
        "overloaded": "provider",
    }
    for kind, failure in wanted.items():
        assert failure_of(Notice(kind=kind, text="x", source="text")) == failure  # type: ignore[arg-type]


def test_a_short_wait_is_kept_and_a_named_window_stays_a_limit() -> None:
    throttle = read("Your quota will reset after 34.5s.")
    assert throttle is not None and throttle.wait_s == 34.5
    limit = read("You've hit your session limit · resets 7:09pm (UTC)")
    assert limit is not None and limit.kind == "quota"


# Pieces of something else, on whatever channel.
NOT_NOTICES = [
    "Rate limit exceeded errors are now retried with backoff.",
    "Usage limit reached: the handler now shows a banner.",
    'I added a test for "You\'ve hit your session limit · resets 8:20pm (Asia/Hong_Kong)".',
    "+ You've hit your session limit · resets 8:20pm (UTC)",
    "- quota exceeded",
    "> rate limit exceeded",
    '"You\'ve hit your weekly limit · resets Dec 4, 6:30am (UTC)"',
    "`quota exceeded`",
    "# quota exceeded",
    "// rate limit exceeded",
    "1. Rate limit exceeded",
    "- [ ] rate limit exceeded",
    "| quota exceeded | benched |",
    "@@ -1,4 +1,4 @@ rate limit exceeded",
    "src/limits.py:12: quota exceeded",
    "tests/test_limits.py::test_quota quota exceeded",
    "test_rate_limit_exceeded PASSED",
    "        PASS [   0.012s] router::tests rate limit exceeded",
    "FAIL limits quota exceeded",
    "✓ rate limit exceeded returns 429 (3 ms)",
    "test limits::quota_exceeded ... ok",
    "The router benches a pool when it prints 'quota exceeded'.",
    "When the provider says rate limit exceeded, the pool is benched.",
    "You've hit your weekly limit means that the pool is benched.",
    "Your tests are green. You've hit your limit of three retries in the loop though.",
    "The usage limit has been reached by three of five accounts, so I moved the work.",
    'if response.status == 429: raise QuotaExceeded("quota exceeded")',
    'raise RateLimitError("rate limit exceeded")',
    "429 files changed",
    "Context limit reached",
    "You've reached your context window limit.",
    "Output token limit exceeded",
    "Tool call limit reached",
    "Error: Time limit exceeded",
    "File size limit exceeded",
    "Recursion limit reached",
    "inotify watch limit reached",
    "401 lines of code",
    "503 tests passed",
    "Reading additional input from stdin...",
    "Error: could not read file limits.md",
    "Overloaded functions are resolved at compile time.",
    "Unauthorized access is handled in middleware.",
    "Invalid API key handling was fixed.",
    "Not logged in users see the banner.",
    "Limit reached when n = 10.",
    "Command failed: grep -n 'usage limit reached' src/limits.py",
    "MCP client for `docs` failed to start: 401 Unauthorized",
    "JSON Parse error in package.json",
    "Reconnecting... 1/5 (stream disconnected before completion: stream closed)",
    "The parser reads tokens from src/parser.py and builds a tree. DONE.",
]


@pytest.mark.parametrize("text", NOT_NOTICES)
@pytest.mark.parametrize("channel", ["error", "final-error", "stderr", "answer"])
def test_what_quotes_or_discusses_a_limit_is_none(text: str, channel: Channel) -> None:
    assert read(text, channel) is None


ANSWERS = [
    "**API Error: 403 Forbidden**",
    "You've hit your session limit · resets 8:20pm (Asia/Hong_Kong)",
    "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit "
    "https://chatgpt.com/settings/usage to purchase more credits or try again at 9:07 PM.",
    "Claude AI usage limit reached|1796073058",
    "[API Error: 401 Incorrect API key provided]",
    "API Error: Rate limit reached",
    "API Error: Request rejected (429) · This request would exceed your account's rate limit. "
    "Please try again later.",
    "Invalid API key · Please run /login",
    "Credit balance is too low",
    "Individual quota reached. Contact your administrator to enable overages. Resets in 2h42m39s.",
]


@pytest.mark.parametrize("text", ANSWERS)
def test_a_whole_answer_that_is_the_notice_counts(text: str) -> None:
    assert read(text, "answer") is not None


@pytest.mark.parametrize("text", ANSWERS)
@pytest.mark.parametrize(
    "around",
    [
        "{}\n\nSo I stopped there; src/router.py now retries.",
        "Here is the message that the CLI prints:\n\n{}",
        "I changed the parser.\n{}",
        "```\n{}\n```",
        "{} That text comes from the connector's table of phrases.",
    ],
)
def test_an_answer_that_holds_a_notice_is_an_answer(text: str, around: str) -> None:
    assert read(around.format(text), "answer") is None


@pytest.mark.parametrize("text", ["rate_limit", "insufficient_quota", "401", "Overloaded"])
def test_a_bare_word_may_be_what_was_asked_for(text: str) -> None:
    assert read(text, "answer") is None


def test_a_long_result_flagged_as_an_error_counts_only_by_its_notice_line() -> None:
    work = "I read the router and wrote three tests about rate limits and quotas.\n" * 5
    assert read(work, "final-error") is None
    notice = read(
        work + "API Error: You've hit your session limit · resets 9:10pm (UTC)", "final-error"
    )
    assert notice is not None and notice.window == "five_hour"


@pytest.mark.parametrize("text", ["429", "500 items processed", "401 of 500 done", "429 requests"])
def test_a_bare_number_on_stderr_is_no_status(text: str) -> None:
    assert read(text, "stderr") is None


def test_an_error_that_only_names_a_reset_is_a_limit() -> None:
    notice = read("resets 10am (America/Chicago)", "final-error")
    assert notice is not None and notice.resets_at == datetime(2026, 12, 1, 16, tzinfo=UTC)
    assert read("resets 10am (America/Chicago)", "answer") is None
    assert read("resets the counter at 10am", "final-error") is None


def test_a_connector_s_own_words() -> None:
    own = Phrases(quota=(r"you are all out of bananas",), auth=(r"wrong banana",), throttle=("[",))
    assert read("You are all out of bananas. Resets in 3 hours", "stderr", own) == Notice(
        kind="quota",
        text="You are all out of bananas. Resets in 3 hours",
        source="text",
        resets_at=datetime(2026, 11, 30, 22, 7, tzinfo=UTC),
        wait_s=10800.0,
    )
    assert read("My report: you are all out of bananas", "stderr", own) is None
    shaped = read("Error: upstream said: wrong banana", "stderr", own)
    assert shaped is not None and shaped.kind == "auth"
    assert read("I saw a wrong banana", "stderr", own) is None


def test_auth_signatures_are_plain_words() -> None:
    connector = Connector(name="x", command="x", auth_signatures=("seat (1) gone",))
    phrases = phrases_of(connector)
    notice = read("Error: relay: seat (1) gone", "error", phrases)
    assert notice is not None and notice.kind == "auth"
    assert phrases_of(Connector(name="x", command="x")) == Phrases()


SNIPPETS = st.sampled_from(
    [
        "rate limit", "quota exceeded", "usage limit reached", "session limit", "429", "401",
        "resets 8pm (UTC)", "the", "router", "benches", "a pool", "when", "it", "prints", ":", "·",
        "tests", "pass", "and", "src/a.py", "I", "wrote", "now", "so", "\n", "{", "}", '"error":',
    ]
)  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(
    st.one_of(st.text(max_size=120), st.lists(SNIPPETS, max_size=16).map(" ".join)),
    st.sampled_from(["error", "final-error", "stderr", "answer"]),
)
def test_it_never_crashes_and_never_names_a_past(text: str, channel: Channel) -> None:
    notice = read(text, channel)
    assert notice is None or notice.resets_at is None or notice.resets_at >= NOW


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(ANSWERS[1:]),
    st.sampled_from(["I ", "Then ", "We saw ", "The CLI printed ", "It says: "]),
    st.sampled_from(["", " and stopped", ", so I moved on.", " in src/app.py"]),
)
def test_prose_around_limit_words_is_never_a_notice(text: str, lead: str, tail: str) -> None:
    assert read(lead + text + tail, "answer") is None
    assert read(lead + text + tail, "stderr") is None


def test_a_hostile_text_is_read_in_little_time() -> None:
    import time

    started = time.monotonic()
    for text in (
        "you've hit your " + "a " * 4000,
        "[" * 8000,
        "error: " * 1200,
        "1 day " * 1500,
        '{"error":' * 900,
    ):
        read(text)
        read(text, "answer")
    assert time.monotonic() - started < 2.0
