"""What Gemini CLI does in its own way: where its login is."""

# ruff: noqa: PTH110, PTH118
# No pathlib where every pool of every `pools` goes through.
from __future__ import annotations

import os
from collections.abc import Mapping

from bullswarm.providers.base import ConnectorProvider
from bullswarm.providers.homes import Home, expand
from bullswarm.providers.login import Damaged, Login, digest, read_object

FOLDER = "~/.gemini"
KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")


class Gemini(ConnectorProvider):
    def login(self, home: Home, env: Mapping[str, str]) -> Login:
        """A key in the environment, or what its own folder holds; without both there is none."""
        for name in KEYS:
            if env.get(name):
                return Login(identity=digest("gemini", env[name]))
        folder = (
            os.path.join(env["GEMINI_CLI_HOME"], ".gemini")
            if env.get("GEMINI_CLI_HOME")
            else expand(FOLDER, env)
        )
        file = os.path.join(folder, "oauth_creds.json")
        try:
            if read_object(file) is not None:
                return Login(file=file)
        except Damaged as damage:
            return Login(file=file, unavailable=f"{damage}; {self.connector.login_hint}")
        configured = any(
            os.path.exists(os.path.join(folder, name))
            for name in ("settings.json", ".env", "gemini-credentials.json")
        ) or any(name.startswith(("GEMINI_", "GOOGLE_")) for name, value in env.items() if value)
        return Login(unavailable=None if configured else f"no login; {self.connector.login_hint}")
