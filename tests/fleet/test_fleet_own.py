"""Adapters of a user's own: beside the built-in ones, in every strategy, whatever they raise."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from fleetkit import SAY, Machine, Own, ask

from bullswarm import Adapter, Fleet, NoAccount, Policy, Quota, RunResult, RunTask, UsageError
from bullswarm.fleet import ProviderAdapter
from bullswarm.routing.types import Window


class Quiet(Own):
    """Its quota is unknown, in one of the ways there are."""

    def __init__(self, how: str) -> None:
        super().__init__("quiet")
        self.how = how

    def quota(self, account: str) -> Quota | None:
        if self.how == "raises":
            raise ConnectionError("the meter is away")
        if self.how == "none":
            return None
        if self.how == "naive":
            return Quota(windows=Own().quota("x").windows, observed_at=datetime(2026, 1, 1))  # type: ignore[union-attr]
        if self.how == "no quota":
            return {"used": 3}  # type: ignore[return-value]
        if self.how == "naive reset":
            return Quota(
                windows=(
                    Window(
                        kind="weekly", minutes=10080, used_pct=3, resets_at=datetime(2100, 1, 1)
                    ),
                )
            )
        return Quota()


def test_a_class_of_ones_own_is_an_adapter_without_inheriting(machine: Machine) -> None:
    machine.account("a")
    own = Own()
    assert isinstance(own, Adapter) and Own.__mro__ == (Own, object)
    fleet = Fleet(["echo", own])
    assert [a.name for a in fleet.adapters] == ["echo", "own"]
    assert isinstance(fleet.adapters[0], ProviderAdapter) and fleet.adapters[1] is own
    assert isinstance(fleet.adapters[0], Adapter)
    result = fleet.run_sync(ask("Say hi.", model="own-model"), Policy(prefer=["own", "echo"]))
    assert result.ok and result.account == "own" and result.text == "own did it"
    [task] = own.ran
    assert (task.prompt, task.account, task.model) == ("Say hi.", "own", "own-model")
    assert task.cwd == str(machine.world.work) and task.policy is None
    assert fleet.run_sync(ask(), Policy(prefer=["echo", "own"])).account == "echo:a"


@pytest.mark.parametrize(
    ("own", "policy", "picked"),
    [
        (Own(used=10), {"strategy": "most-quota"}, "own"),
        (Own(used=90), {"strategy": "most-quota"}, "echo:a"),
        (Own(used=90), {"prefer": ["own", "echo:a"]}, "echo:a"),
        (Own(used=90), {"prefer": ["own", "echo:a"], "quota_ceiling": 95}, "own"),
        (Own(used=70, latency="slow"), {"strategy": "lowest-latency"}, "echo:a"),
        (Own(used=1), {"strategy": "pace"}, "own"),
        (Own(used=79), {"strategy": "pace"}, "echo:a"),
        (Own(used=100), {"prefer": ["own"]}, "echo:a"),
        (Own(used=None), {"prefer": ["own"]}, "own"),
        (Own(used=None), {"strategy": "most-quota"}, "echo:a"),
        (Own("own", "own:1", "own:2"), {"prefer": ["own:2"]}, "own:2"),
        (Own("own", "own:1", "own:2"), {"prefer": ["own"]}, "own:1"),
        (Own(), {"domains": {"sql": ["own"]}, "prefer": ["echo"]}, "own"),
    ],
)
def test_it_is_routed_by_the_same_rules(
    machine: Machine, own: Own, policy: dict[str, Any], picked: str
) -> None:
    machine.account("a", 50, 50)
    made = Fleet(["echo", own]).route_sync(ask(domain="sql"), Policy(**policy))
    assert made.account == picked, made.reason
    assert made.adapter.name == picked.partition(":")[0]


@pytest.mark.parametrize("how", ["raises", "none", "empty", "naive", "no quota", "naive reset"])
def test_a_quota_that_is_not_known_stops_nobody(machine: Machine, how: str) -> None:
    a = machine.account("a", 50, 50)
    quiet = Quiet(how)
    fleet = Fleet(["echo", quiet])
    assert fleet.route_sync(ask(), Policy(strategy="most-quota")).account == a
    result = fleet.run_sync(ask(), Policy(prefer=["quiet"]))
    assert result.ok and result.account == "quiet"
    made = fleet.route_sync(ask(), Policy(prefer=["quiet"]))
    assert "its reading is unknown" in made.reason
    assert next(c for c in made.candidates if c.pool == "quiet").reading_source == "none"


def test_models_and_accounts_that_raise_stop_nobody(machine: Machine) -> None:
    a = machine.account("a")

    class Broken(Own):
        def available_models(self, account: str) -> Sequence[Any]:
            raise OSError("no list")

    class Away(Own):
        def accounts(self) -> Sequence[str]:
            raise OSError("not logged in")

    broken = Broken("broken")
    assert Fleet([broken]).run_sync(ask(model="any")).ok and broken.ran[0].model == "any"
    fleet = Fleet(["echo", Away("away")])
    assert fleet.run_sync(ask(), Policy(prefer=["away"])).account == a
    with pytest.raises(NoAccount, match=r"accounts\(\) failed: OSError: not logged in"):
        Fleet([Away("away")]).route_sync(ask())

    class One(Own):
        def accounts(self) -> Any:
            return "one"

    with pytest.raises(NoAccount, match=r"accounts\(\) must be a list of names, not 'one'"):
        Fleet([One("one")]).route_sync(ask())

    class Texts(Own):
        def available_models(self, account: str) -> Any:
            return ["small", "large"]

    assert Fleet([Texts("texts")]).run_sync(ask(), Policy(strategy="lowest-latency")).ok


def test_what_it_says_of_a_limit_benches_it(machine: Machine) -> None:
    a = machine.account("a")

    def spent(task: RunTask) -> RunResult:
        return RunResult(ok=False, text="", why="the quota is spent", failure_kind="quota")

    own = Own(result=spent)
    fleet = Fleet(["echo", own], policy=Policy(prefer=["own", a]))
    result = fleet.run_sync(ask())
    assert result.ok and result.account == a and result.verdict is not None
    assert [x.pool for x in result.verdict.attempts] == ["own", a]
    row = next(c for c in fleet.route_sync(ask()).candidates if c.pool == "own")
    assert "quarantined (quota)" in (row.why_not or "")


def test_a_failure_of_its_own_is_tried_once_more_elsewhere(machine: Machine) -> None:
    a = machine.account("a")

    def explode(task: RunTask) -> RunResult:
        raise RuntimeError("boom")

    result = Fleet(["echo", Own(result=explode)]).run_sync(ask(), Policy(prefer=["own", a]))
    assert result.ok and result.account == a
    alone = Fleet([Own(result=explode)]).run_sync(ask())
    assert not alone.ok and "own raised RuntimeError: boom" in alone.why
    assert alone.failure_kind == "process"


def test_a_failure_without_a_word_gets_one(machine: Machine) -> None:
    result = Fleet([Own(result=lambda task: RunResult(ok=False, text="half"))]).run_sync(ask())
    assert (result.ok, result.failure_kind) == (False, "process")
    assert result.why.startswith("own failed and said no more")
    assert result.text == "half"


def test_its_work_is_recorded_measured_and_explained(machine: Machine) -> None:
    own = Own(takes=0.3)
    result = Fleet([own]).run_sync(ask("Say hi."))
    assert result.verdict is not None and 0.3 <= result.verdict.attempts[0].wall_s < 3
    [run] = machine.world.bullswarm("runs", "--json").json["runs"]
    assert (run["pool"], run["state"]) == ("own", "ok")
    explained = machine.world.bullswarm("explain", result.verdict.run_id or "")
    assert explained.code == 0 and "the same pick (own)" in explained.stdout
    quick = Own("quick")
    fleet = Fleet([own, quick], policy=Policy(strategy="lowest-latency"))
    assert fleet.run_sync(ask(account="quick")).ok
    made = fleet.route_sync(ask())
    assert made.account == "quick" and "median 0 s" in made.reason


def test_work_is_spread_over_both_kinds(machine: Machine) -> None:
    machine.account("a")
    own = Own(used=None, takes=0.5)
    tasks = [ask(f"echo: sleep 0.5\n{SAY}") for _ in range(8)]
    results = Fleet(["echo", own]).run_many_sync(tasks, concurrency=8)
    assert all(r.ok for r in results)
    assert Counter(r.account for r in results) == {"echo:a": 4, "own": 4}


def test_it_is_ended_at_its_timeout(machine: Machine) -> None:
    own = Own(takes=300)
    began = time.monotonic()
    result = Fleet([own]).run_sync(ask(timeout_s=0.4))
    assert not result.ok and result.failure_kind == "stalled" and "timed out" in result.why
    assert own.cancelled >= 1 and time.monotonic() - began < 5


def test_what_a_task_asks_for_is_judged_here_too(machine: Machine, tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object", "required": ["files"]}')

    def go(text: str, answer: Any = None, **fields: Any) -> RunResult:
        own = Own(result=lambda task: RunResult(ok=True, text=text, answer=answer))
        return Fleet([own]).run_sync(ask("Count.", **fields))

    told = go('Here: {"files": 3}', answer_schema=str(schema))
    assert told.ok and told.answer == {"files": 3}
    assert go("", {"files": 4}, answer_schema=str(schema)).answer == {"files": 4}
    wrong = go("three", answer_schema=str(schema))
    assert not wrong.ok and wrong.failure_kind == "schema"
    missing = go("I wrote it.", deliverables=("report.md",))
    assert not missing.ok and missing.failure_kind == "not-produced" and "report.md" in missing.why
    # Nothing else is asked of it: a build that says it is done needs no file.
    assert go("done", lane="build").ok


def test_its_run_is_called_on_the_callers_loop(machine: Machine) -> None:
    loops: list[Any] = []

    class Bound(Own):
        async def run(self, task: RunTask) -> RunResult:
            loops.append(asyncio.get_running_loop())
            return RunResult(ok=True, text="done")

    async def main() -> bool:
        await Fleet([Bound()]).run(ask())
        return loops == [asyncio.get_running_loop()]

    assert asyncio.run(main())


def test_the_adapter_of_a_decision_runs_there(machine: Machine) -> None:
    a = machine.account("a")
    own = Own()
    fleet = Fleet(["echo", own])

    async def main() -> None:
        for account in (a, "own"):
            decision = await fleet.route(ask(), Policy(prefer=[account]))
            assert decision.account == account
            assert list(decision.adapter.accounts()) == [account]
            result = await decision.adapter.run(ask())
            assert result.ok and result.account == account
            assert isinstance(decision.adapter.quota(account), Quota)
            assert decision.adapter.available_models(account)
        with_fast = await fleet.route(ask(), Policy(prefer=[a], latency="fast"))
        result = await with_fast.adapter.run(ask())
        assert result.verdict is not None and "echo-small" in result.verdict.pick.command  # type: ignore[union-attr]

    asyncio.run(main())


def test_built_in_adapters_meet_the_protocol_on_their_own(machine: Machine) -> None:
    machine.account("a", 30, 40)
    b = machine.account("b")
    adapter = next(x for x in Fleet().adapters if x.name == "echo")
    assert list(adapter.accounts()) == ["echo:a", "echo:b"]
    quota = adapter.quota("echo:a")
    assert quota is not None and [w.used_pct for w in quota.windows] == [30.0, 40.0]
    unknown = adapter.quota(b)
    assert unknown is not None and unknown.windows == ()
    assert {m.latency for m in adapter.available_models(b)} == {"fast", "slow"}
    result = asyncio.run(adapter.run(ask(account=b)))
    assert result.ok and result.account == b
    assert asyncio.run(adapter.run(ask())).ok
    with pytest.raises(UsageError, match="no pool named 'echo:z'"):
        adapter.quota("echo:z")


def test_adapters_of_another_fleet_serve_this_ones_home(machine: Machine) -> None:
    machine.account("a")
    fleet = Fleet([*Fleet().adapters, Own()])
    assert {a.name for a in fleet.adapters} >= {"echo", "own", "codex"}
    assert fleet.run_sync(ask(), Policy(prefer=["own"])).account == "own"


@pytest.mark.parametrize(
    ("adapters", "said"),
    [
        (["claud"], "adapters: no provider named 'claud'; there are: claude-code, codex"),
        (["echo", "echo"], "two of them are named 'echo'"),
        ([Own(), Own()], "two of them are named 'own'"),
        ([object()], "object is no adapter; it needs a name, accounts(), quota()"),
        ([Own("")], "Own is no adapter; it needs a name"),
        ([Own], "adapters: Own is a class; give Own()"),
    ],
)
def test_adapters_that_are_none(machine: Machine, adapters: list[Any], said: str) -> None:
    with pytest.raises(UsageError) as error:
        Fleet(adapters)
    assert said in str(error.value)


def test_its_capabilities_and_cost(machine: Machine) -> None:
    machine.account("a")
    able, cheap = Own("able", used=None), Own("cheap", used=None)
    able.capabilities = ("web",)  # type: ignore[attr-defined]
    cheap.cost_rank = 0.5  # type: ignore[attr-defined]
    fleet = Fleet([able, cheap])
    assert fleet.run_sync(ask()).account == "cheap"
    assert fleet.run_sync(ask(capabilities=("web",))).account == "able"
    with pytest.raises(NoAccount, match="lacks images"):
        fleet.route_sync(ask(capabilities=("images",)))


def test_a_model_that_is_not_in_the_list_but_configured_runs(machine: Machine) -> None:
    a = machine.account("a")
    done = machine.world.bullswarm("strategy", "set-subscription", a, "--model", "echo-next")
    assert done.code == 0, done.stderr
    decision = Fleet().route_sync(ask())
    assert decision.model == "echo-next"
    result = asyncio.run(decision.adapter.run(ask()))
    assert result.ok and result.verdict is not None and result.verdict.pick is not None
    assert "echo-next" in result.verdict.pick.command


def test_two_adapters_with_one_account(machine: Machine) -> None:
    a = machine.account("a")
    with pytest.raises(UsageError, match=f"two adapters have an account named '{a}'"):
        Fleet(["echo", Own("own", a)]).run_sync(ask())
