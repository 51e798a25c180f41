"""The public API under a strict checker, from outside the package."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

# Everything a program may want of the library, an adapter of its own included.
PROGRAM = """
import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from bullswarm import (
    Adapter, BullswarmError, Fleet, FleetEvent, Model, NoAccount, Policy, Quota, RouteDecision,
    RunResult, RunTask, UsageError,
)


class Mine:
    name = "mine"

    def accounts(self) -> Sequence[str]:
        return ["mine:one", "mine:two"]

    def quota(self, account: str) -> Quota:
        reset = datetime.now(UTC) + timedelta(days=2)
        return Quota(windows=(Quota.window(minutes=10080, used_pct=12.5, resets_at=reset),))

    def available_models(self, account: str) -> list[Model]:
        return [Model(name="small", latency="fast"), Model(name="large", family="large")]

    async def run(self, task: RunTask) -> RunResult:
        return RunResult(ok=True, text=f"{task.account}: {task.prompt}")


adapter: Adapter = Mine()
lists: dict[str, list[str]] = {"sql": ["mine"]}
policy = Policy(
    prefer=["claude", "codex"], quota_ceiling=80, strategy="most-quota", domains=lists,
    latency="fast",
)
fleet = Fleet(["codex", adapter, Mine()], home="/tmp/home", policy=Policy(prefer=("mine",)))
everything = Fleet([*fleet.adapters, Mine()])


async def main() -> None:
    decision: RouteDecision = await fleet.route("Hello.", policy)
    note: str | None = decision.note
    if decision.note:
        print(note, decision.account, decision.model or "", decision.candidates[0].pool)
    result: RunResult = await decision.adapter.run(RunTask("Hello.", lane="analyze"))
    ok: bool = result.ok
    seconds: float = result.wall_s
    print(ok, seconds, result.usage.input_tokens, result.failure_kind == "quota")
    if result.verdict is not None and result.verdict.changes is not None:
        print(result.verdict.changes.created)
    stream = fleet.stream(RunTask("Hello."), policy)
    async for event in stream:
        seen: FleetEvent = event
        if seen.event is not None:
            print(seen.event.kind, seen.event.text)
    await stream.aclose()
    results: list[RunResult] = await fleet.run_many(
        ["one", RunTask("two", account="codex", policy=policy)], concurrency=2, hold=False
    )
    print(len(results))


try:
    asyncio.run(main())
    print(fleet.run_sync("Hello.").text.upper(), fleet.route_sync("Hello.").reason)
    print([r.account for r in fleet.run_many_sync(str(n) for n in range(3))])
except NoAccount as error:
    print(error)
except (UsageError, BullswarmError) as error:
    print(error.exit_code + 1)
"""

# A line that is wrong, and what the checker says of it.
WRONG = {
    'RunTask("x", lane="analyse")': "arg-type",
    'RunTask(prompt="x", acount="codex")': "call-arg",
    "RunTask()": "call-arg",
    'Policy(strategy="fastest")': "arg-type",
    'Policy(prefer="claude,codex")': "arg-type",
    'Policy(latency="quick")': "arg-type",
    'Policy(quota_ceiling="80")': "arg-type",
    'Policy(["claude"])': "call-arg",
    'Policy(domains={"sql": "codex"})': "dict-item",
    "Fleet([object()])": "list-item",
    "Fleet(home=3)": "arg-type",
    'Fleet().run_sync("x", {"prefer": ["codex"]})': "arg-type",
    "Fleet().run_sync(3)": "arg-type",
    'Fleet().run_many_sync("x", concurrency="2")': "arg-type",
    'Fleet().run_sync("x").txt': "attr-defined",
    'Fleet().run_sync("x").text.append("y")': "attr-defined",
    "Quota.window(300, 4)": "call-arg",
    'Model(name="m", latency="medium")': "arg-type",
    'RunResult(ok=True, text="", failure_kind="tired")': "arg-type",
    'RunTask("x").prompt = "y"': "misc",
    "Fleet().route_sync('x').note.upper()": "union-attr",
}

HALF = """
from collections.abc import Sequence
from bullswarm import Adapter, Model, Quota, RunResult, RunTask

class Half:
    name = "half"

    def accounts(self) -> list[str]:
        return ["half"]

    def available_models(self, account: str) -> Sequence[Model]:
        return []

    {more}

adapter: Adapter = Half()
"""


def strictly(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    """mypy as an outsider runs it: installed package, strict, no configuration of ours."""
    program = folder / "program.py"
    program.write_text(textwrap.dedent(source))
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--config-file=",
            f"--cache-dir={CACHE}",
            "--no-error-summary",
            str(program),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=170,
    )


CACHE = Path(__file__).resolve().parents[2] / ".mypy_cache" / "outside"

pytestmark = pytest.mark.xdist_group("outside-types")


def test_a_program_with_an_adapter_of_its_own_is_clean(tmp_path: Path) -> None:
    done = strictly(tmp_path, PROGRAM)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_wrong_use_is_reported(tmp_path: Path) -> None:
    head = "from bullswarm import Fleet, Model, Policy, Quota, RunResult, RunTask\n"
    done = strictly(tmp_path, head + "\n".join(WRONG) + "\n")
    found: dict[int, list[str]] = {}
    for line in done.stdout.splitlines():
        _, number, *rest = line.split(":")
        found.setdefault(int(number), []).append(":".join(rest))
    for number, (line, code) in enumerate(WRONG.items(), start=2):
        said = found.get(number, [])
        assert any(f"[{code}]" in words for words in said), f"{line}: {said}"


def test_a_half_written_adapter_is_reported(tmp_path: Path) -> None:
    run = "async def run(self, task: RunTask) -> RunResult: ...  # type: ignore[empty-body]"
    quota = "def quota(self, account: str) -> {gives}: ..."
    said = strictly(tmp_path, HALF.format(more=run)).stdout
    assert '"Half" is missing following "Adapter" protocol member' in said and "quota" in said
    wrong = run + "\n\n    " + quota.format(gives="int")
    said = strictly(tmp_path, HALF.format(more=wrong)).stdout
    assert 'Following member(s) of "Half" have conflicts' in said
    assert "def quota(self, account: str) -> Quota | None" in said
    plain = run.replace("async ", "") + "\n\n    " + quota.format(gives="Quota | None")
    said = strictly(tmp_path, HALF.format(more=plain)).stdout
    assert "Coroutine[Any, Any, RunResult]" in said
