"""TODO: dispatch."""
