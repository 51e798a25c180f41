"""What Qwen Code does in its own way: where its login is."""

# ruff: noqa: PTH110, PTH118
# No pathlib where every pool of every `pools` goes through.
from __future__ import annotations

import os
from collections.abc import Mapping

from bullswarm.providers.base import ConnectorProvider
from bullswarm.providers.homes import Home, expand
from bullswarm.providers.login import Damaged, Login, digest, read_object

FOLDER = "~/.qwen"


class Qwen(ConnectorProvider):
    def login(self, home: Home, env: Mapping[str, str]) -> Login:
        """A key in the environment, or what its own folder holds; without both there is none."""
        key = env.get("OPENAI_API_KEY")
        if key:
            return Login(identity=digest("openai", key, env.get("OPENAI_BASE_URL", "")))
        folder = expand(FOLDER, env)
        file = os.path.join(folder, "oauth_creds.json")
        try:
            if read_object(file) is not None:
                return Login(file=file)
        except Damaged as damage:
            return Login(file=file, unavailable=f"{damage}; {self.connector.login_hint}")
        prefixes = ("QWEN_", "DASHSCOPE_", "BAILIAN_", "GEMINI_", "GOOGLE_", "ANTHROPIC_")
        configured = os.path.exists(os.path.join(folder, "settings.json")) or any(
            name.startswith(prefixes) for name, value in env.items() if value
        )
        return Login(unavailable=None if configured else f"no login; {self.connector.login_hint}")
