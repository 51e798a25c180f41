"""What OpenCode does in its own way: it relays, so its login file may hold several providers'."""

# ruff: noqa: PTH118
# No pathlib where every pool of every `pools` goes through.
from __future__ import annotations

import os
from collections.abc import Mapping

from bullswarm.providers.base import ConnectorProvider
from bullswarm.providers.homes import Home, expand
from bullswarm.providers.login import Damaged, Login, read_object


class OpenCode(ConnectorProvider):
    def login(self, home: Home, env: Mapping[str, str]) -> Login:
        """It runs without a login too (a local model, a key in its configuration), so a missing
        file says nothing."""
        data = env.get("XDG_DATA_HOME") or "~/.local/share"
        file = os.path.join(expand(data, env), "opencode", "auth.json")
        try:
            there = read_object(file) is not None
        except Damaged as damage:
            return Login(file=file, unavailable=f"{damage}; {self.connector.login_hint}")
        return Login(file=file if there else None)
