"""Each CLI's events in our words: what its stream says, and nothing more."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bullswarm.dispatch.types import Event, Usage
from bullswarm.providers.registry import Registry

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = {"claude": "claude-code"}
CODEX_401 = (
    "unexpected status 401 Unauthorized: Incorrect API key provided, "
    "url: http://127.0.0.1:8080/v1/responses"
)


def events(fixture: str) -> list[Event]:
    cli = fixture.partition("-")[0]
    provider = Registry.load(None, {}, {}, entry_points=False).get(NAMES.get(cli, cli))
    lines = (FIXTURES / f"{fixture}.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for line in lines for event in provider.read_event(json.loads(line))]


def brief(event: Event) -> tuple[Any, ...]:
    return (event.kind, event.text, event.status, event.code, event.is_error)


def at(epoch: int) -> datetime:
    return datetime.fromtimestamp(epoch, UTC)


@pytest.mark.parametrize(
    ("fixture", "kinds"),
    [
        ("claude-tool", "start text tool limit tool-result progress text final"),
        ("claude-auth", "start retry retry"),
        ("claude-limit", "start limit error final"),
        ("claude-overage", "limit limit"),
        ("claude-turns", "final"),
        ("claude-subagent", "progress tool"),
        (
            "codex-tool",
            "start progress progress tool tool-result tool tool-result progress text final",
        ),
        ("codex-auth", "start retry retry error final"),
        ("codex-throttle", "retry error final"),
        ("codex-limit", "error final"),
        ("codex-cut", "retry final final"),
        ("opencode-tool", "progress tool progress progress text final"),
        ("opencode-auth", "error"),
        ("opencode-limit", "error"),
        ("opencode-other", "error error final progress"),
        ("qwen-tool", "start tool tool-result text final"),
        ("qwen-auth", "start error final"),
        ("qwen-quotes", "text final"),
        ("gemini-tool", "start tool tool-result text text final"),
        ("gemini-error", "progress error final"),
    ],
)
def test_a_stream_becomes_these_events(fixture: str, kinds: str) -> None:
    assert " ".join(e.kind for e in events(fixture)) == kinds


@pytest.mark.parametrize(
    ("fixture", "session", "model"),
    [
        ("claude-tool", "3b2e70d1", "claude-sonnet-5"),
        ("codex-tool", "01a22fe2", None),
        ("opencode-tool", "ses_dd01", None),
        ("qwen-tool", "4e98", "mock-model"),
        ("gemini-tool", "f288", "gemini-2.5-pro"),
    ],
)
def test_the_first_event_names_the_session_that_can_be_resumed(
    fixture: str, session: str, model: str | None
) -> None:
    first = events(fixture)[0]
    assert (first.session, first.model) == (session, model)


@pytest.mark.parametrize(
    ("fixture", "text", "usage", "turns"),
    [
        (
            "claude-tool",
            "There is one file.",
            Usage(input_tokens=240, output_tokens=50, cached_tokens=7, cost_usd=0.00147),
            2,
        ),
        ("codex-tool", "", Usage(input_tokens=240, output_tokens=50, cached_tokens=40), None),
        (
            "opencode-tool",
            "",
            Usage(input_tokens=130, output_tokens=25, cached_tokens=3, cost_usd=0.5),
            None,
        ),
        (
            "qwen-tool",
            "It says hello.",
            Usage(input_tokens=240, output_tokens=50, cached_tokens=0),
            2,
        ),
        ("gemini-tool", "", Usage(input_tokens=240, output_tokens=50, cached_tokens=5), None),
    ],
)
def test_the_last_event_holds_answer_and_cost(
    fixture: str, text: str, usage: Usage, turns: int | None
) -> None:
    last = events(fixture)[-1]
    assert (last.kind, last.is_error, last.text) == ("final", False, text)
    assert (last.usage, last.turns) == (usage, turns)


@pytest.mark.parametrize(
    ("fixture", "tool", "words"),
    [
        ("claude-tool", "Bash", '{"command":"ls"}'),
        ("codex-tool", "command_execution", "/bin/bash -lc ls"),
        ("opencode-tool", "bash", '{"command":"ls"}'),
        ("qwen-tool", "read_file", '{"file_path":"/a"}'),
        ("gemini-tool", "read_file", '{"file_path":"a.txt"}'),
    ],
)
def test_work_is_named(fixture: str, tool: str, words: str) -> None:
    found = next(e for e in events(fixture) if e.kind == "tool")
    assert (found.tool, found.text) == (tool, words)


def test_claude_retries_carry_status_count_and_delay() -> None:
    one = events("claude-auth")[2]
    assert brief(one) == ("retry", "authentication_failed", 401, "authentication_failed", False)
    assert (one.attempt, one.max_attempts) == (2, 10)
    assert one.retry_after_s == pytest.approx(1.23078)


def test_claude_limit_reports_name_window_reset_and_share() -> None:
    warning = next(e for e in events("claude-tool") if e.kind == "limit")
    assert (warning.limit_status, warning.window) == ("warning", "five_hour")
    assert (warning.used_pct, warning.resets_at) == (93.0, at(1796106887))
    rejected = next(e for e in events("claude-limit") if e.kind == "limit")
    assert (rejected.limit_status, rejected.window) == ("rejected", "seven_day_opus")
    assert (rejected.used_pct, rejected.resets_at) == (None, at(1796365853))


def test_a_spent_window_that_goes_on_as_extra_usage_is_no_stop() -> None:
    over, allowed = events("claude-overage")
    assert (over.limit_status, over.window) == ("warning", "five_hour")
    assert (allowed.limit_status, allowed.window, allowed.resets_at) == ("allowed", None, None)


def test_claude_words_about_an_error_are_the_providers_not_the_assistants() -> None:
    _, _, error, final = events("claude-limit")
    text = "You've hit your Opus limit · resets Dec 4, 6:30am (UTC)"
    assert brief(error) == ("error", text, None, "rate_limit", False)
    assert brief(final) == ("final", text, 429, None, True)


def test_a_claude_error_subtype_is_an_error_whatever_the_flag_says() -> None:
    (final,) = events("claude-turns")
    assert brief(final) == (
        "final",
        "Reached maximum number of turns (9)",
        None,
        "error_max_turns",
        True,
    )


@pytest.mark.parametrize(
    ("fixture", "expected"),
    [
        (
            "codex-auth",
            [
                ("retry", f"Reconnecting... 1/5 ({CODEX_401})", 401, None, False),
                ("retry", f"Reconnecting... 2/5 ({CODEX_401})", 401, None, False),
                ("error", CODEX_401, 401, None, False),
                ("final", CODEX_401, 401, None, True),
            ],
        ),
        (
            "codex-throttle",
            [
                (
                    "retry",
                    "Reconnecting... 5/5 (exceeded retry limit, last status: 429 Too Many "
                    "Requests)",
                    429,
                    None,
                    False,
                ),
                (
                    "error",
                    "exceeded retry limit, last status: 429 Too Many Requests",
                    429,
                    None,
                    False,
                ),
                (
                    "final",
                    "exceeded retry limit, last status: 429 Too Many Requests",
                    429,
                    None,
                    True,
                ),
            ],
        ),
    ],
)
def test_codex_statuses_are_read_from_its_words(
    fixture: str, expected: list[tuple[Any, ...]]
) -> None:
    assert [brief(e) for e in events(fixture) if e.kind != "start"] == expected


def test_codex_reconnects_count() -> None:
    counts = [(e.attempt, e.max_attempts) for e in events("codex-auth") if e.kind == "retry"]
    assert counts == [(1, 5), (2, 5)]


def test_codex_limits_keep_their_words_and_their_code() -> None:
    error, final = events("codex-limit")
    assert error.text.endswith("try again at 9:07 PM.")
    assert (final.code, final.status, final.is_error) == ("usage_limit_exceeded", None, True)


def test_opencode_errors_carry_status_code_and_headers() -> None:
    (auth,) = events("opencode-auth")
    assert brief(auth) == ("error", "Incorrect API key provided", 401, "invalid_api_key", False)
    (limit,) = events("opencode-limit")
    assert (limit.status, limit.code) == (429, "usage_limit_reached")
    assert limit.headers["x-codex-primary-reset-at"] == "1796072954"


def test_opencode_stops_for_a_reason_other_than_done_are_no_answer() -> None:
    named, odd, cut, unknown = events("opencode-other")
    assert (named.text, odd.text) == ("no such model", "odd")
    assert (cut.kind, cut.is_error, cut.code) == ("final", True, "length")
    assert unknown.kind == "progress"


def test_qwen_api_errors_are_errors_though_it_calls_them_success() -> None:
    _, error, final = events("qwen-auth")
    text = "[API Error: 401 Incorrect API key provided]"
    assert brief(error) == ("error", text, 401, None, False)
    assert brief(final) == ("final", text, 401, None, True)


def test_qwen_answers_that_quote_an_api_error_are_answers() -> None:
    said, final = events("qwen-quotes")
    assert (said.kind, final.is_error, final.status) == ("text", False, None)


def test_gemini_texts_come_in_pieces() -> None:
    pieces = [e for e in events("gemini-tool") if e.kind == "text"]
    assert [(p.text, p.delta) for p in pieces] == [("It says ", True), ("hello.", True)]


def test_gemini_failures_keep_type_and_words() -> None:
    final = events("gemini-error")[-1]
    assert brief(final) == (
        "final",
        "Please set an Auth method",
        None,
        "FatalAuthenticationError",
        True,
    )


@pytest.mark.parametrize(
    ("fixture", "answer"),
    [
        ("gemini-tool", "It says hello."),
        ("codex-tool", "new.txt is there."),
        ("opencode-tool", "There is one file."),
        ("qwen-tool", "It says hello."),
        ("claude-tool", "There is one file."),
    ],
)
def test_the_watcher_gets_the_whole_answer_of_every_cli(fixture: str, answer: str) -> None:
    from bullswarm.dispatch.facts import Facts

    cli = fixture.partition("-")[0]
    provider = Registry.load(None, {}, {}, entry_points=False).get(NAMES.get(cli, cli))
    facts = Facts(provider.read_event, text_mode=False)
    facts.stdout((FIXTURES / f"{fixture}.jsonl").read_bytes())
    now = at(1796107596)
    ended = facts.ended("exit", 0, started_at=now, ended_at=now, wall_s=1.0, survivors=())
    assert ended.answer == answer
