"""Judge saved answers again: what ``bullswarm health`` does with every ``out-*`` file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bullswarm.judge.content import NoticeOf, content_gate
from bullswarm.judge.types import Gate

MAX_BYTES = 1024 * 1024
"""As much of a saved answer as is read: an answer without substance is never longer."""


def rejudge(text: str, prompt: str = "", *, notice_of: NoticeOf | None = None) -> Gate:
    """The content gate over a saved answer. ``prompt`` is the task file's text where it is kept."""
    return content_gate(text, prompt, notice_of=notice_of)


def rejudge_file(path: str | Path, *, notice_of: NoticeOf | None = None) -> Gate:
    """Judge one ``out-<stamp>.md`` again, with the ``task-<stamp>.md`` beside it. A file that can't
    be read is a failed gate, not an error."""
    file = Path(path)
    try:
        text = _head(file)
    except OSError as error:
        why = f"can't be read: {error.strerror or error}"
        return Gate(name="content", ok=False, why=why, failure_kind="process")
    task = file.with_name(file.name.replace("out-", "task-", 1))
    try:
        prompt = _head(task)
    except OSError:
        prompt = ""
    return rejudge(text, prompt, notice_of=notice_of)


def rejudge_folder(
    folder: str | Path, *, notice_of: NoticeOf | None = None
) -> Iterator[tuple[Path, Gate]]:
    """Every saved answer under ``folder``, in order of name, with its gate."""
    for path in sorted(Path(folder).rglob("out-*")):
        if path.is_file():
            yield path, rejudge_file(path, notice_of=notice_of)


def _head(path: Path) -> str:
    with path.open("rb") as stream:
        return stream.read(MAX_BYTES).decode("utf-8", errors="replace")
