"""TODO: runs."""
