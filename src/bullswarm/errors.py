"""Errors a person can act on. Every face turns one into a line on stderr and an exit code."""

from __future__ import annotations


class BullswarmError(Exception):
    """Something went wrong that the user can read and act on. Exit code 1."""

    exit_code = 1


class UsageError(BullswarmError):
    """The input is wrong: the message names the field and what would be right. Exit code 2."""

    exit_code = 2
