"""bullswarm sends coding work to whichever agent CLI has subscription quota to spare."""

__version__ = "0.1.0"
