"""Where everything of one installation lives."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from bullswarm.errors import BullswarmError

_ADVICE = "choose another home with --home or BULLSWARM_HOME"


class Home:
    """bullswarm's home folder. Folders in it are made, mode 0700, when they are first asked for."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def open(cls, explicit: str | Path | None = None, env: Mapping[str, str] | None = None) -> Home:
        """The home that was asked for, else ``$BULLSWARM_HOME``, else ``~/.bullswarm``; made where
        it is missing. Raises ``BullswarmError`` where it can't be made or written."""
        env = os.environ if env is None else env
        asked = str(explicit) if explicit is not None else env.get("BULLSWARM_HOME", "")
        try:
            if asked:
                path = Path(asked).expanduser()
            else:
                path = Path(env.get("HOME") or Path.home()) / ".bullswarm"
        except RuntimeError as error:
            raise BullswarmError(f"this user has no home folder; {_ADVICE}") from error
        path = path.absolute()
        try:
            str(path).encode()
        except UnicodeEncodeError as error:
            raise BullswarmError(
                f"the home {str(path)!a} is not a name in UTF-8, as records are; {_ADVICE}"
            ) from error
        _make(path)
        if not os.access(path, os.W_OK | os.X_OK):
            raise BullswarmError(
                f"the home {path} can't be written; make it writable for this user, or {_ADVICE}"
            )
        return cls(path)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Home({str(self.path)!r})"

    @property
    def state_file(self) -> Path:
        """What a person configures."""
        return self.path / "state.json"

    @property
    def db_file(self) -> Path:
        """What changes while things run."""
        return self.path / "bullswarm.db"

    @property
    def runs(self) -> Path:
        """The run directory: prompts, answers and raw captures."""
        return self._folder("runs")

    @property
    def workflows(self) -> Path:
        """One folder a workflow run."""
        return self._folder("workflows")

    @property
    def history(self) -> Path:
        """The series of meter readings, one file a pool."""
        self._folder("meters")
        return self._folder("meters/history")

    @property
    def providers(self) -> Path:
        """Providers of the operator's own."""
        return self._folder("providers")

    def _folder(self, name: str) -> Path:
        path = self.path / name
        _make(path)
        return path


def _make(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True)
    except FileExistsError as error:
        if not path.is_dir():
            raise BullswarmError(
                f"{path} is a file, not a folder; move it, or {_ADVICE}"
            ) from error
    except OSError as error:
        if error.errno == errno.ENOTDIR:
            raise BullswarmError(
                f"{path} can't be made: a part of that path is a file; {_ADVICE}"
            ) from error
        why = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
        raise BullswarmError(f"{path} can't be made ({why}); {_ADVICE}") from error
