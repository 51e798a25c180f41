"""Each strategy through ``Fleet.route``: what is asked, who is picked, and what is said."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fleetkit import Machine, Own, ask

from bullswarm import Fleet, NoAccount, Policy, UsageError

# Accounts with (5-hour used%, weekly used%), None for no meter; the policy; who is picked; a part
# of the reason.
TABLE: list[tuple[str, dict[str, tuple[float, float] | None], dict[str, Any], str, str]] = [
    (
        "prefer-order is the default and takes the first",
        {"a": (10, 10), "b": (50, 50)},
        {"prefer": ["echo:b", "echo:a"]},
        "b",
        "first in the preference that passes",
    ),
    (
        "prefer-order passes over who is above the ceiling of its fullest window",
        {"a": (85, 5), "b": (50, 50)},
        {"prefer": ["echo:a", "echo:b"]},
        "b",
        "under the 80% ceiling",
    ),
    (
        "at the ceiling is not above it",
        {"a": (80, 5), "b": (5, 5)},
        {"prefer": ["echo:a", "echo:b"]},
        "a",
        "80% of its fullest window used",
    ),
    (
        "the ceiling is the policy's",
        {"a": (60, 5), "b": (5, 5)},
        {"prefer": ["echo:a", "echo:b"], "quota_ceiling": 50},
        "b",
        "under the 50% ceiling",
    ),
    (
        "prefer-order without a list takes the most surplus",
        {"a": (10, 60), "b": (10, 20)},
        {},
        "b",
        "no preference given",
    ),
    (
        "a preferred vendor means all its accounts",
        {"a": (85, 85), "b": (10, 10)},
        {"prefer": ["echo"]},
        "b",
        "first in the preference that passes",
    ),
    (
        "an account without a meter passes the ceiling",
        {"a": None, "b": (1, 1)},
        {"prefer": ["echo:a", "echo:b"]},
        "a",
        "its reading is unknown",
    ),
    (
        "most-quota takes the most headroom of the fullest window",
        {"a": (70, 0), "b": (0, 60), "c": (30, 30)},
        {"strategy": "most-quota"},
        "c",
        "most headroom, 70.0 points left",
    ),
    (
        "most-quota looks at headroom before preference",
        {"a": (50, 50), "b": (20, 20)},
        {"strategy": "most-quota", "prefer": ["echo:a"]},
        "b",
        "most headroom",
    ),
    (
        "most-quota never takes unknown for empty",
        {"a": None, "b": (70, 70)},
        {"strategy": "most-quota"},
        "b",
        "30.0 points left",
    ),
    (
        "pace takes who is furthest behind its week, whatever the list says",
        {"a": (10, 40), "b": (10, 10)},
        {"strategy": "pace", "prefer": ["echo:a"]},
        "b",
        "",
    ),
    (
        "pace keeps away from a 5-hour window that is about to close",
        {"a": (95, 1), "b": (10, 40)},
        {"strategy": "pace"},
        "b",
        "",
    ),
]


def decide(policy: dict[str, Any], **fields: Any) -> Any:
    return Fleet().route_sync(ask(**fields), Policy(**policy))


@pytest.mark.parametrize(
    ("accounts", "policy", "picked", "said"),
    [row[1:] for row in TABLE],
    ids=[row[0].replace(" ", "-") for row in TABLE],
)
def test_strategies(
    machine: Machine,
    accounts: dict[str, tuple[float, float] | None],
    policy: dict[str, Any],
    picked: str,
    said: str,
) -> None:
    for name, used in accounts.items():
        machine.account(name, *(used or ()))
    made = decide(policy)
    assert made.account == f"echo:{picked}", made.reason
    assert said in made.reason
    assert made.note is None
    assert made.decision.strategy == policy.get("strategy", "prefer-order")
    assert made.candidates[0].pool == made.account
    losers = [c for c in made.candidates if c.pool != made.account and c.provider == "echo"]
    assert len(losers) == len(accounts) - 1 and all(c.lost or c.why_not for c in losers)


@pytest.mark.parametrize("strategy", ["prefer-order", "most-quota", "lowest-latency"])
def test_everybody_over_the_ceiling_runs_the_first_preference_and_the_note_says_so(
    machine: Machine, strategy: Any
) -> None:
    a, b = machine.account("a", 96, 20), machine.account("b", 90, 20)
    policy = Policy(strategy=strategy, prefer=[a, b], quota_ceiling=80)
    made = Fleet().route_sync(ask(), policy)
    assert made.account == a
    assert made.note is not None
    assert "every candidate is over the 80% quota ceiling" in made.note
    assert f"{a} runs anyway as the first preference" in made.note
    # And it does run: a best effort is better than a stop.
    result = asyncio.run(made.adapter.run(ask()))
    assert result.ok and result.account == a


def test_run_says_of_a_gated_fallback_in_its_verdict(machine: Machine) -> None:
    a = machine.account("a", 96, 20)
    result = Fleet().run_sync(ask(), Policy(prefer=[a]))
    assert result.ok and result.verdict is not None
    assert any("over the 80% quota ceiling" in note for note in result.verdict.notes)


def test_lowest_latency_takes_the_fast_model_over_a_slow_one(machine: Machine) -> None:
    machine.account("a", 10, 10)
    slow = Own("slow", latency="slow", used=0)
    made = Fleet(["echo", slow]).route_sync(ask(), Policy(strategy="lowest-latency"))
    assert (made.account, made.model) == ("echo:a", "echo-small")
    assert "fast model echo-small, not measured here yet" in made.reason
    row = next(c for c in made.candidates if c.pool == "slow")
    assert row.lost is not None and "slow model" in row.lost


def test_lowest_latency_is_refined_by_what_was_measured_here(machine: Machine) -> None:
    a, b = machine.account("a", 10, 10), machine.account("b", 50, 50)
    machine.script("a", "sleep 0.5")
    fleet = Fleet(policy=Policy(strategy="lowest-latency"))
    assert fleet.route_sync(ask()).account == a, "the surplus decides while nothing is measured"
    for account in (a, b):
        assert fleet.run_sync(ask(account=account)).ok
    made = fleet.route_sync(ask())
    assert made.account == b and "median" in made.reason
    assert next(c.lost for c in made.candidates if c.pool == a) == "slower in the last hour"


@pytest.mark.parametrize(
    ("latency", "model"), [("fast", "echo-small"), ("slow", None), (None, None)]
)
def test_latency_asks_for_a_fast_model_or_tolerates_a_slow_one(
    machine: Machine, latency: Any, model: str | None
) -> None:
    machine.account("a", 10, 10)
    made = decide({"latency": latency})
    assert made.model == model
    result = asyncio.run(made.adapter.run(ask()))
    assert result.verdict is not None
    assert ("echo-small" in result.verdict.pick.command) is (model is not None)


def test_an_asked_model_beats_the_latency(machine: Machine) -> None:
    machine.account("a", 10, 10)
    assert decide({"latency": "fast"}, model="echo-large").model == "echo-large"


def test_a_domain_has_a_list_of_its_own(machine: Machine) -> None:
    a, b = machine.account("a", 10, 10), machine.account("b", 10, 10)
    policy = {"prefer": [a], "domains": {"sql": [b], "empty": []}}
    assert decide(policy, domain="sql").account == b
    assert decide(policy, domain="css").account == a, "a domain without a list"
    assert decide(policy).account == a


def test_a_tasks_own_policy_wins_over_the_calls_and_the_fleets(machine: Machine) -> None:
    a, b, c = (machine.account(n, 10, 10) for n in "abc")
    fleet = Fleet(policy=Policy(prefer=[a]))
    call, own = Policy(prefer=[b]), Policy(prefer=[c])
    assert fleet.route_sync(ask()).account == a
    assert fleet.route_sync(ask(), call).account == b
    assert fleet.route_sync(ask(policy=own), call).account == c
    assert fleet.run_sync(ask(policy=own), call).account == c
    many = fleet.run_many_sync([ask(policy=own), ask(policy=call), ask()])
    assert [r.account for r in many] == [c, b, a]


def test_account_pins(machine: Machine) -> None:
    machine.account("a", 10, 10)
    b = machine.account("b", 99, 99)
    made = decide({"prefer": ["echo:a"]}, account=b)
    assert made.account == b, "a pin is stronger than a preference and a ceiling"
    assert Fleet().run_sync(ask(account=b)).account == b
    # A pinned account that can't take it is never swapped for another.
    machine.world.meter("b", {"minutes": 300, "usedPct": 100, "resetsAt": "2100-01-01T00:00:00Z"})
    with pytest.raises(NoAccount, match="window full"):
        decide({}, account=b)
    result = Fleet().run_sync(ask(account=b))
    assert not result.ok and result.failure_kind == "unavailable" and "window full" in result.why


def test_account_can_name_a_vendor(machine: Machine) -> None:
    machine.account("a", 90, 90)
    b = machine.account("b", 10, 10)
    own = Own(used=0)
    fleet = Fleet(["echo", own])
    assert fleet.route_sync(ask(account="echo")).account == b
    assert fleet.run_sync(ask(account="echo")).account == b
    assert fleet.route_sync(ask(account="own")).account == "own"
    with pytest.raises(UsageError, match="account: no account or vendor named 'ecco'"):
        fleet.route_sync(ask(account="ecco"))


def test_a_preference_may_name_who_is_not_here_but_must_name_somebody(machine: Machine) -> None:
    a = machine.account("a", 10, 10)
    assert decide({"prefer": ["gemini", "claude", a]}).account == a
    with pytest.raises(UsageError, match="prefer: no pool or provider named 'claud'"):
        decide({"prefer": ["claud", a]})
    with pytest.raises(UsageError, match=r"domains\.sql: no pool or provider named 'nobody'"):
        decide({"domains": {"sql": ["nobody"]}})


def test_nobody_to_ask_is_an_error_that_says_why(machine: Machine) -> None:
    with pytest.raises(NoAccount) as error:
        Fleet().route_sync(ask())
    assert "claude-code" in str(error.value)
    with pytest.raises(NoAccount):
        Fleet([]).route_sync(ask())
    result = Fleet([]).run_sync(ask())
    assert not result.ok and result.failure_kind == "unavailable"


def test_route_registers_and_starts_nothing(machine: Machine) -> None:
    machine.account("a", 10, 10)
    made = decide({})
    assert not list((machine.world.bull / "runs").glob("*")), made
    assert machine.world.bullswarm("runs", "--json").json["runs"] == []


def test_route_says_what_run_does(machine: Machine) -> None:
    for name, used in {"a": 40, "b": 20, "c": 60}.items():
        machine.account(name, used, used)
    fleet = Fleet()
    for strategy in ("prefer-order", "most-quota", "lowest-latency", "pace"):
        policy = Policy(strategy=strategy)
        assert fleet.route_sync(ask(), policy).account == fleet.run_sync(ask(), policy).account
