"""What can go wrong before a worker runs."""

from __future__ import annotations

from bullswarm.errors import BullswarmError


class SpawnError(BullswarmError):
    """The worker never started; nothing was left behind. The message says why."""


class AlreadyStarted(BullswarmError):
    """This attempt was started before, by us or by another process: find it instead."""


class DepthError(BullswarmError):
    """Agents called bullswarm from within agents too often (``config.depthLimit``)."""
