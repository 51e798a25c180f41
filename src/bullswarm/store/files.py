"""Files that are whole or absent, and a lock that several processes share."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from bullswarm.errors import BullswarmError

_FULL = (errno.ENOSPC, errno.EDQUOT)


def explain(error: OSError, path: Path) -> BullswarmError:
    """The error as a sentence that names the file and what to do."""
    if error.errno in _FULL:
        return BullswarmError(
            f"the disk is full: {path} could not be written and is as it was before; "
            "free some space and try again"
        )
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return BullswarmError(
            f"{path} can't be written ({error.strerror}); make it writable for this user, or "
            "choose another home with --home or BULLSWARM_HOME"
        )
    return BullswarmError(f"{path} can't be written: {error.strerror or error}")


def atomic_write(path: Path, data: bytes) -> None:
    """Put ``data`` at ``path``, mode 0600, so that a reader sees the old content or the new one.

    A symbolic link is followed, not replaced. Raises ``BullswarmError`` (disk full, not writable);
    the old content is then untouched.
    """
    target = Path(os.path.realpath(path))
    spare = target.with_name(f".{target.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        fd = os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(fd)
            spare.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                spare.unlink()
            raise
        _sync_folder(target.parent)
    except OSError as error:
        raise explain(error, path) from error


def _sync_folder(folder: Path) -> None:
    # Not every file system lets a folder be synced; the rename itself has happened by now.
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


@contextlib.contextmanager
def locked(path: Path, patience_s: float = 30.0) -> Iterator[None]:
    """Hold the lock file at ``path``; it ends with the process. Raises ``BullswarmError`` when
    somebody else holds it for longer than ``patience_s``."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise explain(error, path) from error
    try:
        deadline = time.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise explain(error, path) from error
                if time.monotonic() >= deadline:
                    raise BullswarmError(
                        f"another process has held {path} for over {patience_s:g} seconds; "
                        "end it (is one stopped?) and try again"
                    ) from error
            time.sleep(0.01)
        yield
    finally:
        os.close(fd)
