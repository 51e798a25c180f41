"""Shared makings of the provider tests: homes, fake programs, registries."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bullswarm.providers.registry import Registry
from bullswarm.providers.types import Account

MINIMAL: dict[str, Any] = {
    "name": "mine",
    "command": "mine",
    "args": ["{prompt}"],
    "stream": {"rules": [{"emit": "final", "when": {"type": "done"}, "take": {"text": "text"}}]},
}


def program(folder: Path, *names: str, script: str = "exit 0") -> str:
    """A PATH with programs of those names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    return str(folder)


def person(tmp_path: Path, *programs: str) -> dict[str, str]:
    """The environment of a person whose home is under ``tmp_path``."""
    home = tmp_path / "person"
    home.mkdir(exist_ok=True)
    return {"HOME": str(home), "PATH": program(tmp_path / "bin", *programs)}


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def claude_login(home: Path, account: str | None = None, organization: str = "o") -> Path:
    write(home / ".credentials.json", {"claudeAiOauth": {"accessToken": "made-up"}})
    if account is not None:
        profile = {"oauthAccount": {"accountUuid": account, "organizationUuid": organization}}
        write(home / ".claude.json", profile)
    return home


def codex_login(home: Path, account: str = "acct") -> Path:
    write(home / "auth.json", {"tokens": {"account_id": account, "id_token": "x"}})
    return home


def load(
    env: Mapping[str, str],
    settings: Mapping[str, dict[str, Any]] | None = None,
    home: Path | None = None,
    **more: Any,
) -> Registry:
    return Registry.load(home, settings or {}, env, **{"entry_points": False, **more})


def pools(registry: Registry, provider: str | None = None) -> dict[str, Account]:
    return {a.pool: a for a in registry.accounts() if provider in (None, a.provider)}
