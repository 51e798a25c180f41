"""What Claude Code does in its own way: where a login is, whose it is, and its meter."""

# ruff: noqa: PTH110, PTH118, PTH120
# No pathlib where every pool of every `pools` goes through.
from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import datetime

import msgspec

from bullswarm.providers.base import ConnectorProvider
from bullswarm.providers.homes import Home
from bullswarm.providers.login import Damaged, Login, digest, read_json, read_object
from bullswarm.providers.types import Account
from bullswarm.routing.types import Reading

CREDENTIALS = ".credentials.json"
PROFILE = ".claude.json"
TOKENS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
MANAGED = "/etc/claude-code/managed-settings.json"


class _OAuthAccount(msgspec.Struct, rename="camel"):
    account_uuid: str | None = None
    organization_uuid: str | None = None


class _Profile(msgspec.Struct, rename="camel"):
    oauth_account: _OAuthAccount | None = None
    primary_api_key: str | None = None


class ClaudeCode(ConnectorProvider):
    login_signs = (CREDENTIALS, PROFILE)
    login_env = TOKENS

    def login(self, home: Home, env: Mapping[str, str]) -> Login:
        """An API key or token in the environment beats what the home keeps, as in the CLI. One
        person may pay for several organizations: identity is both together."""
        folder = home.path or ""
        file = os.path.join(env.get("CLAUDE_SECURESTORAGE_CONFIG_DIR") or folder, CREDENTIALS)
        for name in TOKENS:
            if env.get(name):
                return Login(identity=digest("claude", name, env[name]))
        try:
            profile = read_json(self._profile(home, env), _Profile) or _Profile()
        except Damaged:
            profile = _Profile()
        account = profile.oauth_account
        identity = None
        if account is not None and account.account_uuid:
            identity = digest("claude", account.account_uuid, account.organization_uuid or "")
        try:
            there = read_object(file) is not None
        except Damaged as damage:
            return Login(
                identity=identity, file=file, unavailable=f"{damage}; run claude to log in again"
            )
        if there:
            return Login(identity=identity, file=file)
        unavailable = None
        if self._certainly_none(folder, env, profile):
            unavailable = f"no login in {folder}; {self.connector.login_hint}"
        return Login(identity=identity, unavailable=unavailable)

    def own_login(self, home: Home) -> bool:
        return home.path is not None and os.path.exists(os.path.join(home.path, CREDENTIALS))

    def read_meter(self, account: Account, env: Mapping[str, str], now: datetime) -> Reading:
        from bullswarm.providers.claude_code.meter import read_meter

        return read_meter(account, self.worker_view(account, env), now)

    def _profile(self, home: Home, env: Mapping[str, str]) -> str:
        """Told a home, the CLI keeps its profile in it, and beside it otherwise."""
        if home.name is None and not env.get("CLAUDE_CONFIG_DIR"):
            return os.path.join(os.path.dirname(home.path or ""), PROFILE)
        return os.path.join(home.path or "", PROFILE)

    def _certainly_none(self, folder: str, env: Mapping[str, str], profile: _Profile) -> bool:
        """Only where nothing else could give the CLI a login: no keychain, no cloud, no helper."""
        if sys.platform == "darwin" or profile.primary_api_key:
            return False
        prefixes = ("CLAUDE_CODE_USE_", "CLAUDE_CODE_OAUTH_", "ANTHROPIC_", "CLAUDE_CODE_API_KEY")
        if any(name.startswith(prefixes) for name, value in env.items() if value):
            return False
        for path in (os.path.join(folder, "settings.json"), MANAGED):
            try:
                settings = read_object(path) or {}
            except Damaged:
                return False
            if settings.keys() & {"apiKeyHelper", "env", "forceLoginMethod"}:
                return False
        return True
