"""The demo's pools: one a folder in its settings, named as if each were a CLI of its own."""

from __future__ import annotations

from bullswarm.providers.base import ConnectorProvider
from bullswarm.providers.homes import Home


class Demo(ConnectorProvider):
    def pool_name(self, home: Home) -> str:
        return f"demo-{home.name or 'agent'}"
