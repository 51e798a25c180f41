"""Reviews: the shape of their answer, and how it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec


class Said(msgspec.Struct, frozen=True):
    """What a review says of one item."""

    id: str
    passed: bool
    reason: str


def review_schema(ids: Sequence[str]) -> dict[str, Any]:
    """The JSON Schema of a review's answer: a verdict for every one of ``ids``."""
    verdict = {
        "type": "object",
        "properties": {
            "id": {"enum": list(ids)},
            "pass": {"type": "boolean"},
            "reason": {"type": "string"},
        },
        "required": ["id", "pass", "reason"],
    }
    return {
        "type": "object",
        "properties": {
            "requirements": {
                "type": "array",
                "items": verdict,
                "minItems": len(ids),
                "allOf": [
                    {"contains": {"properties": {"id": {"const": i}}, "required": ["id"]}}
                    for i in ids
                ],
            }
        },
        "required": ["requirements"],
    }


def read_review(answer: Any, ids: Sequence[str]) -> tuple[tuple[Said, ...], str]:
    """The verdicts on ``ids`` in their order, and what is wrong with the answer ("" where nothing
    is). A verdict on anything else is not heard; of two on one item the failing one counts."""
    items = answer.get("requirements") if isinstance(answer, dict) else None
    if not isinstance(items, list):
        return (), 'the answer is not {"requirements": [{"id", "pass", "reason"}]}'
    found: dict[str, Said] = {}
    for item in items:
        if not isinstance(item, dict) or item.get("id") not in ids:
            continue
        if not isinstance(item.get("pass"), bool):
            return (), f"the verdict on {item['id']} does not say pass: true or false"
        said = Said(item["id"], item["pass"], str(item.get("reason") or ""))
        if said.id not in found or not said.passed:
            found[said.id] = said
    missing = [i for i in ids if i not in found]
    if missing:
        return (), f"the review does not judge {', '.join(missing)}"
    return tuple(found[i] for i in ids), ""
