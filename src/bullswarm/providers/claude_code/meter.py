"""Claude Code's meter: the usage endpoint its own ``/usage`` page reads. Never spends a prompt.

``GET <base>/api/oauth/usage`` with the login that the CLI keeps. The base is
``BULLSWARM_CLAUDE_USAGE_URL``, else ``https://api.anthropic.com``: like the CLI, it does not follow
``ANTHROPIC_BASE_URL``. Where that points elsewhere, workers spend somebody else's quota, so there
is nothing to read unless the operator names the endpoint, and the token goes nowhere it was not
sent to by the operator's choice. The token is used for the one request and is neither stored,
refreshed nor shown; whether it has expired is for the server to say.

``env`` is the environment a worker of this pool would get, for it decides which login is in use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from bullswarm import __version__
from bullswarm.meters.errors import MeterError
from bullswarm.meters.windows import (
    FIVE_HOUR_MINUTES,
    WEEK_MINUTES,
    instant,
    limit_reading,
    percent,
    window_from,
)
from bullswarm.providers.types import Account
from bullswarm.routing.types import Reading, Window

URL_VARIABLE = "BULLSWARM_CLAUDE_USAGE_URL"
DEFAULT_BASE = "https://api.anthropic.com"
USAGE_PATH = "/api/oauth/usage"
OAUTH_BETA = "oauth-2025-04-20"
TIMEOUT_S = 5.0
MAX_BYTES = 1_000_000

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_CLOUDS = {
    "CLAUDE_CODE_USE_BEDROCK": "Amazon Bedrock",
    "CLAUDE_CODE_USE_VERTEX": "Google Vertex AI",
    "CLAUDE_CODE_USE_FOUNDRY": "Microsoft Foundry",
}
_FAMILIES = ("opus", "sonnet", "haiku", "fable")
_OVERAGE_FAMILY = {"overage_included": "fable"}
_LIMIT_SHAPE = re.compile(r"hit your\b[^\n]{0,40}\blimit|usage limit reached", re.IGNORECASE)


def read_meter(account: Account, env: Mapping[str, str], now: datetime) -> Reading:
    """A live reading of one Claude Code login. A login that has no subscription meter (API key,
    cloud provider) gives a reading of source ``none`` that says so. Raises ``MeterError``."""
    why_none = unmetered(env)
    if why_none is not None:
        return Reading(pool=account.pool, account=account.identity, note=why_none)
    url = usage_url(env)
    token = find_token(account, env)
    status, headers, body = fetch(url, token)
    return interpret(status, headers, body, account, now)


def unmetered(env: Mapping[str, str]) -> str | None:
    """Why this login has no subscription window, or None where it has one."""
    for variable, cloud in _CLOUDS.items():
        if env.get(variable, "").lower() in ("1", "true", "yes", "on"):
            return f"billed by {cloud} ({variable}): no subscription meter"
    for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        if env.get(variable):
            return f"{variable} is set: billed by use, no subscription meter"
    return None


def usage_url(env: Mapping[str, str]) -> str:
    """The endpoint to ask. Raises ``MeterError`` (missing) where requests go to another host, and
    where a token would travel unencrypted."""
    base = env.get(URL_VARIABLE, "").rstrip("/")
    if not base:
        elsewhere = urlsplit(env.get("ANTHROPIC_BASE_URL", "")).hostname
        if elsewhere and elsewhere != "anthropic.com" and not elsewhere.endswith(".anthropic.com"):
            raise MeterError(
                f"requests go to {elsewhere} (ANTHROPIC_BASE_URL): no meter is known there; "
                f"{URL_VARIABLE} names one",
                kind="missing",
            )
        base = DEFAULT_BASE
    url = base if base.endswith(USAGE_PATH) else base + USAGE_PATH
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise MeterError(f"{URL_VARIABLE} must be an https URL", kind="missing")
    return url


def login_file(account: Account, env: Mapping[str, str]) -> Path:
    """Where the CLI keeps this login in the clear."""
    if account.login_file:
        return Path(account.login_file)
    folder = env.get("CLAUDE_SECURESTORAGE_CONFIG_DIR") or account.home
    folder = folder or env.get("CLAUDE_CONFIG_DIR") or "~/.claude"
    return Path(folder).expanduser() / ".credentials.json"


def find_token(account: Account, env: Mapping[str, str]) -> str:
    """The access token in use: ``CLAUDE_CODE_OAUTH_TOKEN`` before the login file, as in the CLI.
    Its ``expiresAt`` is not looked at: it is only advice. Raises ``MeterError``."""
    from_env = env.get("CLAUDE_CODE_OAUTH_TOKEN", "").strip()
    if from_env:
        return from_env
    path = login_file(account, env)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise MeterError(_no_login(path), kind="missing") from None
    except OSError as error:
        reason = f"the login at {path} can't be read: {error.strerror or error}"
        raise MeterError(reason, kind="missing") from None
    try:
        stored = msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError):
        # "missing" rather than "damaged": nobody was asked, and the next write mends it.
        raise MeterError(f"the login at {path} is damaged (no JSON)", kind="missing") from None
    login = stored.get("claudeAiOauth") if isinstance(stored, dict) else None
    token = login.get("accessToken") if isinstance(login, dict) else None
    if not isinstance(token, str) or not token:
        raise MeterError(_no_login(path), kind="missing")
    return token


def _no_login(path: Path) -> str:
    import sys

    if sys.platform == "darwin":
        return (
            f"no login in {path}: on macOS the CLI keeps it in the keychain, which is not read; "
            "CLAUDE_CODE_OAUTH_TOKEN would be used"
        )
    return f"no subscription login in {path}: run claude to log in"


def fetch(url: str, token: str) -> tuple[int, dict[str, str], bytes]:
    """One GET: status, headers (lower case) and at most ``MAX_BYTES`` of the body, within
    ``TIMEOUT_S`` a phase and twice that in all. Redirects are not followed: the token is for one
    host. Raises ``MeterError`` (unreachable)."""
    import time

    import httpx

    headers = {
        "Authorization": f"Bearer {token}",
        "anthropic-beta": OAUTH_BETA,
        "Accept": "application/json",
        "Content-Type": "application/json",
        "User-Agent": f"bullswarm/{__version__}",
    }
    deadline = time.monotonic() + 2 * TIMEOUT_S
    body = bytearray()
    # A proxy is for the way out of this machine.
    outside = urlsplit(url).hostname not in _LOOPBACK
    try:
        with (
            httpx.Client(timeout=TIMEOUT_S, trust_env=outside) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > MAX_BYTES or time.monotonic() > deadline:
                    raise MeterError("the usage endpoint's answer does not end")
            kept = {name.lower(): value for name, value in response.headers.items()}
            return response.status_code, kept, bytes(body)
    except httpx.TimeoutException:
        raise MeterError("the usage endpoint did not answer in time") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise MeterError(f"the usage endpoint can't be reached: {type(error).__name__}") from None


def interpret(
    status: int, headers: Mapping[str, str], body: bytes, account: Account, now: datetime
) -> Reading:
    """The reading in an answer. Raises ``MeterError``: a 429 is ``throttled`` and says nothing
    about the login, only a 401 is ``expired``."""
    if status == 429:
        wait = _retry_after(headers.get("retry-after"), now)
        raise MeterError("the usage endpoint is throttled (429)", wait, kind="throttled")
    if status == 401:
        raise MeterError("login expired; run claude to refresh it", kind="expired")
    if status == 403:
        raise MeterError(
            "this login may not read its usage (403): a token made for inference only can't"
        )
    if status != 200:
        raise MeterError(
            f"the usage endpoint answered {status}", _retry_after(headers.get("retry-after"), now)
        )
    try:
        payload = msgspec.json.decode(body)
    except (msgspec.DecodeError, ValueError):
        payload = body.decode("utf-8", "replace")
    if isinstance(payload, str):
        notice = _limit_notice(payload, account, now)
        if notice is None:
            raise MeterError("the usage endpoint's answer makes no sense", kind="damaged")
        return notice
    if not isinstance(payload, dict):
        raise MeterError("the usage endpoint's answer makes no sense", kind="damaged")
    windows = parse_usage(payload)
    if not windows:
        raise MeterError("the usage endpoint named no window", kind="damaged")
    return Reading(
        pool=account.pool,
        source="live",
        observed_at=now,
        windows=windows,
        account=account.identity,
    )


def parse_usage(payload: Mapping[str, Any]) -> tuple[Window, ...]:
    """The windows of a usage payload: ``five_hour``, ``seven_day``, ``seven_day_<family>`` (each
    ``{utilization, resets_at}``) and the weekly limits of single models in ``limits``. What is null
    is not a window; extra usage is money, not a window. A known window without a number is kept as
    unknown."""
    found: dict[tuple[float, str | None], Window] = {}

    def add(minutes: float, family: str | None, used: Any, reset: Any) -> None:
        window = window_from(minutes, percent(used), instant(reset), family)
        old = found.get((minutes, family))
        if old is None or (window.used_pct or 0.0) > (old.used_pct or 0.0):
            found[(minutes, family)] = window

    for key, value in payload.items():
        if not isinstance(value, Mapping) or not {"utilization", "resets_at"} & value.keys():
            continue
        if key == "five_hour":
            add(FIVE_HOUR_MINUTES, None, value.get("utilization"), value.get("resets_at"))
        elif key == "seven_day":
            add(WEEK_MINUTES, None, value.get("utilization"), value.get("resets_at"))
        elif key.startswith("seven_day_"):
            family = family_of(key.removeprefix("seven_day_"))
            if family is not None:
                add(WEEK_MINUTES, family, value.get("utilization"), value.get("resets_at"))
    limits = payload.get("limits")
    for limit in limits if isinstance(limits, list) else ():
        if not isinstance(limit, Mapping) or limit.get("kind") != "weekly_scoped":
            continue
        scope = limit.get("scope")
        model = scope.get("model") if isinstance(scope, Mapping) else None
        name = model.get("display_name") if isinstance(model, Mapping) else None
        family = family_of(name) if isinstance(name, str) else None
        if family is not None:
            add(WEEK_MINUTES, family, limit.get("percent"), limit.get("resets_at"))
    return tuple(found.values())


def family_of(name: str) -> str | None:
    """The model family in a window's or a model's name ("sonnet_max", "Opus 4"), None where it
    names none that workers run on."""
    word = name.lower()
    if word in _OVERAGE_FAMILY:
        return _OVERAGE_FAMILY[word]
    return next((family for family in _FAMILIES if family in word), None)


def windows_from_headers(headers: Mapping[str, str]) -> tuple[Window, ...]:
    """The windows in the API's own response headers (``anthropic-ratelimit-unified-5h-utilization``
    as a fraction, ``-reset`` as an epoch), which come with every answer for nothing."""
    lower = {name.lower(): value for name, value in headers.items()}
    windows: list[Window] = []
    for short, minutes in (("5h", FIVE_HOUR_MINUTES), ("7d", WEEK_MINUTES)):
        prefix = f"anthropic-ratelimit-unified-{short}"
        fraction = _number(lower.get(f"{prefix}-utilization"))
        reset = instant(_number(lower.get(f"{prefix}-reset")))
        used = None if fraction is None else percent(fraction * 100.0)
        if lower.get(f"{prefix}-status") == "rejected":
            used = 100.0
        if used is not None or reset is not None:
            windows.append(window_from(minutes, used, reset))
    return tuple(windows)


def _limit_notice(text: str, account: Account, now: datetime) -> Reading | None:
    if not _LIMIT_SHAPE.search(text):
        return None
    from bullswarm.dispatch.notices.resets import parse_reset

    return limit_reading(account.pool, parse_reset(text, now), now, account.identity)


def _retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds in a Retry-After header (a number or an HTTP date); None where there is none."""
    if value is None:
        return None
    number = _number(value)
    if number is not None:
        return number
    from email.utils import parsedate_to_datetime

    try:
        when = instant(parsedate_to_datetime(value))
    except ValueError:
        return None
    return (when - now).total_seconds() if when else None


def _number(value: str | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None
