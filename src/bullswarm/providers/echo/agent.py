"""The echo worker: reads a prompt on stdin, obeys its ``echo:`` lines, and speaks JSON lines.

Only the standard library, and little of it: it is run by its path, hundreds at a time. A line
``echo: <word> <rest>`` is a directive for every pool, ``echo@<name>: ...`` for one pool, or one
home, of that name only. The directives in ``<home>/script`` come first.

    say TEXT              a text; the last one is the answer
    answer TEXT           the answer
    tool NAME TEXT        a tool call and its result
    write PATH TEXT       write a file (and append PATH TEXT: add a line to it)
    run COMMAND           a shell command
    env NAME              say that variable
    sleep S               wait
    stderr TEXT           a line on stderr
    raw LINE              that line on stdout, as it is
    limit WINDOW RESET    a usage limit, in the words of a notice: limit session 8:20pm (UTC)
    limit-event WINDOW EPOCH   the same as a structured event, then the notice
    throttle | auth | overloaded   ten retries of that kind, then a failure
    error TEXT            the provider fails with that text
    flood N               N text events
    loop N                the same event N times
    fork S                leave a child behind that sleeps
    empty                 an empty answer
    exit N                leave at once, with that status and without a final word
    linger S              say the final word, then stay
    hang                  say nothing more, and stay
    deaf                  as hang, and not even TERM ends it
"""

# ruff: noqa: PTH103, PTH110, PTH118, PTH119, PTH120
# No pathlib: workers start by the hundred.
import os
import sys
import time

try:
    from _json import encode_basestring_ascii as quote
except ImportError:  # pragma: no cover
    from json.encoder import py_encode_basestring_ascii as quote

RETRIES = {"throttle": (429, "rate_limit"), "auth": (401, "authentication_failed")}
RETRIES["overloaded"] = (529, "overloaded")
RETRY_GAP_S = 0.05
FOR_EVER_S = 86400.0


