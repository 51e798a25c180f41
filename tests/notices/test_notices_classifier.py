"""One attempt's notices: structured events first, retries counted, stderr, and what never counts.

The events are those of the real clients as their readers put them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bullswarm.dispatch.notices import Classifier
from bullswarm.dispatch.types import Event, Notice
from bullswarm.providers.types import EarlyKill, Phrases

NOW = datetime(2026, 11, 30, 19, 7, tzinfo=UTC)


def make(**kwargs: Any) -> Classifier:
    return Classifier(now=NOW, zone=UTC, **kwargs)


def feed(classifier: Classifier, *events: Event) -> list[Notice]:
    return [n for n in map(classifier.feed, events) if n is not None]


def epoch(value: int) -> datetime:
    return datetime.fromtimestamp(value, UTC)


# --- claude ---


@pytest.mark.parametrize(
    ("window", "want", "family"),
    [
        ("five_hour", "five_hour", None),
        ("seven_day", "weekly", None),
        ("seven_day_opus", "weekly", "opus"),
        ("seven_day_sonnet", "weekly", "sonnet"),
        ("seven_day_overage_included", "weekly", "fable"),
        ("overage", "balance", None),
        ("something_new", None, None),
        (None, None, None),
    ],
)
def test_a_rejected_limit_event_ends_the_attempt(
    window: str | None, want: str | None, family: str | None
) -> None:
    at = epoch(1796073058)
    event = Event(kind="limit", limit_status="rejected", window=window, resets_at=at)
    notice = make().feed(event)
    assert notice is not None and notice.certain and notice.source == "event"
    assert (notice.kind, notice.window, notice.family) == ("quota", want, family)
    assert notice.resets_at == at


@pytest.mark.parametrize("status", ["allowed", "allowed_warning", "warning", None, ""])
def test_any_other_limit_status_ends_nothing(status: str | None) -> None:
    event = Event(kind="limit", limit_status=status, window="five_hour", used_pct=99.0)
    classifier = make()
    assert classifier.feed(event) is None
    assert not classifier.failed


@pytest.mark.parametrize(("ago", "want"), [(60, NOW), (299, NOW), (301, None), (86400, None)])
def test_a_reset_just_past_is_now_and_one_long_past_is_unknown(
    ago: int, want: datetime | None
) -> None:
    at = NOW - timedelta(seconds=ago)
    notice = make().feed(Event(kind="limit", limit_status="rejected", resets_at=at))
    assert notice is not None and notice.resets_at == want


def claude_retry(status: int, error: str, attempt: int) -> Event:
    return Event(kind="retry", status=status, code=error, attempt=attempt, max_attempts=10)


@pytest.mark.parametrize(
    ("status", "error", "kind", "limit"),
    [
        (401, "authentication_failed", "auth", 2),
        (403, "authentication_failed", "auth", 2),
        (429, "rate_limit", "throttle", 2),
        (529, "overloaded", "overloaded", 4),
        (503, "server_error", "overloaded", 4),
        (None, "unknown", "overloaded", 5),
    ],
)
def test_retries_of_a_kind_in_a_row_end_the_attempt(
    status: int, error: str, kind: str, limit: int
) -> None:
    classifier = make()
    notices = feed(classifier, *(claude_retry(status, error, n + 1) for n in range(limit)))
    assert [n.kind for n in notices] == [kind] * limit
    assert [n.certain for n in notices] == [False] * (limit - 1) + [True]


def test_the_connector_says_how_many() -> None:
    notice = make(early_kill=EarlyKill(auth=1)).feed(claude_retry(401, "authentication_failed", 1))
    assert notice is not None and notice.certain


def test_an_answer_between_retries_starts_the_count_anew() -> None:
    classifier = make()
    for _ in range(5):
        notices = feed(
            classifier,
            claude_retry(429, "rate_limit", 1),
            Event(kind="text", text="Reading on."),
        )
        assert not any(n.certain for n in notices)


def test_a_retry_that_names_a_usage_limit_is_one_at_once() -> None:
    event = Event(kind="retry", status=429, text="You've hit your weekly limit", attempt=1)
    notice = make().feed(event)
    assert notice is not None and (notice.kind, notice.window) == ("quota", "weekly")
    assert notice.certain


def claude_end(text: str, status: int | None = 429, is_error: bool = True) -> Event:
    return Event(kind="final", text=text, status=status, is_error=is_error, code="success")


def test_claude_s_own_end_on_a_subscription_limit() -> None:
    notice = make().feed(claude_end("You've hit your session limit · resets 9:10pm (UTC)"))
    assert notice is not None and (notice.kind, notice.window) == ("quota", "five_hour")
    assert notice.resets_at == datetime(2026, 11, 30, 21, 10, tzinfo=UTC)
    assert notice.status == 429 and notice.certain


def test_claude_s_own_end_with_an_api_key_is_a_throttle() -> None:
    text = (
        "API Error: Request rejected (429) · This request would exceed your account's rate limit."
        " Please try again later."
    )
    notice = make().feed(claude_end(text))
    assert notice is not None and notice.kind == "throttle"


def test_the_limit_event_and_the_end_agree_and_the_later_one_is_kept() -> None:
    notices = feed(
        make(),
        Event(
            kind="limit",
            limit_status="rejected",
            window="seven_day_opus",
            resets_at=epoch(1796365853),
        ),
        claude_end("You've hit your Opus limit · resets Dec 4, 6:30am (UTC)"),
    )
    assert [(n.kind, n.family) for n in notices] == [("quota", "opus")] * 2


def test_an_end_in_error_that_is_no_notice_is_none() -> None:
    assert make().feed(claude_end("I ran out of turns; the quota tests still fail.", None)) is None


# --- codex ---

CODEX_LIMIT = (
    "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit "
    "https://chatgpt.com/settings/usage to purchase more credits or try again at 9:07 PM."
)


def test_codex_usage_limit() -> None:
    notices = feed(
        make(),
        Event(kind="start", session="s"),
        Event(kind="error", text=CODEX_LIMIT),
        Event(kind="final", is_error=True, text=CODEX_LIMIT),
    )
    assert [n.kind for n in notices] == ["quota", "quota"]
    assert all(n.certain for n in notices)
    assert notices[0].resets_at == datetime(2026, 11, 30, 21, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("inner", "kind", "limit"),
    [
        (
            "unexpected status 401 Unauthorized: Incorrect API key provided, url: http://h/v1",
            "auth",
            2,
        ),
        ("exceeded retry limit, last status: 429 Too Many Requests", "throttle", 2),
        (
            "unexpected status 503 Service Unavailable: Overloaded, url: http://h/v1",
            "overloaded",
            4,
        ),
        ("stream disconnected before completion: stream closed", "overloaded", 5),
    ],
)
@pytest.mark.parametrize("kind_of_event", ["error", "retry"])
def test_codex_reconnects_are_counted(
    inner: str, kind: str, limit: int, kind_of_event: Any
) -> None:
    events = [
        Event(kind=kind_of_event, text=f"Reconnecting... {n}/5 ({inner})") for n in range(1, 6)
    ]
    notices = feed(make(), *events)
    certain = [i + 1 for i, n in enumerate(notices) if n.certain]
    assert certain[0] == limit
    assert notices[0].kind == kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("usage_limit_exceeded", "quota"),
        ("usageLimitExceeded", "quota"),
        ("UsageLimitReached", "quota"),
        ("unauthorized", "auth"),
        ("refresh_token_reused", "auth-race"),
    ],
)
def test_an_error_code_decides(code: str, kind: str) -> None:
    notice = make().feed(Event(kind="error", code=code, text="Something went wrong"))
    assert notice is not None and notice.kind == kind and notice.certain


# --- opencode ---

OPENCODE_HEADERS = {
    "content-type": "application/json",
    "X-Codex-Primary-Reset-At": "1796072954",
    "x-codex-primary-used-percent": "100",
    "x-codex-primary-window-minutes": "300",
    "x-codex-secondary-reset-at": "1796365754",
    "x-codex-secondary-used-percent": "40",
    "x-codex-secondary-window-minutes": "10080",
}


def test_opencode_limit_takes_its_window_and_reset_from_the_headers() -> None:
    event = Event(
        kind="error", status=429, text="The usage limit has been reached", headers=OPENCODE_HEADERS
    )
    notice = make().feed(event)
    assert notice is not None and notice.kind == "quota" and notice.certain
    assert (notice.window, notice.resets_at) == ("five_hour", epoch(1796072954))


def test_the_full_window_that_ends_last_binds() -> None:
    headers = OPENCODE_HEADERS | {"x-codex-secondary-used-percent": "100"}
    notice = make().feed(Event(kind="error", status=429, text="Too Many Requests", headers=headers))
    assert notice is not None and notice.kind == "quota"
    assert (notice.window, notice.resets_at) == ("weekly", epoch(1796365754))


def test_unified_headers_name_the_window() -> None:
    headers = {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-representative-claim": "seven_day_opus",
        "anthropic-ratelimit-unified-reset": "1796365853",
    }
    notice = make().feed(Event(kind="error", status=429, text="rate limited", headers=headers))
    assert notice is not None
    assert (notice.kind, notice.window, notice.family) == ("quota", "weekly", "opus")
    assert notice.resets_at == epoch(1796365853)


def test_opencode_throttle_keeps_the_named_wait() -> None:
    event = Event(
        kind="error",
        status=429,
        text="Rate limit reached for requests",
        headers={"Retry-After": "1"},
    )
    notice = make().feed(event)
    assert notice is not None and (notice.kind, notice.wait_s) == ("throttle", 1.0)
    assert not notice.certain


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("0", None), ("120", 120.0), ("Mon, 30 Nov 2026 19:09:00 GMT", 120.0), ("soon", None)],
)
def test_retry_after_in_its_forms(header: str, seconds: float | None) -> None:
    event = Event(
        kind="error", status=429, text="Too Many Requests", headers={"retry-after": header}
    )
    notice = make().feed(event)
    assert notice is not None and (notice.kind, notice.wait_s) == ("throttle", seconds)


def test_opencode_auth_and_overload() -> None:
    auth = make().feed(Event(kind="error", status=401, text="Incorrect API key provided"))
    assert auth is not None and auth.kind == "auth" and auth.certain
    busy = make().feed(Event(kind="error", status=503, text="Overloaded"))
    assert busy is not None and busy.kind == "overloaded" and not busy.certain


def test_a_429_is_never_a_sign_in_failure() -> None:
    event = Event(kind="error", status=429, text="credentials expired")
    notice = make().feed(event)
    assert notice is not None and notice.kind == "throttle"


def test_an_error_that_is_no_provider_s_no_is_none() -> None:
    classifier = make()
    assert classifier.feed(Event(kind="error", text="File limits.md not found")) is None
    assert classifier.failed


# --- qwen ---


def test_qwen_answers_its_error_and_exits_well() -> None:
    text = "[API Error: 401 Incorrect API key provided]"
    notices = feed(
        make(), Event(kind="text", text=text), Event(kind="final", text=text, is_error=False)
    )
    assert [(n.kind, n.certain) for n in notices] == [("auth", False)]


# --- stderr ---


def lines(classifier: Classifier, *texts: str) -> list[Notice]:
    return [n for n in map(classifier.feed_stderr, texts) if n is not None]


def test_one_quota_line_on_stderr_ends_the_attempt() -> None:
    notices = lines(make(), "Loading...", "You've hit your session limit · resets 9:10pm (UTC)")
    assert [(n.kind, n.certain) for n in notices] == [("quota", True)]


def test_a_notice_wrapped_over_two_lines_is_joined() -> None:
    classifier = make()
    notices = lines(
        classifier,
        "You've hit your",
        "usage limit. Upgrade to Pro or try again at",
        "Dec 4th, 2026 12:04 AM.",
    )
    assert notices[-1].certain and notices[-1].kind == "quota"
    assert notices[-1].resets_at == datetime(2026, 12, 4, 0, 4, tzinfo=UTC)
    assert not any(n.certain for n in notices[:-1])


def test_an_unfinished_notice_counts_at_the_end_all_the_same() -> None:
    classifier = make()
    notices = lines(classifier, "You've hit your usage limit. Try again at")
    assert [n.certain for n in notices] == [False]
    last = classifier.finish(failed=True)
    assert last is not None and last.certain and last.kind == "quota"


def test_the_reset_on_the_next_line_is_the_notice_s() -> None:
    notices = lines(
        make(), "Error: Individual quota reached.", "  code: 429", "  Resets in 2h42m39s"
    )
    assert [n.certain for n in notices][-1]
    assert notices[-1].resets_at == NOW + timedelta(hours=2, minutes=42, seconds=39)


def test_a_later_notice_replaces_an_earlier_one() -> None:
    notices = lines(
        make(),
        "You've hit your usage limit. Try again in 3 hours 2 minutes.",
        "You've hit your usage limit. Try again in 4 days 2 hours 46 minutes.",
    )
    assert notices[-1].resets_at == NOW + timedelta(days=4, hours=2, minutes=46)


def test_retry_lines_on_stderr_are_counted() -> None:
    notices = lines(
        make(),
        "Attempt 1 failed with status 429. Retrying with backoff... ApiError: Too Many Requests",
        "    at Module.retry (file:///x/bundle.js:1:1)",
        "Attempt 2 failed with status 429. Retrying with backoff... ApiError: Too Many Requests",
    )
    assert [(n.kind, n.certain) for n in notices] == [("throttle", False), ("throttle", True)]


def test_retry_lines_for_a_dead_login_are_counted_too() -> None:
    notices = lines(make(), *["Attempt 1 failed with status 401. Retrying with backoff..."] * 2)
    assert [(n.kind, n.certain) for n in notices] == [("auth", False), ("auth", True)]


def test_a_spent_quota_in_a_retry_line_needs_no_second_one() -> None:
    line = (
        'Attempt 1 failed with status 429. Retrying with backoff... ApiError: {"error":{"message":'
        '"{\\n \\"error\\": {\\n \\"code\\": 429,\\n \\"message\\": \\"You exceeded your '
        'current quota\\",'
        '\\n \\"status\\": \\"RESOURCE_EXHAUSTED\\"}}"}}'
    )
    notices = lines(make(), line)
    assert [(n.kind, n.certain) for n in notices] == [("quota", True)]


@pytest.mark.parametrize(
    "line",
    [
        "Not logged in · Please run /login",
        "Error: auth_unavailable: no auth available",
        "JSON Parse error: Unexpected EOF",
        "ERROR: refresh_token_reused",
    ],
)
def test_sign_in_words_on_stderr_count_only_once_the_stream_failed(line: str) -> None:
    well = make()
    assert [n.certain for n in lines(well, line)] == [False]
    assert well.finish(failed=False) is None
    failed = make()
    lines(failed, line)
    last = failed.finish(failed=True)
    assert last is not None and last.certain


def test_sign_in_words_after_an_error_event_count_at_once() -> None:
    classifier = make()
    classifier.feed(Event(kind="error", text="stream closed"))
    notices = lines(classifier, "Error: authentication_error: token gone")
    assert [(n.kind, n.certain) for n in notices] == [("auth", True)]


@pytest.mark.parametrize(
    "line",
    [
        "        PASS [   0.012s] router::tests rate limit exceeded",
        "src/limits.py:3: quota exceeded",
        "+    You've hit your session limit · resets 9:10pm (UTC)",
        "Reading additional input from stdin...",
        "",
        "   ",
    ],
)
def test_other_lines_on_stderr_are_none(line: str) -> None:
    classifier = make()
    assert lines(classifier, line) == []
    assert classifier.finish(failed=True) is None


def test_what_was_held_is_over_once_the_provider_answers_again() -> None:
    classifier = make()
    lines(classifier, "Attempt 1 failed with status 429. Retrying with backoff...", "Not logged in")
    classifier.feed(Event(kind="text", text="Working."))
    assert classifier.finish(failed=True) is None


# --- the worker's own words ---

WORDS = st.lists(
    st.sampled_from(
        [
            CODEX_LIMIT, "rate_limit", "quota exceeded", "You've hit your session limit", "429",
            "401 Unauthorized", "auth_unavailable", "API Error: Rate limit reached", "the", "\n",
            '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected"}}', "resets 8pm "
            "(UTC)",
        ]
    ),
    max_size=6,
).map(" ".join)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(WORDS, st.sampled_from(["text", "tool", "tool-result", "progress", "usage", "start"]))
def test_what_the_worker_says_or_reads_never_counts(text: str, kind: Any) -> None:
    classifier = make(phrases=Phrases(quota=("quota",), auth=("auth",)))
    assert classifier.feed(Event(kind=kind, text=text, tool="shell")) is None
    assert not classifier.failed
    assert classifier.finish(failed=True) is None


@settings(max_examples=100, deadline=None)
@given(
    st.builds(
        Event,
        kind=st.sampled_from(["retry", "limit", "error", "final", "text"]),
        text=st.one_of(WORDS, st.text(max_size=40)),
        status=st.sampled_from([None, 0, 200, 400, 401, 402, 403, 429, 500, 529, 99999]),
        code=st.sampled_from([None, "", "rate_limit", "x" * 50, "resource_exhausted"]),
        headers=st.dictionaries(
            st.sampled_from(["retry-after", "retry-after-ms", *OPENCODE_HEADERS]),
            st.sampled_from(["", "0", "-1", "nan", "inf", "1e400", "100", "x", "9" * 30]),
            max_size=5,
        ),
        retry_after_s=st.sampled_from([None, 0.0, 5.0, 1e12, float("inf"), float("nan")]),
        limit_status=st.sampled_from([None, "rejected", "allowed"]),
        window=st.sampled_from([None, "", "five_hour", "seven_day_"]),
        resets_at=st.one_of(st.none(), st.datetimes(timezones=st.just(UTC))),
        is_error=st.booleans(),
    )
)
def test_no_event_makes_it_crash_or_name_a_past(event: Event) -> None:
    notice = make().feed(event)
    assert notice is None or notice.resets_at is None or notice.resets_at >= NOW


# --- a CLI's log on stderr ---

LOGGED = r"level=ERROR .*\bsmall=false .*\berror\.error=\"(?P<text>(?:[^\"\\]|\\.)*)\""


def log_line(error: str, small: str = "false") -> str:
    return (
        'timestamp=2026-12-01T05:18:11.689Z level=ERROR run=641c message="stream error" '
        f'providerID=rig small={small} agent=build error.error="{error}"'
    )


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (log_line("AI_APICallError: The usage limit has been reached"), "quota"),
        (log_line("AI_RetryError: Failed after 3 attempts. Last error: Overloaded"), None),
        (log_line("AI_APICallError: Overloaded"), "overloaded"),
        # The model that names the session is another one.
        (log_line("AI_APICallError: The usage limit has been reached", small="true"), None),
        ('level=ERROR message="Failed to fetch models.dev"', None),
    ],
)
def test_a_log_line_is_read_as_what_the_provider_said_in_it(line: str, kind: str | None) -> None:
    found = make(stderr_text=LOGGED).feed_stderr(line)
    assert (found.kind if found else None) == kind
    if kind == "quota":
        assert found is not None and found.certain


@pytest.mark.parametrize(("pause", "named"), [(1.0, 1.0), (600.0, 600.0), (0.6235, None)])
def test_a_pause_that_a_cli_chose_for_itself_is_no_word_of_its_provider(
    pause: float, named: float | None
) -> None:
    event = Event(kind="retry", status=429, code="rate_limit", retry_after_s=pause, attempt=1)
    found = make().feed(event)
    assert found is not None and found.kind == "throttle" and found.wait_s == named


@pytest.mark.parametrize(
    ("seconds", "words", "want"),
    [
        (38, "resets 7:07pm (UTC)", 38),
        (5400, "resets 8:37pm (UTC)", 5400),
        (5430, "resets 8:37pm (UTC)", 5430),
        # Another window binds now.
        (5430, "resets Dec 4, 6:30am (UTC)", 3 * 86_400 + 11 * 3600 + 23 * 60),
    ],
)
def test_words_to_the_minute_do_not_blunt_the_reset_of_the_event_before_them(
    seconds: int, words: str, want: int
) -> None:
    exact = NOW + timedelta(seconds=seconds)
    classifier = make()
    first, last = feed(
        classifier,
        Event(kind="limit", limit_status="rejected", window="five_hour", resets_at=exact),
        Event(kind="final", is_error=True, status=429, text=f"You've hit your limit · {words}"),
    )
    assert first.resets_at == exact
    assert last.resets_at == NOW + timedelta(seconds=want)
