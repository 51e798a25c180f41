"""A new provider's folder in the home, ready to be filled in."""

from __future__ import annotations

from pathlib import Path

from bullswarm.errors import BullswarmError, UsageError
from bullswarm.providers.registry import BUILT_IN
from bullswarm.providers.validate import NAME

CONNECTOR = """\
# How bullswarm launches {name}, reads its events and knows what it has left.
# Check it with: bullswarm provider validate {name}

name = "{name}"
title = "{name}"
# The program, looked for on PATH. {{python}} is bullswarm's own Python, {{folder}} this folder.
command = "{name}"

# The arguments. No shell is involved: one element here is one argument there.
# {{prompt}} {{prompt_file}} {{model}} {{effort}} {{session}} {{cwd}} {{permission}} {{pool}}
# {{home}} are filled in. The names that end in _args stand alone and become the lists below,
# but only when such a value was asked for.
args = ["run", "--json", "{{model_args}}", "{{lane_args}}"]
# "stdin" is better than "arg": an argument can't hold a long prompt.
promptVia = "stdin"
modelArgs = ["--model", "{{model}}"]
# effortArgs = ["--effort", "{{effort}}"]
# resumeArgs = ["--resume", "{{session}}"]
# permissionArgs = ["--mode", "{{permission}}"]

# What kinds of work it takes: analyze (reads), build (edits), chore (small edits).
lanes = ["analyze", "build", "chore"]
# Compared between pools, lower is cheaper.
costRank = 1
# The window that its quota is paced by: "weekly" or "monthly".
quotaWindow = "weekly"
# Pools that share one upstream credential share this word.
# upstreamGroup = "relay:example"
# The variable that selects a login home, where it is otherwise, and where others may be.
# homeEnv = "{env}_HOME"
# homeDefault = "~/.{name}"
# homeGlob = "~/.{name}-*"
# A file with what is left: {{"windows": [{{"minutes": 10080, "usedPct": 41, "resetsAt": "..."}}]}}
# meter = "file:{{home}}/meter.json"
# Words in its errors that mean a dead upstream credential.
# authSignatures = ["no available channel for model"]
installHint = "install it with: ..."
loginHint = "log in with: ..."

[laneArgs]
# analyze = ["--read-only"]

# How many of its own retries are waited for before the pool is given up.
[earlyKill]
auth = 2
throttle = 2

# Seconds without a byte before it counts as stalled.
[silence]
startupS = 120
runningS = 900

# One rule an event. The first rule that matches decides. "when" maps a dotted path to a word, a
# list of words, {{ exists = true }} or {{ matches = "regular expression" }}, whose named groups
# fill the fields of those names. "take" maps a field to the path it is read from.
# A program that prints plain text needs: [stream] format = "text", terminal = false, and no rules.
[stream]
format = "jsonl"

[[stream.rules]]
emit = "start"
when = {{ type = "start" }}
take = {{ session = "session_id", model = "model" }}

[[stream.rules]]
emit = "text"
when = {{ type = "message" }}
take = {{ text = "text" }}

[[stream.rules]]
emit = "tool"
when = {{ type = "tool" }}
take = {{ tool = "name", text = "input" }}

[[stream.rules]]
emit = "retry"
when = {{ type = "retry" }}
take = {{ status = "status", attempt = "attempt", maxAttempts = "max" }}

[[stream.rules]]
emit = "final"
when = {{ type = "result" }}
take = {{ text = "text", isError = "is_error", "usage.inputTokens" = "tokens.input" }}
"""

README = """\
# {name}

A provider for bullswarm.

1. Edit `connector.toml`: the program, its arguments, its events.
2. `bullswarm provider validate {name}` tells everything that is wrong, at once.
3. `bullswarm provider probe {name}` looks for the program, its login and its meter. It never spends
   a prompt.
4. `bullswarm run --pool {name} --lane analyze "Say hello"` tries it.

What the connector can't say goes into a `provider.py` beside it: one subclass of
`bullswarm.providers.ConnectorProvider` that overrides what this program does in its own way, such
as `login` (whose login a home holds), `read_meter`, `read_event` or `command`.
"""


def scaffold(home_providers: Path, name: str) -> Path:
    """Write ``<home>/providers/<name>`` with a commented connector and a README; gives the folder.
    Raises ``UsageError`` for a name that is none or built in, or a folder that is there already."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"name: {name!r} must be lower case letters, digits, dots and dashes (my-agent)"
        )
    if name in BUILT_IN:
        raise UsageError(
            f"name: {name!r} is built in, and this would take its place; choose another name"
        )
    folder = home_providers / name
    if folder.exists():
        raise UsageError(f"name: {folder} is there already; choose another name")
    values = {"name": name, "env": name.upper().replace("-", "_").replace(".", "_")}
    try:
        folder.mkdir(parents=True)
        (folder / "connector.toml").write_text(CONNECTOR.format(**values), encoding="utf-8")
        (folder / "README.md").write_text(README.format(**values), encoding="utf-8")
    except OSError as error:
        raise BullswarmError(f"{folder} can't be written: {error.strerror or error}") from error
    return folder
