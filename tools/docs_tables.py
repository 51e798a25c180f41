#!/usr/bin/env python3
"""Put the tables of roles and kinds into the workflow page. ``--check`` only says whether they are
up to date."""

from __future__ import annotations

import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "workflows.md"
BEGIN, END = "<!-- tables -->\n", "<!-- end -->\n"


def rendered(page: str) -> str:
    """The page with the tables as the code has them."""
    from bullswarm.workflow.defaults import tables

    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{tables().strip()}\n\n{END}{tail}"


def main() -> int:
    old = PAGE.read_text(encoding="utf-8")
    new = rendered(old)
    if "--check" in sys.argv:
        return 0 if new == old else 1
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
