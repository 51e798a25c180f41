"""TODO: judge."""
