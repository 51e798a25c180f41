"""The environment of a worker, and how deep in agents of agents we are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bullswarm.dispatch.errors import DepthError

DEPTH = "BULLSWARM_DEPTH"
ATTEMPT = "BULLSWARM_ATTEMPT"


def depth(env: Mapping[str, str]) -> int:
    """How many agents started by bullswarm we run inside of; nonsense counts as 0."""
    word = env.get(DEPTH, "").strip()
    return int(word) if word.isascii() and word.isdigit() and len(word) < 10 else 0


def check_depth(env: Mapping[str, str], limit: int) -> int:
    """The depth we are at. Raises ``DepthError`` where a worker of ours would be deeper than
    ``limit``."""
    here = depth(env)
    if here >= limit:
        raise DepthError(
            f"this is {here} agents deep and the limit is {limit} (config.depthLimit): "
            "do the work here instead of handing it on"
        )
    return here


def next_depth(env: Mapping[str, str]) -> int:
    """The depth of a worker that we start."""
    return depth(env) + 1


def worker_env(
    env: Mapping[str, str], set_: Mapping[str, str] | None = None, drop: Iterable[str] = ()
) -> dict[str, str]:
    """Our environment without what is to be dropped, with what is to be set."""
    left_out = set(drop)
    return {k: v for k, v in env.items() if k not in left_out} | dict(set_ or {})


def mark(env: dict[str, str], attempt_id: str) -> dict[str, str]:
    """The environment with the attempt's mark, after those of the attempts it runs inside of: a
    dead attempt's whole offspring can be found by any of them."""
    outer = env.get(ATTEMPT, "")
    return {**env, ATTEMPT: f"{outer} {attempt_id}".strip()}
