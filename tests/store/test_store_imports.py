from __future__ import annotations

from pathlib import Path

from storekit import python

DEAR = (
    "asyncio", "psutil", "subprocess", "tempfile", "secrets", "httpx", "jsonschema", "yaml",
    "sqlalchemy", "dbos", "importlib.metadata", "logging",
)  # fmt: skip


def test_opening_a_store_loads_nothing_dear(tmp_path: Path) -> None:
    code = (
        "import sys; before = set(sys.modules);"
        "from bullswarm.store import Home, Store, load;"
        "home = Home.open(sys.argv[1]); load(home); s = Store(home); s.agents(); s.quarantines();"
        f"print(sorted(set({DEAR!r}) & (set(sys.modules) - before)))"
    )
    assert python(code, str(tmp_path / "home")).communicate()[0] == "[]\n"
