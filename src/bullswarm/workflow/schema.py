"""The program's JSON Schema (draft 2020-12), made from the structs and published beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from bullswarm.workflow.program import Program, as_document

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ID = "urn:bullswarm:program:3"
FILE = Path(__file__).with_name("program.schema.json")


def program_schema() -> dict[str, Any]:
    """The schema of a program document, with a description of every field."""
    made = msgspec.json.schema(Program)
    parts: dict[str, Any] = made["$defs"]
    top = parts.pop("Program")
    for part in (top, *parts.values()):
        _tidy(part)
    top["properties"]["$schema"] = {
        "description": top["properties"]["$schema"]["description"],
        "type": "string",
    }
    made = as_document({"$schema": DIALECT, "$id": ID, **top, "$defs": parts})
    return dict(made)


def text() -> str:
    """The published file's content."""
    return msgspec.json.format(msgspec.json.encode(program_schema()), indent=2).decode() + "\n"


def write() -> None:
    """Bring the published file in step with the structs."""
    FILE.write_text(text(), encoding="utf-8")


def _tidy(node: Any) -> None:
    # An OpenAPI word: no JSON Schema keyword, and editors warn about it.
    if isinstance(node, dict):
        node.pop("discriminator", None)
        for item in node.values():
            _tidy(item)
    elif isinstance(node, list):
        for item in node:
            _tidy(item)
