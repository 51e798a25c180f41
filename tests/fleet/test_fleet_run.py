"""``Fleet.run``: the result, what is refused, permission modes, and what follows a failure."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from fleetkit import SAY, Machine, Own, ask

from bullswarm import Fleet, Policy, RunTask, UsageError


def test_the_result_of_an_answer(machine: Machine) -> None:
    a = machine.account("a")
    result = Fleet().run_sync(ask())
    assert result.ok and result.why == "verified" and result.failure_kind is None
    assert result.text == SAY.removeprefix("echo: answer ")
    assert result.account == a
    assert result.session is not None and result.session.startswith("echo-")
    assert result.usage.input_tokens == 100 and result.usage.cost_usd is None
    assert 0 < result.wall_s < 30
    verdict = result.verdict
    assert verdict is not None and verdict.ok and verdict.pick is not None
    assert verdict.pick.pool == a and len(verdict.attempts) == 1
    assert Path(verdict.out_file or "").read_text() == result.text
    # It is recorded as a run of the command line's is.
    [run] = machine.world.bullswarm("runs", "--json").json["runs"]
    assert run["runId"] == verdict.run_id
    assert machine.world.bullswarm("explain", verdict.run_id or "").code == 0


def test_a_build_is_judged_by_what_changed(machine: Machine) -> None:
    machine.account("a")
    fleet = Fleet()
    made = fleet.run_sync(f"echo: write src/new.py x = 1\n{SAY}")
    assert made.ok and made.verdict is not None and made.verdict.changes is not None
    assert made.verdict.changes.created == ("src/new.py",)
    nothing = fleet.run_sync(SAY)
    assert not nothing.ok and nothing.failure_kind == "not-produced"


def test_a_typed_answer(machine: Machine, tmp_path: Path) -> None:
    machine.account("a")
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps({"type": "object", "required": ["files"]}))
    result = Fleet().run_sync(ask('echo: answer {"files": 3}', answer_schema=schema))
    assert result.ok and result.answer == {"files": 3}
    wrong = Fleet().run_sync(ask('echo: answer {"lines": 3}', answer_schema=str(schema)))
    assert not wrong.ok and wrong.failure_kind == "schema" and wrong.answer is None


def test_every_field_of_a_task_arrives(machine: Machine, tmp_path: Path) -> None:
    machine.account("a")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    task = RunTask(
        f"echo: write made.txt hi\n{SAY}",
        account="echo:a",
        cwd=folder,
        lane="chore",
        model="echo-small",
        effort="high",
        permission_mode="careful",
        deliverables=("made.txt",),
    )
    result = Fleet().run_sync(task)
    assert result.ok, result.why
    assert (folder / "made.txt").exists()
    assert result.verdict is not None and result.verdict.pick is not None
    command = " ".join(result.verdict.pick.command)
    assert "--model echo-small" in command and "--effort high" in command
    assert "--permission careful" in command
    assert machine.world.bullswarm("runs", "--json").json["runs"][0]["lane"] == "chore"
    missing = Fleet().run_sync(ask(deliverables=("other.txt",)))
    assert not missing.ok and "other.txt" in missing.why


def test_a_timeout_ends_the_run(machine: Machine) -> None:
    machine.account("a")
    result = Fleet().run_sync(ask("echo: sleep 30", timeout_s=0.5))
    assert not result.ok and "timed out" in result.why and result.wall_s < 20
    assert not machine.world.alive()


def test_a_limit_moves_the_work_on(machine: Machine) -> None:
    a, b = machine.account("a", 10, 10), machine.account("b", 10, 10)
    machine.script("a", "limit session 8:20pm (UTC)")
    result = Fleet().run_sync(ask(), Policy(prefer=[a, b]))
    assert result.ok and result.account == b and result.verdict is not None
    assert [x.failure_kind for x in result.verdict.attempts] == ["quota", None]
    made = Fleet().route_sync(ask(), Policy(prefer=[a, b]))
    assert made.account == b
    assert "quarantined" in str(next(c.why_not for c in made.candidates if c.pool == a))


BAD: list[tuple[dict[str, Any], str]] = [
    ({"prompt": "  \n"}, "prompt: it is empty"),
    ({"prompt": None}, "prompt: it is empty"),
    ({"cwd": "/nowhere/at/all"}, "cwd: /nowhere/at/all is not a folder"),
    ({"lane": "analyse"}, "lane must be one of analyze, build, chore, not 'analyse'; did you mean"),
    ({"timeout_s": 0}, "timeout_s must be more than 0"),
    ({"capabilities": "web"}, "capabilities must be a list of names, not 'web'"),
    ({"deliverables": ("../out.txt",)}, "deliverable: ../out.txt is outside"),
    ({"account": "echo:z"}, "account: no account or vendor named 'echo:z'; there are: "),
    ({"answer_schema": "/nowhere.json"}, "nowhere.json"),
    ({"policy": Policy(strategy="fastest")}, "strategy must be one of pace, prefer-order"),  # type: ignore[arg-type]
    ({"policy": Policy(strategy="prefer-ordre")}, "did you mean 'prefer-order'"),  # type: ignore[arg-type]
    ({"policy": Policy(quota_ceiling=101)}, "quota_ceiling must be a percentage from 0 to 100"),
    ({"policy": Policy(quota_ceiling=float("nan"))}, "quota_ceiling must be a percentage"),
    ({"policy": Policy(prefer="claude,codex")}, "prefer must be a list of names, not 'claude"),  # type: ignore[arg-type]
    ({"policy": Policy(domains={"sql": "echo:a"})}, "domains.sql must be a list of names"),  # type: ignore[dict-item]
    ({"policy": Policy(latency="quick")}, "latency must be one of fast, slow"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("fields", "said"), BAD, ids=[said for _, said in BAD])
def test_bad_input_is_told_before_anything_starts(
    machine: Machine, fields: dict[str, Any], said: str
) -> None:
    machine.account("a")
    fleet = Fleet()
    task = ask(**{"prompt": SAY, **fields})
    for call in (fleet.run_sync, fleet.route_sync):
        with pytest.raises(UsageError) as error:
            call(task)
        assert said in str(error.value)
    with pytest.raises(UsageError) as error:
        fleet.run_many_sync([ask(), task])
    assert str(error.value).startswith("tasks[1]: ") and said in str(error.value)
    assert not list((machine.world.bull / "runs").glob("task-*"))


def test_a_bad_policy_is_told_wherever_it_is_given(machine: Machine) -> None:
    machine.account("a")
    bad = Policy(quota_ceiling=-1)
    with pytest.raises(UsageError, match="quota_ceiling"):
        Fleet(policy=bad)
    with pytest.raises(UsageError, match="quota_ceiling"):
        Fleet().run_sync(ask(), bad)
    with pytest.raises(UsageError, match="policy must be a Policy, not dict"):
        Fleet().run_sync(ask(), {"prefer": ["echo:a"]})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="a task must be a RunTask or a text, not int"):
        Fleet().run_sync(3)  # type: ignore[arg-type]


def test_a_permission_mode_without_an_account_needs_one_vendor(machine: Machine) -> None:
    machine.account("a")
    machine.account("b")
    task = ask(permission_mode="plan")
    with pytest.raises(UsageError) as error:
        Fleet(["echo", Own()]).run_sync(task)
    assert str(error.value) == (
        "permission_mode: 'plan' is one vendor's own word, and this task could go to echo or own; "
        "set account as well"
    )
    with pytest.raises(UsageError, match="nobody can take this task"):
        Fleet([]).run_sync(task)
    # One vendor, two accounts: there is no doubt whose word it is.
    result = Fleet(["echo"]).run_sync(task)
    assert result.ok and result.verdict is not None and result.verdict.pick is not None
    command = result.verdict.pick.command
    assert command[command.index("--permission") + 1] == "plan"
    # Vendors without an account that can run can't be picked.
    assert Fleet().run_sync(task).ok


def test_a_permission_mode_reaches_an_adapter_of_ones_own_as_it_is(machine: Machine) -> None:
    machine.account("a")
    own = Own()
    result = Fleet(["echo", own]).run_sync(ask(account="own", permission_mode="yolo"))
    assert result.ok and own.ran[0].permission_mode == "yolo"


def test_a_vendor_that_knows_no_permission_modes_says_so(machine: Machine) -> None:
    from bullswarm.providers.demo import set_up

    home = machine.world.root / "demo"
    work = set_up(home)
    fleet = Fleet(home=home)
    task = RunTask(
        "Write hello.md", account="demo-codex", permission_mode="plan", cwd=str(work), timeout_s=60
    )
    for _ in range(2):
        with pytest.raises(UsageError, match="permission mode: demo can't be told one"):
            fleet.run_sync(task)
    # Nothing is left that counts as work in flight.
    assert fleet.route_sync(ask(cwd=str(work))).candidates[0].inflight == 0
    live = machine.world.bullswarm("--home", str(home), "assignments", "--json").json
    assert live["assignments"] == []


def test_a_vendor_says_clearly_that_a_permission_mode_is_none_of_its_words(
    machine: Machine,
) -> None:
    """As the real CLIs do: usage on stderr, and an exit status."""
    [_] = machine.world.echo("a")
    said = "error: option '--permission-mode <mode>' argument 'yolo' is invalid."
    machine.script("a", f"stderr {said}", "exit 1")
    result = Fleet().run_sync(ask(account="echo:a", permission_mode="yolo"))
    assert not result.ok and result.failure_kind == "process"
    assert "argument 'yolo' is invalid" in result.why


def test_depth_is_kept_to(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.account("a")
    monkeypatch.setenv("BULLSWARM_DEPTH", "2")
    result = Fleet().run_sync(ask())
    assert not result.ok and result.failure_kind == "depth"


def test_many_runs_at_once_in_one_loop(machine: Machine) -> None:
    machine.account("a")
    machine.account("b")
    fleet = Fleet()

    async def main() -> list[Any]:
        return await asyncio.gather(*(fleet.run(ask()) for _ in range(12)))

    results = asyncio.run(main())
    assert all(r.ok for r in results)
    assert {r.account for r in results} == {"echo:a", "echo:b"}
