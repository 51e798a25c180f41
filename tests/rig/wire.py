"""How each API puts an answer or a tool call on the wire: events of a stream, or one document."""

from __future__ import annotations

import json
import uuid
from typing import Any

TOKENS_IN, TOKENS_OUT = 120, 25
Events = list[dict[str, Any] | bytes]


def anthropic(model: str, text: str, tool: tuple[str, dict[str, Any]] | None) -> Events:
    """A message as server-sent events: words, or words and a tool call."""
    usage = {"input_tokens": TOKENS_IN, "output_tokens": 1, "cache_read_input_tokens": 0}
    message = {
        "id": f"msg_{uuid.uuid4().hex[:12]}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    events: Events = [{"type": "message_start", "message": message}]
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"type": "text", "text": ""}, {"type": "text_delta", "text": text})
    ]
    if tool is not None:
        name, given = tool
        block = {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:8]}", "name": name}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
        blocks.append(({**block, "input": {}}, delta))
    for index, (block, delta) in enumerate(blocks):
        events += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    reason = "tool_use" if tool is not None else "end_turn"
    return [
        *events,
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None},
            "usage": {"output_tokens": TOKENS_OUT},
        },
        {"type": "message_stop"},
    ]


def anthropic_whole(model: str, text: str) -> dict[str, Any]:
    """The same words as one document, as a client asks for it after a stream broke off."""
    return {
        "id": f"msg_{uuid.uuid4().hex[:12]}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT},
    }


def responses(text: str, call: dict[str, Any] | None) -> Events:
    """A response as typed events."""
    item = call or {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }
    usage = {
        "input_tokens": TOKENS_IN,
        "input_tokens_details": {"cached_tokens": 20},
        "output_tokens": TOKENS_OUT,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": TOKENS_IN + TOKENS_OUT,
    }
    answer = {"id": f"resp_{uuid.uuid4().hex[:8]}", "status": "in_progress"}
    events: Events = [{"type": "response.created", "response": answer}]
    if call is None:
        events += [
            {
                "type": "response.output_item.added",
                "output_index": 0,
                "item": {**item, "content": [], "status": "in_progress"},
            },
            {
                "type": "response.output_text.delta",
                "item_id": "msg_1",
                "output_index": 0,
                "content_index": 0,
                "delta": text,
            },
        ]
    done = {**answer, "status": "completed", "output": [item], "usage": usage}
    return [
        *events,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]


def chat(model: str, text: str, tool: tuple[str, dict[str, Any]] | None) -> Events:
    """A chat completion as chunks."""
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": model}
    delta: dict[str, Any] = {"role": "assistant", "content": text}
    if tool is not None:
        function = {"name": tool[0], "arguments": json.dumps(tool[1])}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        delta = {"role": "assistant", "tool_calls": [call]}
    reason = "tool_calls" if tool is not None else "stop"
    usage = {
        "prompt_tokens": TOKENS_IN,
        "completion_tokens": TOKENS_OUT,
        "total_tokens": TOKENS_IN + TOKENS_OUT,
    }
    return [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {
            **head,
            "choices": [{"index": 0, "delta": {}, "finish_reason": reason}],
            "usage": usage,
        },
        b"[DONE]",
    ]


def gemini(text: str, tool: tuple[str, dict[str, Any]] | None) -> Events:
    """One chunk of a generated content."""
    part: dict[str, Any] = {"text": text}
    if tool is not None:
        part = {"functionCall": {"name": tool[0], "args": tool[1]}}
    usage = {
        "promptTokenCount": TOKENS_IN,
        "candidatesTokenCount": TOKENS_OUT,
        "totalTokenCount": TOKENS_IN + TOKENS_OUT,
    }
    content = {"role": "model", "parts": [part]}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return [{"candidates": [candidate], "usageMetadata": usage, "modelVersion": "stand-in"}]
