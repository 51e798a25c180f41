"""What is wrong with a program, and what could be better."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Fault(msgspec.Struct, frozen=True, rename="camel"):
    """One thing that must be changed: ``path`` in the document (``$.steps[2].dependsOn[0]``), what
    is wrong there, and what would be right."""

    path: str
    message: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" + (f" ({self.fix})" if self.fix else "")


class Advice(msgspec.Struct, frozen=True, rename="camel"):
    """One thing that works and could be better. Never a refusal."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def near(word: str, known: Iterable[str]) -> str:
    """``did you mean x?`` for the nearest known word, else the known words."""
    import difflib

    words = sorted(known)
    plain = {w.lower().replace("_", "").replace("-", ""): w for w in words}
    same = plain.get(word.lower().replace("_", "").replace("-", ""))
    found = [same] if same else difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    if found:
        return f"did you mean {found[0]!r}?"
    if not words:
        return "there is none"
    shown = ", ".join(words[:12]) + (", ..." if len(words) > 12 else "")
    return f"known: {shown}"
