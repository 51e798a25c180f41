from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from meterkit import NOW, Clock, FakeProvider, after

from bullswarm.meters import MemoryMeterStore, MeterError, Meters
from bullswarm.providers.claude_code import meter as claude
from bullswarm.providers.types import Account

TOKEN = "sk-ant-oat01-made-up-and-secret"

USAGE = {
    "five_hour": {"utilization": 61.0, "resets_at": "2026-03-04T15:59:59.571404+00:00"},
    "seven_day": {"utilization": 22.0, "resets_at": "2026-03-08T09:59:59.571468+00:00"},
    "seven_day_opus": {"utilization": 75, "resets_at": "2026-03-08T09:59:59Z"},
    "seven_day_sonnet": None,
    "seven_day_oauth_apps": {"utilization": 99.0, "resets_at": None},
    "extra_usage": {"is_enabled": False, "monthly_limit": None, "utilization": None},
    "limits": [
        {
            "kind": "weekly_scoped",
            "percent": 12,
            "resets_at": "2026-03-08T09:59:59Z",
            "scope": {"model": {"display_name": "Sonnet 5"}},
        },
        {"kind": "session", "percent": 61, "resets_at": "2026-03-04T15:59:59Z"},
        "nonsense",
    ],
}


class Server(ThreadingHTTPServer):
    """A stand-in for the usage endpoint: answers what it is told and remembers what it saw."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = 200
        self.body = json.dumps(USAGE).encode()
        self.extra: dict[str, str] = {}
        self.delay_s = 0.0
        self.seen: list[tuple[str, dict[str, str]]] = []

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        seen = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append((self.path, seen))
        time.sleep(self.server.delay_s)
        self.send_response(self.server.status)
        for name, value in self.server.extra.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "claude-home"
    home.mkdir()
    login(home, TOKEN)
    return home


def login(home: Path, token: str, expires_at: float = 1.0) -> None:
    stored = {"claudeAiOauth": {"accessToken": token, "expiresAt": expires_at, "scopes": []}}
    (home / ".credentials.json").write_text(json.dumps(stored))


def account(home: Path | None) -> Account:
    return Account(
        pool="claude-code",
        provider="claude-code",
        home=None if home is None else str(home),
        identity="digest",
    )


def env(server: Server, **more: str) -> dict[str, str]:
    return {"BULLSWARM_CLAUDE_USAGE_URL": server.base, **more}


def fails(server: Server, home: Path, **more: str) -> MeterError:
    with pytest.raises(MeterError) as caught:
        claude.read_meter(account(home), env(server, **more), NOW)
    assert TOKEN not in str(caught.value)
    return caught.value


def test_the_usage_endpoint_gives_every_window(server: Server, home: Path) -> None:
    read = claude.read_meter(account(home), env(server), NOW)
    assert [(w.kind, w.family, w.used_pct) for w in read.windows] == [
        ("five_hour", None, 61),
        ("weekly", None, 22),
        ("weekly", "opus", 75),
        ("weekly", "sonnet", 12),
    ]
    reset = read.windows[0].resets_at
    assert reset is not None
    assert reset.replace(microsecond=0) == datetime(2026, 3, 4, 15, 59, 59, tzinfo=UTC)
    assert (read.source, read.observed_at, read.account) == ("live", NOW, "digest")
    ((path, headers),) = server.seen
    assert path == "/api/oauth/usage"
    assert headers["authorization"] == f"Bearer {TOKEN}"
    assert headers["anthropic-beta"] == "oauth-2025-04-20"


def test_a_local_expiry_is_only_advice(server: Server, home: Path) -> None:
    login(home, TOKEN, expires_at=1000.0)
    assert claude.read_meter(account(home), env(server), NOW).source == "live"


def test_the_environments_token_goes_before_the_file(server: Server, home: Path) -> None:
    claude.read_meter(account(home), env(server, CLAUDE_CODE_OAUTH_TOKEN="other"), NOW)
    assert server.seen[0][1]["authorization"] == "Bearer other"


def test_a_401_says_to_run_claude_and_the_login_is_left_alone(server: Server, home: Path) -> None:
    server.status = 401
    before = (home / ".credentials.json").read_bytes()
    error = fails(server, home)
    assert error.kind == "expired"
    assert error.reason == "login expired; run claude to refresh it"
    assert (home / ".credentials.json").read_bytes() == before
    assert len(server.seen) == 1


def test_a_403_is_not_an_expired_login(server: Server, home: Path) -> None:
    server.status = 403
    assert fails(server, home).kind == "unreachable"


@pytest.mark.parametrize(
    ("header", "wait"),
    [("0", None), ("90", 90), ("Wed, 04 Mar 2026 12:05:00 GMT", 300), ("soon", None)],
)
def test_a_429_is_a_throttle_and_never_about_the_login(
    server: Server, home: Path, header: str, wait: float | None
) -> None:
    server.status, server.extra = 429, {"Retry-After": header}
    error = fails(server, home)
    assert (error.kind, error.retry_after_s) == ("throttled", wait)


def test_a_500_is_unreachable(server: Server, home: Path) -> None:
    server.status = 500
    assert fails(server, home).kind == "unreachable"


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"{}", b"3", b"\xff\xfe", b'{"five_hour": null}', b'"hello"']
)
def test_an_answer_that_makes_no_sense_is_damaged(server: Server, home: Path, body: bytes) -> None:
    server.body = body
    assert fails(server, home).kind == "damaged"


def test_an_answer_without_end_is_cut(server: Server, home: Path) -> None:
    server.body = b" " * (claude.MAX_BYTES + 100_000)
    assert fails(server, home).kind == "unreachable"


def test_no_answer_in_time_is_unreachable(
    server: Server, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claude, "TIMEOUT_S", 0.2)
    server.delay_s = 1.0
    error = fails(server, home)
    assert error.kind == "unreachable"
    assert "in time" in error.reason


def test_nobody_listening_is_unreachable(home: Path) -> None:
    with pytest.raises(MeterError) as caught:
        claude.read_meter(account(home), {"BULLSWARM_CLAUDE_USAGE_URL": "http://127.0.0.1:9"}, NOW)
    assert caught.value.kind == "unreachable"


def test_a_redirect_does_not_carry_the_token_on(server: Server, home: Path) -> None:
    server.status, server.extra = 302, {"Location": f"{server.base}/elsewhere"}
    assert fails(server, home).kind == "unreachable"
    assert [path for path, _ in server.seen] == ["/api/oauth/usage"]


@pytest.mark.parametrize("quoted", [True, False])
def test_a_limit_notice_in_place_of_numbers_is_a_full_window(
    server: Server, home: Path, quoted: bool
) -> None:
    text = "You've hit your limit · resets 3:20pm (Asia/Shanghai)"
    server.body = json.dumps(text).encode() if quoted else text.encode()
    now = datetime(2026, 3, 4, 6, 0, tzinfo=UTC)
    read = claude.read_meter(account(home), env(server), now)
    (window,) = read.windows
    assert (window.kind, window.used_pct) == ("other", 100)
    assert window.resets_at == datetime(2026, 3, 4, 7, 20, tzinfo=UTC)


def test_a_window_without_a_number_is_unknown_not_zero() -> None:
    (window,) = claude.parse_usage(
        {"five_hour": {"utilization": None, "resets_at": "2026-03-04T15:00:00Z"}}
    )
    assert window.used_pct is None


def test_the_fuller_of_two_windows_of_one_family_counts() -> None:
    payload = {
        "seven_day_sonnet": {"utilization": 10, "resets_at": None},
        "seven_day_sonnet_max": {"utilization": 90, "resets_at": None},
    }
    (window,) = claude.parse_usage(payload)
    assert (window.family, window.used_pct) == ("sonnet", 90)


@pytest.mark.parametrize(
    "variable",
    ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK"],
)
def test_a_login_that_pays_by_use_has_no_meter_and_asks_nobody(
    server: Server, home: Path, variable: str
) -> None:
    read = claude.read_meter(account(home), env(server, **{variable: "1"}), NOW)
    assert (read.source, read.windows) == ("none", ())
    assert read.note is not None
    assert variable in read.note
    assert server.seen == []


def test_without_a_login_there_is_nothing_to_read(server: Server, home: Path) -> None:
    for content in (None, "{", "{}", "[]", '{"claudeAiOauth": {"accessToken": ""}}'):
        path = home / ".credentials.json"
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_text(content)
        assert fails(server, home).kind == "missing"
    assert server.seen == []


def test_where_requests_go_elsewhere_the_token_does_not_follow(home: Path) -> None:
    for base in ("https://relay.example/v1", "http://127.0.0.1:1", "https://evilanthropic.com"):
        with pytest.raises(MeterError) as caught:
            claude.read_meter(account(home), {"ANTHROPIC_BASE_URL": base}, NOW)
        assert caught.value.kind == "missing"


@pytest.mark.parametrize(
    ("variables", "url"),
    [
        ({}, "https://api.anthropic.com/api/oauth/usage"),
        (
            {"ANTHROPIC_BASE_URL": "https://api.anthropic.com"},
            "https://api.anthropic.com/api/oauth/usage",
        ),
        (
            {"BULLSWARM_CLAUDE_USAGE_URL": "https://x.example/"},
            "https://x.example/api/oauth/usage",
        ),
        (
            {"BULLSWARM_CLAUDE_USAGE_URL": "http://localhost:1/api/oauth/usage"},
            "http://localhost:1/api/oauth/usage",
        ),
    ],
)
def test_where_the_usage_is_read(variables: dict[str, str], url: str) -> None:
    assert claude.usage_url(variables) == url


def test_a_token_never_travels_in_the_clear() -> None:
    with pytest.raises(MeterError, match="https"):
        claude.usage_url({"BULLSWARM_CLAUDE_USAGE_URL": "http://x.example"})


def test_where_the_login_is_kept(home: Path) -> None:
    assert claude.login_file(account(home), {}) == home / ".credentials.json"
    assert claude.login_file(account(None), {"CLAUDE_CONFIG_DIR": "/c"}) == Path(
        "/c/.credentials.json"
    )
    assert claude.login_file(account(home), {"CLAUDE_SECURESTORAGE_CONFIG_DIR": "/s"}) == Path(
        "/s/.credentials.json"
    )


def test_response_headers_are_a_reading_for_nothing() -> None:
    windows = claude.windows_from_headers(
        {
            "Anthropic-RateLimit-Unified-5h-Status": "rejected",
            "anthropic-ratelimit-unified-5h-utilization": "1.0",
            "anthropic-ratelimit-unified-5h-reset": str(after(60).timestamp()),
            "anthropic-ratelimit-unified-7d-utilization": "0.4",
            "anthropic-ratelimit-unified-7d-reset": "x",
        }
    )
    assert [(w.kind, w.used_pct, w.resets_at) for w in windows] == [
        ("five_hour", 100, after(60)),
        ("weekly", 40, None),
    ]
    assert claude.windows_from_headers({}) == ()


def test_the_token_is_kept_nowhere(server: Server, home: Path, tmp_path: Path) -> None:
    store, ours = MemoryMeterStore(), tmp_path / "ours"
    provider = FakeProvider(lambda a, now: claude.read_meter(a, env(server), now))
    clock = Clock()
    meters = Meters(store, ours, clock)
    for status in (200, 401, 429):
        server.status = status
        meters.read(provider, account(home), fresh=True)
        clock.pass_(days=1)
    kept = [path.read_bytes() for path in ours.rglob("*") if path.is_file()]
    assert kept
    assert not any(TOKEN.encode() in data for data in kept)
    assert TOKEN not in repr(store.readings) + repr(store.backoffs)


def test_two_processes_share_one_back_off(server: Server, home: Path, tmp_path: Path) -> None:
    server.status, server.extra, server.delay_s = 429, {"Retry-After": "0"}, 0.2
    script = textwrap.dedent(
        """
        import sys
        sys.path.insert(0, sys.argv[1])
        from meterkit import FakeProvider
        from meterstore import SqliteMeterStore
        from bullswarm.meters import Meters
        from bullswarm.providers.claude_code import meter
        from bullswarm.providers.types import Account
        home, ours, url = sys.argv[2:5]
        account = Account(pool="claude-code", provider="claude-code", home=home, identity="d")
        env = {"BULLSWARM_CLAUDE_USAGE_URL": url}
        provider = FakeProvider(lambda a, now: meter.read_meter(a, env, now))
        meters = Meters(SqliteMeterStore(ours + "/s.db"), ours)
        for _ in range(3):
            print(meters.read(provider, account, fresh=True).note)
        """
    )
    ours = tmp_path / "ours"
    ours.mkdir()
    here = str(Path(__file__).parent)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", script, here, str(home), str(ours), server.base],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [one.communicate(timeout=60)[0].splitlines() for one in running]
    assert [one.returncode for one in running] == [0, 0]
    assert len(server.seen) == 1
    for lines in said:
        assert len(lines) == 3
        assert all("throttled (429)" in line for line in lines)