class Worker:
    """One run of the worker."""

    def __init__(self, options: dict[str, str]) -> None:
        self.options = options
        self.session = options.get("resume") or f"echo-{os.getpid()}-{time.time_ns() // 1000}"
        self.answer: str | None = None
        self.turns = 1
        self.out = 0

    def emit(self, kind: str, **fields: object) -> None:
        parts = [f'"type":{quote(kind)}']
        for name, value in fields.items():
            if value is None:
                continue
            if isinstance(value, bool):
                word = "true" if value else "false"
            elif isinstance(value, (int, float)):
                word = repr(value)
            else:
                word = quote(str(value))
            parts.append(f"{quote(name)}:{word}")
        self.line("{" + ",".join(parts) + "}")

    def line(self, text: str) -> None:
        data = text.encode("utf-8", "surrogateescape") + b"\n"
        while data:
            data = data[os.write(1, data) :]

    def tool(self, name: str, text: str, result: str = "done") -> None:
        self.turns += 1
        self.emit("tool", tool=name, text=text)
        self.emit("tool-result", tool=name, text=result)

    def final(self, text: str, *, error: bool = False, status: int | None = None) -> None:
        self.emit(
            "final",
            text=text,
            isError=error,
            status=status,
            session=self.session,
            turns=self.turns,
            inputTokens=100,
            outputTokens=max(1, len(text) // 4),
        )

    def obey(self, word: str, rest: str) -> int | None:
        """Do one directive; an exit status where it ends the run."""
        if word == "say":
            self.emit("text", text=rest)
            self.answer = rest
        elif word == "answer":
            self.answer = rest
        elif word == "tool":
            name, _, text = rest.partition(" ")
            self.tool(name, text)
        elif word in ("write", "append"):
            path, _, text = rest.partition(" ")
            folder = os.path.dirname(path)
            if folder:
                os.makedirs(folder, exist_ok=True)
            with open(path, "w" if word == "write" else "a", encoding="utf-8") as file:
                file.write(text + "\n")
            self.tool(word, path)
        elif word == "run":
            status = os.waitstatus_to_exitcode(os.system(rest))
            self.tool("run", rest, f"status {status}")
        elif word == "env":
            value = os.environ.get(rest)
            self.answer = f"{rest} is {value}" if value is not None else f"{rest} is not set"
            self.emit("text", text=self.answer)
        elif word == "sleep":
            time.sleep(float(rest))
        elif word == "stderr":
            os.write(2, (rest + "\n").encode())
        elif word == "raw":
            self.line(rest)
        elif word == "flood":
            for n in range(int(rest)):
                self.emit("text", text=f"line {n}")
        elif word == "loop":
            for _ in range(int(rest)):
                self.emit("text", text="again")
                self.emit("error", text="the stream broke off")
        elif word == "fork":
            if os.fork() == 0:
                time.sleep(float(rest))
                os._exit(0)
        else:
            return self.end(word, rest)
        return None

    def end(self, word: str, rest: str) -> int | None:
        if word in ("limit", "limit-event"):
            window, _, reset = rest.partition(" ")
            text = f"You've hit your {window} limit"
            if word == "limit-event":
                at = int(reset) if reset.isdigit() else None
                self.emit("limit", status="rejected", window=window, resetsAt=at)
            elif reset:
                text += f" · resets {reset}"
            self.final(text, error=True, status=429)
            return 1
        if word in RETRIES:
            status, code = RETRIES[word]
            for n in range(1, 11):
                self.emit("retry", status=status, code=code, attempt=n, max=10, text=code)
                time.sleep(RETRY_GAP_S)
            self.final(f"API Error: {status} {code}", error=True, status=status)
            return 1
        if word == "error":
            self.emit("error", text=rest)
            self.final(rest, error=True)
            return 1
        if word == "empty":
            self.final("")
            return 0
        if word == "exit":
            return int(rest or 0)
        if word == "linger":
            self.final(self.answer or "It is done.")
            time.sleep(float(rest or FOR_EVER_S))
            return 0
        if word in ("hang", "deaf"):
            if word == "deaf":
                import signal

                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(float(rest or FOR_EVER_S))
            return 0
        self.emit("error", text=f"echo: no directive {word!r}")
        self.final(f"echo: no directive {word!r}", error=True)
        return 2


def directives(text: str, names: tuple[str, ...]) -> list[tuple[str, str]]:
    """The directives in a text that are for one of these names, in order."""
    found = []
    for line in text.splitlines():
        head, colon, rest = line.strip().partition(":")
        if not colon or not (head == "echo" or head.startswith("echo@")):
            continue
        if head != "echo" and head[5:] not in names:
            continue
        word, _, rest = rest.strip().partition(" ")
        found.append((word, rest.strip()))
    return found


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    options = {}
    for name, value in zip(words[::2], words[1::2], strict=False):
        options[name.lstrip("-")] = value
    prompt = os.fsdecode(sys.stdin.buffer.read())
    pool, home = options.get("pool", ""), options.get("home", "")
    names = (pool, pool.partition(":")[2], os.path.basename(home))
    script = ""
    if home and os.path.exists(os.path.join(home, "script")):
        with open(os.path.join(home, "script"), encoding="utf-8") as file:
            script = file.read()
    worker = Worker(options)
    worker.emit("start", session=worker.session, model=options.get("model") or "echo-large")
    for word, rest in directives(script, names) + directives(prompt, names):
        status = worker.obey(word, rest)
        if status is not None:
            return status
    worker.final(worker.answer if worker.answer is not None else told(prompt, pool))
    return 0


def told(prompt: str, pool: str) -> str:
    """The answer to a prompt that does not say one."""
    lines = [line for line in prompt.splitlines() if line.strip() and not line.startswith("echo")]
    first = lines[0].strip() if lines else "nothing"
    return f"{pool or 'echo'} was given {len(prompt)} characters, which began with: {first[:200]}"


if __name__ == "__main__":
    raise SystemExit(main())
