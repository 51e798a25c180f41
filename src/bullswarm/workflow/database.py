"""Where the durable engine keeps its journal: the run's own SQLite file, or a shared database."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from bullswarm.errors import UsageError

VARIABLE = "BULLSWARM_DATABASE_URL"
SCHEMES = ("postgresql", "postgres", "postgresql+psycopg", "sqlite")


def database_url(env: Mapping[str, str]) -> str | None:
    """The shared database that the environment names; None for the run's own file. Raises
    ``UsageError`` for what can't be one; the password is never repeated."""
    given = env.get(VARIABLE, "").strip()
    if not given:
        return None
    try:
        parts = urlsplit(given)
        port_is_bad = parts.port is not None and not 0 < parts.port < 65536
    except ValueError:
        port_is_bad = True
        parts = urlsplit("")
    if port_is_bad or parts.scheme not in SCHEMES or not parts.path.strip("/"):
        said = f"scheme {parts.scheme!r}" if parts.scheme else "no scheme"
        raise UsageError(
            f"{VARIABLE}: must be postgresql://USER@HOST/DATABASE; it has {said} and "
            f"{'a' if parts.path.strip('/') else 'no'} database name"
        )
    return given
