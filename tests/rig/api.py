"""The server: which API was asked, with which key, and what its scene does."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rig import wire
from rig.scenes import Scene


@dataclass(frozen=True)
class Request:
    """One request as it came in. ``key`` is the API key, the token, or the ``x-rig-key`` header."""

    method: str
    path: str
    key: str
    at: float
    body: dict[str, Any]

    @property
    def asks(self) -> bool:
        """Whether a model was asked for an answer."""
        words = ("/messages", "/responses", "/chat/completions", "enerateContent")
        return (
            self.method == "POST"
            and any(word in self.path for word in words)
            and "count_tokens" not in self.path
        )


class Rig:
    """A server on loopback. ``scenes`` holds a scene a key; ``default`` serves every other key.
    ``usage`` is what the usage endpoint answers a key with: a document, or a status and headers."""

    def __init__(self) -> None:
        self.scenes: dict[str, Scene] = {}
        self.default = Scene()
        self.usage: dict[str, dict[str, Any] | tuple[int, dict[str, str]]] = {}
        self.requests: list[Request] = []
        self.lock = threading.Lock()
        self.closing = threading.Event()
        rig = self

        class Handler(_Handler):
            server_rig = rig

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def asked(self, key: str | None = None) -> list[Request]:
        """The requests for an answer, of one key or of all."""
        with self.lock:
            return [r for r in self.requests if r.asks and key in (None, r.key)]

    def take(self, request: Request) -> Scene:
        with self.lock:
            count = sum(1 for r in self.requests if r.asks and r.key == request.key)
            self.requests.append(request)
        return self.scenes.get(request.key, self.default).at(count)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"
    server_rig: Rig

    def log_message(self, *args: Any) -> None:
        return

    def do_HEAD(self) -> None:
        self._reply(200, {})

    def do_GET(self) -> None:
        rig, request = self.server_rig, self._request({})
        rig.take(request)
        if "/api/oauth/usage" in self.path:
            found = rig.usage.get(request.key, (404, {}))
            if isinstance(found, tuple):
                self._reply(found[0], {"error": {"type": "stand_in"}}, found[1])
            else:
                self._reply(200, found)
            return
        self._reply(200, {"data": [{"id": "stand-in", "object": "model"}], "models": []})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw)
        except ValueError:
            body = {}
        body = body if isinstance(body, dict) else {}
        request = self._request(body)
        scene = self.server_rig.take(request)
        if "count_tokens" in self.path:
            self._reply(200, {"input_tokens": 10})
        elif not request.asks:
            self._reply(404, {"error": {"message": "not here"}})
        else:
            self._play(scene, body)

    def _request(self, body: dict[str, Any]) -> Request:
        headers = self.headers
        key = headers.get("x-rig-key") or headers.get("x-api-key") or headers.get("x-goog-api-key")
        if not key:
            key = (headers.get("authorization") or "").removeprefix("Bearer ").strip()
        return Request(self.command, self.path, key, time.monotonic(), body)

    # scenes

    def _play(self, scene: Scene, body: dict[str, Any]) -> None:
        now = int(time.time())
        kind = scene.kind
        anthropic = "/messages" in self.path
        if kind == "hang":
            self.server_rig.closing.wait(600)
        elif kind == "auth":
            self._reply(401, _auth(anthropic))
        elif kind == "throttle":
            self._reply(429, _throttle(anthropic), {"retry-after": "1"})
        elif kind == "limit":
            body_, headers = _limit(anthropic, scene, now)
            self._reply(429, body_, headers)
        elif kind == "overloaded":
            error = {"type": "overloaded_error", "message": "Overloaded"}
            self._reply(529 if anthropic else 503, {"type": "error", "error": error})
        else:
            self.server_rig.closing.wait(scene.wait_s)
            self._answer(scene, body, now)

    def _answer(self, scene: Scene, body: dict[str, Any], now: int) -> None:
        text = json.dumps(body)
        answered = any(
            mark in text
            for mark in ('"tool_result"', '_call_output"', '"role": "tool"', '"functionResponse"')
        )
        tools = _tools(body)
        wants_tool = scene.kind in ("write", "shell") and not answered and bool(tools)
        model = str(body.get("model") or "stand-in")
        headers = _usage_headers(scene, now)
        cut = scene.kind == "cut"
        if "/messages" in self.path:
            tool = _claude_tool(scene) if wants_tool else None
            if body.get("stream") or cut or tool is not None:
                self._stream(wire.anthropic(model, scene.text, tool), headers, typed=True, cut=cut)
            else:
                self._reply(200, wire.anthropic_whole(model, scene.text), headers)
        elif "/responses" in self.path:
            call = _codex_call(scene, tools) if wants_tool else None
            self._stream(wire.responses(scene.text, call), headers, typed=True, cut=cut)
        elif "enerateContent" in self.path:
            named = _named_tool(scene, tools) if wants_tool else None
            schema = (body.get("generationConfig") or {}).get("responseJsonSchema")
            events = wire.gemini(json.dumps(_filled(schema)) if schema else scene.text, named)
            if "stream" in self.path.lower():
                self._stream(events, headers, typed=False, cut=cut)
            else:
                self._reply(200, events[0])
        else:
            named = _named_tool(scene, tools) if wants_tool else None
            if body.get("stream"):
                self._stream(wire.chat(model, scene.text, named), headers, typed=False, cut=cut)
            else:
                message = {"role": "assistant", "content": scene.text}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                document = {"id": "c1", "object": "chat.completion", "model": model}
                self._reply(200, {**document, "choices": [choice]})

    # the wire

    def _reply(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(
        self, events: wire.Events, headers: dict[str, str], *, typed: bool, cut: bool
    ) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if cut:
            # The first words have gone out; the rest never comes.
            events = events[: max(1, len(events) - (3 if typed else 2))]
        for event in events:
            if typed and isinstance(event, dict):
                self.wfile.write(f"event: {event['type']}\n".encode())
            data = event if isinstance(event, bytes) else json.dumps(event).encode()
            self.wfile.write(b"data: " + data + b"\n\n")
            self.wfile.flush()


def _tools(body: dict[str, Any]) -> list[str]:
    names: list[str] = []
    for tool in body.get("tools") or []:
        if "functionDeclarations" in tool:
            names += [f["name"] for f in tool["functionDeclarations"]]
        else:
            names.append(
                tool.get("name") or (tool.get("function") or {}).get("name") or tool.get("type")
            )
    return names


def _filled(schema: dict[str, Any]) -> dict[str, Any]:
    """An answer that fits a flat schema: the client asks which model to take, as JSON."""
    kinds = {name: rule.get("type") for name, rule in schema.get("properties", {}).items()}
    return {name: 50 if kind in ("INTEGER", "integer") else "fair" for name, kind in kinds.items()}


def _claude_tool(scene: Scene) -> tuple[str, dict[str, Any]]:
    if scene.kind == "shell":
        return "Bash", {"command": scene.command, "description": "run it"}
    return "Write", {"file_path": scene.path, "content": scene.content}


def _codex_call(scene: Scene, tools: list[str]) -> dict[str, Any]:
    if scene.kind == "write" and "apply_patch" in tools:
        lines = "".join(f"+{line}\n" for line in scene.content.splitlines())
        patch = f"*** Begin Patch\n*** Add File: {scene.path}\n{lines}*** End Patch\n"
        return {
            "type": "custom_tool_call",
            "id": "ct1",
            "call_id": "c1",
            "name": "apply_patch",
            "input": patch,
            "status": "completed",
        }
    command = scene.command
    if scene.kind == "write":
        command = f"printf %s {json.dumps(scene.content.rstrip())} > {scene.path}"
    if "exec_command" in tools:
        name, given = "exec_command", {"cmd": command}
    else:
        name, given = "shell", {"command": ["bash", "-lc", command]}
    call = {"type": "function_call", "id": "fc1", "call_id": "c1", "name": name}
    return {**call, "arguments": json.dumps(given)}


def _named_tool(scene: Scene, tools: list[str]) -> tuple[str, dict[str, Any]]:
    """For opencode, qwen and gemini: by the names of the tools they offer."""
    if scene.kind == "shell":
        if "run_shell_command" in tools:
            given = {"command": scene.command, "description": "run it", "is_background": False}
            return "run_shell_command", given
        return "bash", {"command": scene.command, "description": "run it"}
    if "write_file" in tools:
        return "write_file", {"file_path": scene.path, "content": scene.content}
    return "write", {"filePath": scene.path, "content": scene.content}


def _auth(anthropic: bool) -> dict[str, Any]:
    if anthropic:
        error = {"type": "authentication_error", "message": "invalid x-api-key"}
        return {"type": "error", "error": error}
    message = "Incorrect API key provided"
    return {
        "error": {"message": message, "type": "invalid_request_error", "code": "invalid_api_key"}
    }


def _throttle(anthropic: bool) -> dict[str, Any]:
    if anthropic:
        error = {"type": "rate_limit_error", "message": "Too many requests. Please slow down."}
        return {"type": "error", "error": error}
    return {
        "error": {
            "message": "Rate limit reached for requests",
            "type": "requests",
            "code": "rate_limit_exceeded",
        }
    }


def _limit(anthropic: bool, scene: Scene, now: int) -> tuple[dict[str, Any], dict[str, str]]:
    reset = now + scene.reset_s
    if anthropic:
        words = "This request would exceed your account's rate limit. Please try again later."
        error = {"type": "rate_limit_error", "message": words}
        unified = {
            "status": "rejected",
            "reset": str(reset),
            "representative-claim": scene.claim,
            "5h-status": "rejected",
            "5h-reset": str(reset),
            "5h-utilization": "1.0",
            "7d-status": "allowed",
            "7d-reset": str(now + 300_000),
            "7d-utilization": "0.4",
        }
        headers = {f"anthropic-ratelimit-unified-{k}": v for k, v in unified.items()}
        return {"type": "error", "error": error}, {**headers, "retry-after": str(scene.reset_s)}
    error = {
        "type": "usage_limit_reached",
        "message": "The usage limit has been reached",
        "plan_type": "plus",
        "resets_at": reset,
        "resets_in_seconds": scene.reset_s,
    }
    return {"error": error}, _codex_headers(100.0, 40.0, reset, now + 300_000)


def _usage_headers(scene: Scene, now: int) -> dict[str, str]:
    if scene.used is None:
        return {}
    return _codex_headers(scene.used[0], scene.used[1], now + scene.reset_s, now + 300_000)


def _codex_headers(five: float, week: float, reset: int, week_reset: int) -> dict[str, str]:
    return {
        "x-codex-primary-used-percent": f"{five:g}",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": str(reset),
        "x-codex-secondary-used-percent": f"{week:g}",
        "x-codex-secondary-window-minutes": "10080",
        "x-codex-secondary-reset-at": str(week_reset),
    }
