"""The demo fleet: pools with meters whose worker really edits a file. No CLI, no login."""
