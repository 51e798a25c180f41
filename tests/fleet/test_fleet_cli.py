"""The same policies from the command line, for one run and as defaults, and the note they leave."""

from __future__ import annotations

from typing import Any

import pytest
from fleetkit import SAY, Machine

RUN = ("run", "--lane", "analyze", SAY)


def picked(machine: Machine, *flags: str) -> Any:
    ran = machine.world.bullswarm(*RUN, *flags, "--dry-run", "--json")
    assert ran.code == 0, ran.stderr
    return ran.json


@pytest.mark.parametrize(
    ("flags", "pool", "strategy"),
    [
        ((), "c", "pace"),
        (("--strategy", "prefer-order", "--prefer", "echo:b,echo:a"), "b", "prefer-order"),
        (("--strategy", "prefer-order", "--prefer", " echo:d , echo:a "), "a", "prefer-order"),
        (
            ("--strategy", "prefer-order", "--prefer", "echo:d", "--quota-ceiling", "99"),
            "d",
            "prefer-order",
        ),
        (
            ("--strategy", "most-quota", "--prefer", "echo:a", "--quota-ceiling", "80"),
            "b",
            "most-quota",
        ),
        (("--strategy", "lowest-latency", "--prefer", "echo:b"), "b", "lowest-latency"),
        (("--strategy", "pace", "--prefer", "echo:a"), "c", "pace"),
    ],
)
def test_one_run(machine: Machine, flags: tuple[str, ...], pool: str, strategy: str) -> None:
    fleet(machine)
    decision = picked(machine, *flags)
    assert decision["pool"] == f"echo:{pool}", decision["reason"]
    assert decision["strategy"] == strategy and decision["note"] is None


def test_the_names_people_use(machine: Machine) -> None:
    """``claude`` is ``claude-code``; who is not on this machine is passed over, a typo is not."""
    fleet(machine)
    flags = ("--strategy", "prefer-order", "--prefer")
    assert picked(machine, *flags, "claude,codex,echo:b")["pool"] == "echo:b"
    ran = machine.world.bullswarm(*RUN, *flags, "claud,codex")
    assert ran.code == 2 and "no pool or provider named 'claud'" in ran.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--strategy", "fastest"), "'fastest' is not one of"),
        (("--quota-ceiling", "101"), "101"),
        (("--quota-ceiling", "most"), "most"),
        (("--latency", "quick"), "'quick' is not one of"),
    ],
)
def test_bad_flags(machine: Machine, flags: tuple[str, ...], said: str) -> None:
    fleet(machine)
    ran = machine.world.bullswarm(*RUN, *flags)
    assert ran.code == 2 and said in ran.stderr
    assert not list((machine.world.bull / "runs").glob("*"))


def test_defaults_of_the_configuration(machine: Machine) -> None:
    fleet(machine)
    world = machine.world
    done = world.bullswarm(
        "strategy",
        "set",
        *("--strategy", "most-quota", "--prefer", "echo:a,codex", "--quota-ceiling", "85"),
        *("--latency", "fast"),
    )
    assert done.code == 0, done.stderr
    shown = world.bullswarm("strategy", "show").stdout
    assert "most-quota, ceiling 85%, prefer echo:a, codex, fast models" in shown
    policy = world.bullswarm("strategy", "show", "--json").json["policy"]
    assert policy == {
        "strategy": "most-quota",
        "prefer": ["echo:a", "codex"],
        "quotaCeiling": 85.0,
        "domains": {},
        "latency": "fast",
    }
    decision = picked(machine)
    assert (decision["pool"], decision["strategy"]) == ("echo:b", "most-quota")
    assert decision["model"] == "echo-small"
    # A flag is for one run only, and leaves the other defaults.
    decision = picked(machine, "--strategy", "prefer-order")
    assert (decision["pool"], decision["model"]) == ("echo:a", "echo-small")
    assert picked(machine)["strategy"] == "most-quota"
    assert world.bullswarm("strategy", "set", "--latency", "none", "--prefer", "none").code == 0
    assert "prefer" not in world.bullswarm("strategy", "show").stdout
    assert picked(machine)["model"] is None


def test_domains_of_the_configuration(machine: Machine) -> None:
    fleet(machine)
    world = machine.world
    done = world.bullswarm(
        "strategy", "set", "--strategy", "prefer-order", "--prefer", "echo:a",
        "--domain", "sql=echo:b,echo:c", "--domain", "css=echo:c",
    )  # fmt: skip
    assert done.code == 0, done.stderr
    assert picked(machine, "--domain", "sql")["pool"] == "echo:b"
    assert picked(machine, "--domain", "css")["pool"] == "echo:c"
    assert picked(machine, "--domain", "go")["pool"] == "echo:a"
    assert (
        "domain                 sql: echo:b, echo:c" in world.bullswarm("strategy", "show").stdout
    )
    assert world.bullswarm("strategy", "set", "--domain", "sql=none").code == 0
    assert picked(machine, "--domain", "sql")["pool"] == "echo:a"
    assert picked(machine, "--domain", "css")["pool"] == "echo:c", "the others stay"
    for wrong, said in (("sql", "sql=A,B"), ("=echo:a", "sql=A,B"), ("sql=nobody", "'nobody'")):
        bad = world.bullswarm("strategy", "set", "--domain", wrong)
        assert bad.code == 2 and said in bad.stderr


def test_the_note_of_a_gated_fallback(machine: Machine) -> None:
    machine.account("a", 96, 20)
    machine.account("b", 90, 20)
    flags = ("--strategy", "prefer-order", "--prefer", "echo:a,echo:b", "--quota-ceiling", "80")
    note = (
        "every candidate is over the 80% quota ceiling; echo:a runs anyway as the first preference"
    )
    assert picked(machine, *flags)["note"] == note
    assert f"note: {note}" in machine.world.bullswarm(*RUN, *flags, "--dry-run").stdout
    verdict = machine.world.bullswarm(*RUN, *flags, "--json").json
    assert verdict["ok"] and verdict["pick"]["pool"] == "echo:a"
    assert note in verdict["notes"] and note in verdict["reason"]
    assert f"note     {note}" in machine.world.bullswarm(*RUN, *flags).stdout
    explained = machine.world.bullswarm("explain", verdict["runId"]).stdout
    assert f"note: {note}" in explained


def fleet(machine: Machine) -> None:
    """``c`` is furthest behind its week, ``b`` has most headroom, ``d`` is over every ceiling."""
    for name, five, week in (("a", 60, 40), ("b", 20, 30), ("c", 70, 5), ("d", 95, 30)):
        machine.account(name, five, week)
