"""The console script, and ``python -m bullswarm``."""

from __future__ import annotations

import gc
from typing import NoReturn

GARBAGE_AFTER = 100_000
"""Objects before a collector's look. What imports make lives to the end, and Python's own 700 is a
look in vain every few modules."""


def main(argv: list[str] | None = None) -> NoReturn:
    """Run the command line and end the process with its exit code."""
    gc.set_threshold(GARBAGE_AFTER)
    from bullswarm.cli import main as run

    run(argv)


if __name__ == "__main__":
    main()
