"""Whether a pool could work, looked at from outside: its program, its login, its meter. Never
spends a prompt."""

# ruff: noqa: PTH112
# No pathlib where every pool of every `pools` goes through.
from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from bullswarm.meters.errors import MeterError
from bullswarm.meters.windows import WINDOW_WORDS
from bullswarm.providers.base import ConnectorProvider
from bullswarm.providers.types import Account, Provider
from bullswarm.routing.types import Reading

VERSION_TIMEOUT_S = 15.0


class Finding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One thing looked at, in words."""

    what: str
    ok: bool
    text: str


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """``ok``: nothing was found that would keep the pool from working. A meter that can't be read
    keeps nobody from working."""

    pool: str
    ok: bool
    findings: tuple[Finding, ...]


def probe(
    provider: Provider,
    account: Account,
    env: Mapping[str, str],
    now: datetime,
    settings: Mapping[str, dict[str, Any]],
) -> Report:
    """Look at one pool. ``settings`` is ``state.json``'s ``providers``."""
    mine = settings.get(account.provider, {})
    needed: list[Finding] = []
    if isinstance(provider, ConnectorProvider):
        needed += _program(provider, env, mine)
        needed.append(_login(provider, account, env, mine))
    else:
        text = account.unavailable or "the provider names no reason why it could not work"
        needed.append(Finding(what="pool", ok=account.unavailable is None, text=text))
    findings = [*needed, _meter(provider, account, env, now)]
    if account.credential_group:
        findings.append(Finding(what="credential group", ok=True, text=account.credential_group))
    return Report(pool=account.pool, ok=all(f.ok for f in needed), findings=tuple(findings))


def _program(
    provider: ConnectorProvider, env: Mapping[str, str], settings: Mapping[str, Any]
) -> list[Finding]:
    missing = provider.missing_binary(env, settings)
    binary = provider.binary(env, settings)
    if missing is not None or binary is None:
        return [Finding(what="program", ok=False, text=missing or "not found")]
    return [Finding(what="program", ok=True, text=binary), _version(binary, env)]


def _version(binary: str, env: Mapping[str, str]) -> Finding:
    import subprocess

    try:
        done = subprocess.run(
            (binary, "--version"),
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        text = f"--version gave no answer within {VERSION_TIMEOUT_S:g} s"
        return Finding(what="version", ok=False, text=text)
    except OSError as error:
        text = f"it can't be started: {error.strerror or error}"
        return Finding(what="version", ok=False, text=text)
    lines = (done.stdout or done.stderr).decode("utf-8", "replace").strip().splitlines()
    said = lines[-1][:200] if lines else "it says nothing"
    if done.returncode != 0:
        return Finding(what="version", ok=False, text=f"exit {done.returncode}: {said}")
    return Finding(what="version", ok=True, text=said)


def _login(
    provider: ConnectorProvider,
    account: Account,
    env: Mapping[str, str],
    settings: Mapping[str, Any],
) -> Finding:
    login = provider.login_of(account, env, settings)
    if login.unavailable is not None:
        return Finding(what="login", ok=False, text=login.unavailable)
    if account.home is not None and not os.path.isdir(account.home):
        hint = provider.connector.login_hint
        text = f"there is no folder {account.home}" + (f"; {hint}" if hint else "")
        return Finding(what="login", ok=False, text=text)
    if login.file is not None:
        return Finding(what="login", ok=True, text=f"{login.file} is there and can be read")
    if login.identity is not None:
        return Finding(what="login", ok=True, text="by a key or token in the environment")
    return Finding(what="login", ok=True, text="none to be seen from outside; it may have one")


def _meter(provider: Provider, account: Account, env: Mapping[str, str], now: datetime) -> Finding:
    try:
        reading = provider.read_meter(account, env, now)
    except MeterError as error:
        return Finding(what="meter", ok=False, text=error.reason)
    except Exception as error:
        text = f"its reader failed: {type(error).__name__}: {error}"
        return Finding(what="meter", ok=False, text=text)
    if reading is None:
        return Finding(what="meter", ok=True, text="it has none: ranked as if on pace")
    if not reading.windows:
        return Finding(what="meter", ok=True, text=reading.note or "no window")
    return Finding(what="meter", ok=True, text=_windows(reading))


def _windows(reading: Reading) -> str:
    words = []
    for w in reading.windows:
        used = "unknown" if w.used_pct is None else f"{w.used_pct:.0f}% used"
        family = f" ({w.family})" if w.family else ""
        words.append(f"{WINDOW_WORDS[w.kind]}{family} {used}")
    return ", ".join(words)
