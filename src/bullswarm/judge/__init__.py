"""Judge by content, not by exit code: gates over how a worker ended, what it said, what it changed.

``judge`` is pure; ``take`` and ``compare`` look at the working folder; ``run_command`` and
``run_schema`` are the evidence a workflow declares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bullswarm.lazy import exports

if TYPE_CHECKING:
    from bullswarm.judge.content import NOTICE_FAILURE, content_gate
    from bullswarm.judge.deliverable import Before, compare, take
    from bullswarm.judge.evidence import (
        CommandEvidence,
        SchemaEvidence,
        check_schema,
        run_command,
        run_schema,
    )
    from bullswarm.judge.gates import (
        CHANGING_LANES,
        VERIFIED,
        deliverable_gate,
        exit_gate,
        judge,
        provider_gate,
    )
    from bullswarm.judge.health import rejudge, rejudge_file, rejudge_folder
    from bullswarm.judge.labels import LABELS, PROOF, Facts, Label, is_proof, label
    from bullswarm.judge.schema import (
        Fault,
        Schema,
        answer_gate,
        find_json,
        load_schema,
        make_schema,
    )
    from bullswarm.judge.types import Attempt, Changes, Declared, Gate, Judgement, Pick, Verdict

# Who only reads a verdict must not pay for the tables of phrases, or for hashing.
__getattr__ = exports(
    __name__,
    {
        "content": ("NOTICE_FAILURE", "content_gate"),
        "deliverable": ("Before", "compare", "take"),
        "evidence": (
            "CommandEvidence",
            "SchemaEvidence",
            "check_schema",
            "run_command",
            "run_schema",
        ),
        "gates": (
            "CHANGING_LANES",
            "VERIFIED",
            "deliverable_gate",
            "exit_gate",
            "judge",
            "provider_gate",
        ),
        "health": ("rejudge", "rejudge_file", "rejudge_folder"),
        "labels": ("Facts", "LABELS", "Label", "PROOF", "is_proof", "label"),
        "schema": ("Fault", "Schema", "answer_gate", "find_json", "load_schema", "make_schema"),
        "types": ("Attempt", "Changes", "Declared", "Gate", "Judgement", "Pick", "Verdict"),
    },
)


__all__ = [
    "CHANGING_LANES",
    "LABELS",
    "NOTICE_FAILURE",
    "PROOF",
    "VERIFIED",
    "Attempt",
    "Before",
    "Changes",
    "CommandEvidence",
    "Declared",
    "Facts",
    "Fault",
    "Gate",
    "Judgement",
    "Label",
    "Pick",
    "Schema",
    "SchemaEvidence",
    "Verdict",
    "answer_gate",
    "check_schema",
    "compare",
    "content_gate",
    "deliverable_gate",
    "exit_gate",
    "find_json",
    "is_proof",
    "judge",
    "label",
    "load_schema",
    "make_schema",
    "provider_gate",
    "rejudge",
    "rejudge_file",
    "rejudge_folder",
    "run_command",
    "run_schema",
    "take",
]
