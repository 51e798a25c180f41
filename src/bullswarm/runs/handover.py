"""What the next attempt is told of the one before it: nothing already done is to be lost."""

from __future__ import annotations

from bullswarm.dispatch.types import Ended
from bullswarm.judge.types import Attempt

MAX_OUTPUT_CHARS = 6000
MAX_PATHS = 60


def partial_of(ended: Ended) -> str:
    """What an attempt had said itself. The text of a final event that is an error is the
    provider's, and stands in the reason already."""
    if ended.final is not None and not ended.final.is_error:
        return ended.answer
    return ended.said


def hand_over(prompt: str, last: Attempt, partial: str, *, same_worker: bool) -> str:
    """The prompt of the next attempt.

    ``partial`` is what the earlier attempt had said. ``same_worker`` asks for the failure to be
    put right rather than for the work to be carried on.
    """
    lines = [prompt.rstrip(), "", "---", ""]
    if same_worker:
        lines.append(f"An earlier attempt at this task did not pass: {last.why}")
        lines.append("Put that right. What it did is still there:")
    else:
        lines.append(f"An earlier attempt at this task ended early: {last.why}")
        lines.append("Carry on from what it left; check it before you rely on it:")
    changes = last.changes
    if changes is not None and changes.any:
        for title, paths in (
            ("created", changes.created),
            ("modified", changes.modified),
            ("deleted", changes.deleted),
            ("committed", changes.commits),
        ):
            if paths:
                more = f" (and {len(paths) - MAX_PATHS} more)" if len(paths) > MAX_PATHS else ""
                lines.append(f"- {title}: {', '.join(paths[:MAX_PATHS])}{more}")
    else:
        lines.append("- it changed no file in the working folder")
    text = partial.strip()
    if text:
        if len(text) > MAX_OUTPUT_CHARS:
            text = "[...]\n" + text[-MAX_OUTPUT_CHARS:]
        lines += ["- its words so far:", "", *(f"> {line}" for line in text.splitlines())]
    return "\n".join(lines) + "\n"
