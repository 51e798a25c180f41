"""``python -m bullswarm``."""

from bullswarm.cli import main

main()
