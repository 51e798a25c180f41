"""What Codex does in its own way: where a login is, whose it is, and its meter."""

# ruff: noqa: PTH110, PTH118
# No pathlib where every pool of every `pools` goes through.
from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bullswarm.providers.base import ConnectorProvider
from bullswarm.providers.homes import Home
from bullswarm.providers.login import Damaged, Login, digest, read_object
from bullswarm.providers.types import Account
from bullswarm.routing.types import Reading

AUTH = "auth.json"
CONFIG = "config.toml"
KEYS = ("CODEX_API_KEY", "CODEX_ACCESS_TOKEN")


class Codex(ConnectorProvider):
    login_signs = (AUTH, CONFIG)
    login_env = KEYS

    def login(self, home: Home, env: Mapping[str, str]) -> Login:
        """A key in the environment beats the home's own login, as in the CLI."""
        folder = home.path or ""
        file = os.path.join(folder, AUTH)
        for name in KEYS:
            if env.get(name):
                return Login(identity=digest("codex", name, env[name]))
        try:
            auth = read_object(file)
        except Damaged as damage:
            return Login(file=file, unavailable=f"{damage}; run codex login")
        if auth is not None:
            return Login(identity=_identity(auth), file=file)
        unavailable = None
        if not env.get("OPENAI_API_KEY") and not _logs_in_elsewhere(folder):
            unavailable = f"no login in {folder}; {self.connector.login_hint}"
        return Login(unavailable=unavailable)

    def own_login(self, home: Home) -> bool:
        return home.path is not None and os.path.exists(os.path.join(home.path, AUTH))

    def read_meter(self, account: Account, env: Mapping[str, str], now: datetime) -> Reading:
        from bullswarm.providers.codex.meter import read_meter

        return read_meter(account, self.worker_view(account, env), now)


def _identity(auth: dict[str, Any]) -> str | None:
    """A workspace has one account id for all its members, and each member a quota of their own."""
    tokens = auth.get("tokens")
    if isinstance(tokens, dict) and isinstance(tokens.get("account_id"), str):
        return digest("codex", tokens["account_id"], _subject(tokens.get("id_token")))
    key = auth.get("OPENAI_API_KEY")
    return digest("codex", "key", key) if isinstance(key, str) and key else None


def _subject(token: Any) -> str:
    """Whom a JWT is about; "" where it can't be read. Nothing is verified: it only tells logins
    apart."""
    import binascii

    import msgspec

    if not isinstance(token, str) or token.count(".") != 2:
        return ""
    body = token.split(".")[1].replace("-", "+").replace("_", "/")
    try:
        claims = msgspec.json.decode(binascii.a2b_base64(body + "=" * (-len(body) % 4)))
    except (ValueError, msgspec.DecodeError):
        return ""
    subject = claims.get("sub") if isinstance(claims, dict) else None
    return subject if isinstance(subject, str) else ""


def _logs_in_elsewhere(folder: str) -> bool:
    """Whether the configuration names another way in: a keyring, or a provider with its own key.
    Read as words: the file may be of any version."""
    try:
        with open(os.path.join(folder, CONFIG), encoding="utf-8", errors="replace") as file:
            text = file.read(1_000_000)
    except OSError:
        return False
    return any(word in text for word in ("model_provider", "credentials_store", "oss_provider"))
