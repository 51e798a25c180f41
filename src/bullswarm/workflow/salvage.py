"""What can still be read of a document whose shape is wrong, so that its other faults are found in
the same pass."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from bullswarm.workflow.faults import Fault
from bullswarm.workflow.program import Program, Step

_KEY = re.compile(r"^\$\.(?:steps\[(?P<n>\d+)\](?:\.(?P<key>[^.\[]+))?|(?P<top>[^.\[]+))")


def salvage(document: dict[str, Any], shape: Sequence[Fault]) -> Program | None:
    """The program without its misshapen parts, or None where nothing is left to look at.

    Positions stay as they are: a step that can't be read is stood in for.
    """
    bad_keys: dict[int, set[str]] = {}
    bad_top: set[str] = set()
    for fault in shape:
        match = _KEY.match(fault.path)
        if match is None or match["top"]:
            bad_top.add(match["top"] if match else "")
        else:
            bad_keys.setdefault(int(match["n"]), set()).add(match["key"] or "")
    given = document.get("steps")
    if not isinstance(given, list | tuple) or not given:
        return None
    steps = tuple(_step(n, one, bad_keys.get(n, set())) for n, one in enumerate(given))
    top = {
        key: value
        for key, value in document.items()
        if key in ("goal", "requirements") and key not in bad_top
    }
    try:
        whole = msgspec.convert(
            {**top, "schemaVersion": 3, "steps": [{"id": "x", "prompt": "x"}]}, Program
        )
    except msgspec.ValidationError:
        return None
    if bad_top & {"goal", "requirements"}:
        # Whoever names a requirement may well be right.
        steps = tuple(msgspec.structs.replace(s, requirements=(), evidence_for=()) for s in steps)
    return msgspec.structs.replace(whole, steps=steps)


def _step(n: int, given: Any, bad: set[str]) -> Step:
    known = {f.encode_name for f in msgspec.structs.fields(Step)}
    kept = given if isinstance(given, dict) else {}
    kept = {key: value for key, value in kept.items() if key in known and key not in bad}
    name = given.get("id") if isinstance(given, dict) else None
    name = name if isinstance(name, str) and name else f"\0{n}"
    try:
        step = msgspec.convert({**kept, "prompt": "x", "id": "x"}, Step)
    except msgspec.ValidationError:
        step = Step(id="x", prompt="x")
    return msgspec.structs.replace(step, id=name)
