"""TODO: meters."""
