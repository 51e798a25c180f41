"""TODO: workflow."""
