"""Argument templates. No shell is involved: an element of a template is an element of argv."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping

from bullswarm.errors import UsageError
from bullswarm.providers.types import Ask, Connector

PLACES = re.compile(r"\{([a-z_]+)\}")
"""``{name}`` in an element. Any other brace is a brace."""

VALUES = (
    "prompt",
    "prompt_file",
    "model",
    "effort",
    "session",
    "cwd",
    "permission",
    "pool",
    "home",
    "folder",
    "python",
)
"""What may stand anywhere in an element. ``folder`` is the provider's own, ``python`` is ours."""

GROUPS = ("model_args", "effort_args", "resume_args", "permission_args", "lane_args")
"""What stands as an element of its own and becomes none, one or several."""

MAX_ARG_BYTES = 120_000
"""The longest prompt that travels as an argument: Linux takes 128 KiB an argument."""


def fill(element: str, values: Mapping[str, str]) -> str:
    """The element with its places filled; an unknown place stays as it is."""
    return PLACES.sub(lambda m: values.get(m[1], m[0]), element)


def fill_all(elements: Iterable[str], values: Mapping[str, str]) -> list[str]:
    return [fill(element, values) for element in elements]


def values_for(
    connector: Connector, ask: Ask, *, pool: str, home: str, folder: str
) -> dict[str, str]:
    """What the places stand for in this attempt."""
    return {
        "prompt": ask.prompt,
        "prompt_file": ask.prompt_file or "",
        "model": ask.model or connector.default_model or "",
        "effort": _effort(connector, ask),
        "session": ask.resume_session or "",
        "cwd": ask.cwd,
        "permission": ask.permission_mode or "",
        "pool": pool,
        "home": home,
        "folder": folder,
        "python": sys.executable,
    }


def arguments(connector: Connector, ask: Ask, values: Mapping[str, str]) -> list[str]:
    """What follows the command. Raises ``UsageError`` for what this CLI can't do. Effort is
    advice: a CLI without such a switch does without it. A permission mode that was asked for
    stands in place of the lane's own arguments."""
    groups: dict[str, tuple[str, ...]] = dict.fromkeys(GROUPS, ())
    if ask.model is not None:
        groups["model_args"] = _need(connector, "model", connector.model_args, ask.model)
    elif values["model"]:
        groups["model_args"] = connector.model_args
    if ask.effort is not None:
        groups["effort_args"] = connector.effort_args
    if ask.resume_session is not None:
        groups["resume_args"] = _need(
            connector, "session", connector.resume_args, ask.resume_session
        )
    if ask.permission_mode is not None:
        groups["permission_args"] = _need(
            connector, "permission mode", connector.permission_args, ask.permission_mode
        )
    else:
        groups["lane_args"] = connector.lane_args.get(ask.lane, ())
    if connector.prompt_via == "arg" and len(ask.prompt.encode()) > MAX_ARG_BYTES:
        raise UsageError(
            f"prompt: {connector.name} takes it as an argument, which can hold "
            f"{MAX_ARG_BYTES} bytes; put the long part into a file and name the file"
        )
    argv: list[str] = []
    for element in connector.args:
        name = element[1:-1] if element[:1] == "{" and element[-1:] == "}" else ""
        if name in groups:
            argv += fill_all(groups[name], values)
        else:
            argv.append(fill(element, values))
    return argv


def _need(connector: Connector, what: str, args: tuple[str, ...], asked: str) -> tuple[str, ...]:
    if not args:
        raise UsageError(f"{what}: {connector.name} can't be told one; leave {asked!r} out")
    return args


def _effort(connector: Connector, ask: Ask) -> str:
    if ask.effort is None:
        return ""
    if not connector.efforts or not connector.effort_args or ask.effort in connector.efforts:
        return connector.efforts.get(ask.effort, ask.effort)
    if ask.effort in connector.efforts.values():
        return ask.effort
    known = ", ".join(dict.fromkeys([*connector.efforts, *connector.efforts.values()]))
    raise UsageError(f"effort: {connector.name} knows {known}, not {ask.effort!r}")
