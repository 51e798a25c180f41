"""The demo's worker: reads its task on stdin, writes a file, and spends a little of its meter.

Only the standard library; it is run by its path.
"""

# ruff: noqa: PTH103, PTH105, PTH110, PTH117, PTH118, PTH119, PTH120, PTH122, PTH208
# No pathlib: workers start by the hundred.
import json
import os
import re
import sys
import time

PAUSE_S = 0.15
SPENT_PCT = {300: 1.5, 10080: 0.4, 43200: 0.1}
"""What a task costs, in points of a window of so many minutes."""


def emit(kind: str, **fields: object) -> None:
    sys.stdout.write(json.dumps({"type": kind, **fields}) + "\n")
    sys.stdout.flush()
    time.sleep(PAUSE_S)


def file_in(prompt: str) -> str:
    """The first word of the task that looks like a file in this folder."""
    for match in re.finditer(r"[\w./-]+\.\w{1,8}\b", prompt):
        word = match[0]
        if not os.path.isabs(word) and ".." not in word.split("/"):
            return word
    return "demo.md"


def spend(home: str) -> None:
    path = os.path.join(home, "meter.json")
    try:
        with open(path, encoding="utf-8") as file:
            meter = json.load(file)
        for window in meter["windows"]:
            spent = SPENT_PCT.get(window["minutes"], 0.0)
            window["usedPct"] = min(100.0, round(window["usedPct"] + spent, 2))
        meter.pop("observedAt", None)
        part = f"{path}.{os.getpid()}"
        with open(part, "w", encoding="utf-8") as file:
            json.dump(meter, file, indent=2)
        os.replace(part, path)
    except (OSError, ValueError, KeyError, TypeError):
        return


def build(prompt: str, pool: str) -> str:
    path = file_in(prompt)
    emit("text", text=f"I will write {path}.")
    existed = os.path.exists(path)
    title = os.path.splitext(os.path.basename(path))[0].replace("-", " ").capitalize()
    lines = [
        f"# {title}",
        "",
        "Greetings from the demo fleet.",
        "",
        f"- Written by: {pool}",
        f"- The task: {' '.join(prompt.split())[:200]}",
    ]
    emit("tool", tool="write", text=path)
    if os.path.dirname(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a" if existed else "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    emit("tool-result", tool="write", text=f"{len(lines)} lines")
    word = "Added to" if existed else "Wrote"
    return f"{word} {path}: {len(lines)} lines with a greeting, who wrote it, and the task."


def analyze() -> str:
    emit("tool", tool="list", text=".")
    names = sorted(name for name in os.listdir(".") if not name.startswith("."))
    emit("tool-result", tool="list", text=f"{len(names)} entries")
    return f"The folder holds {len(names)} entries: {', '.join(names[:20]) or 'nothing'}."


def main() -> int:
    words = sys.argv[1:]
    options = {n.lstrip("-"): v for n, v in zip(words[::2], words[1::2], strict=False)}
    prompt = sys.stdin.read()
    pool = options.get("pool", "demo")
    session = f"demo-{os.getpid()}"
    emit("start", session=session, model=options.get("model", "demo-model"))
    answer = analyze() if options.get("lane") == "analyze" else build(prompt, pool)
    spend(options.get("home", ""))
    emit(
        "final",
        text=answer,
        isError=False,
        turns=2,
        session=session,
        inputTokens=len(prompt) // 4 + 200,
        outputTokens=len(answer) // 4,
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
