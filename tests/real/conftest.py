"""Every test in this folder drives a real agent CLI."""

from __future__ import annotations

import pytest

from rig import missing_clis


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/real/" in str(item.path):
            item.add_marker(pytest.mark.real)


@pytest.fixture(autouse=True, scope="session")
def clis() -> None:
    """The pinned CLIs have to be there: a test that quietly skips proves nothing."""
    missing = missing_clis()
    if missing:
        pytest.fail(f"not installed: {', '.join(missing)}; run: python3 tools/dev.py clis")
