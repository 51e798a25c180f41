"""A provider's "no", classified: what a notice says, until when, and what bench follows from it.

Everything here is pure: no clock but the one that is handed in, no file but the zone database, no
process, no network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullswarm.lazy import exports

if TYPE_CHECKING:
    from bullswarm.dispatch.notices.benches import Bench, bench, contradiction, longest_window
    from bullswarm.dispatch.notices.classifier import Classifier
    from bullswarm.dispatch.notices.grammar import Channel, classify, phrases_of
    from bullswarm.dispatch.notices.kinds import failure_of
    from bullswarm.dispatch.notices.release import released_by
    from bullswarm.dispatch.notices.resets import parse_reset, parse_retry_after

# Who only asks whether a bench is over must not pay for the grammar's patterns.
__getattr__ = exports(
    __name__,
    {
        "benches": ("Bench", "bench", "contradiction", "longest_window"),
        "classifier": ("Classifier",),
        "grammar": ("Channel", "classify", "phrases_of"),
        "kinds": ("failure_of",),
        "release": ("released_by",),
        "resets": ("parse_reset", "parse_retry_after"),
    },
)


__all__ = [
    "Bench",
    "Channel",
    "Classifier",
    "bench",
    "classify",
    "contradiction",
    "failure_of",
    "longest_window",
    "parse_reset",
    "parse_retry_after",
    "phrases_of",
    "released_by",
]
