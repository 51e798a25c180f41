"""TODO: providers."""
