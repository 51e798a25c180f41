"""``bullswarm simulate`` as people and programs meet it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from bullswarm.cli import invoke
from rig import World

FLEET = """
name: mine
days: 4
pools:
  - {name: "a<&>", fiveHour: 60, weekly: 300, price: 5}
  - {name: b, fiveHour: 60, weekly: 300, starts: fixed, resetsInHours: 30, used: 40, price: 5}
work: {load: 2, burst: [2, 9]}
"""


@pytest.fixture
def mine(tmp_path: Path) -> str:
    path = tmp_path / "mine.yaml"
    path.write_text(FLEET)
    return str(path)


def ask(capfd: Any, *argv: str) -> tuple[int, str, str]:
    code = invoke(["simulate", *argv])
    out, err = capfd.readouterr()
    return code, out, err


def test_the_list_names_fleets_and_policies(capfd: Any) -> None:
    code, out, _ = ask(capfd, "--list")
    assert code == 0
    for word in ("tight", "overloaded", "lowest-latency", "weighted", "pace+hold"):
        assert word in out
    code, out, _ = ask(capfd, "--list", "--json")
    listed = json.loads(out)
    assert [f["name"] for f in listed["fleets"]][:2] == ["small", "tight"]
    assert "random" in listed["baselines"]


def test_a_table_of_every_policy(capfd: Any, mine: str) -> None:
    code, out, _ = ask(capfd, mine, "--seeds", "2", "--processes", "1")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("mine; 4 days, 2 seeds")
    rows = [line.split() for line in lines[2:14]]
    assert [row[0] for row in rows[:4]] == [
        "pace",
        "prefer-order",
        "most-quota",
        "lowest-latency",
    ]
    assert [row[1] for row in rows] == ["hold"] * 4 + ["off"] * 8
    assert all(re.fullmatch(r"\d+\.\d%", row[2]) for row in rows)


def test_the_answer_is_the_same_however_many_processes(capfd: Any, mine: str) -> None:
    argv = (mine, "--json", "--seeds", "2", "--policy", "pace", "--policy", "random", "--stagger")
    one = ask(capfd, *argv, "--processes", "1")
    two = ask(capfd, *argv, "--processes", "3")
    assert one[0] == two[0] == 0 and one[1] == two[1]
    report = json.loads(one[1])
    assert [(p["policy"], p["admission"], p["staggered"]) for p in report["policies"]] == [
        (name, mode, late)
        for name, mode in (("pace", "hold"), ("pace", "off"), ("random", "off"))
        for late in (False, True)
    ]
    assert all(0 < p["harvestedPct"] <= 100 for p in report["policies"])
    assert all(p["cost"] > 0 for p in report["policies"])
    again = ask(capfd, mine, "--json", "--seed", "2", "--policy", "pace", "--no-bound")
    other = ask(capfd, mine, "--json", "--seed", "3", "--policy", "pace", "--no-bound")
    assert again[1] != other[1]
    plain = json.loads(again[1])
    assert plain["bound"] is None and plain["policies"][0]["harvestedPct"] is None
    assert plain["policies"][0]["waitMedianMinutes"] >= 0.0 and plain["seeds"] == [2]


def test_the_answer_is_the_same_in_another_process(mine: str, tmp_path: Path) -> None:
    """Nothing hangs on the order of a set or on the clock."""
    answers = set()
    for seed in ("0", "1"):
        ran = subprocess.run(
            [sys.executable, "-m", "bullswarm", "simulate", mine, "--seed", "1", "--json"],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "BULLSWARM_HOME": str(tmp_path)},
        )
        answers.add(ran.stdout)
    assert len(answers) == 1


def test_the_picture_is_well_formed_and_names_every_pool(
    capfd: Any, mine: str, tmp_path: Path
) -> None:
    path = tmp_path / "w.svg"
    code, _, err = ask(
        capfd, mine, "--seed", "1", "--policy", "pace", "--admission", "off", "--plot", str(path)
    )
    assert code == 0 and "w.svg" in err
    root = ET.fromstring(path.read_text())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a<&>", "b", "waiting", "day 0", "day 4"} <= set(texts)
    curves = list(root.iter("{http://www.w3.org/2000/svg}polyline"))
    assert len(curves) == 2 * 2 + 1
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    for curve in curves:
        points = [tuple(map(float, p.split(","))) for p in (curve.get("points") or "").split()]
        assert len(points) > 100
        assert all(0 <= x <= width and 0 <= y <= height for x, y in points)
    lost = [
        x for x in root.iter("{http://www.w3.org/2000/svg}line") if x.get("stroke") == "#cf222e"
    ]
    assert lost, "attempts that died are marked"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ((), "which fleet? Give one of small, tight"),
        (("nope",), "no fleet named 'nope'"),
        (("./nope.yaml",), "can't be read"),
        (("small", "--policy", "best"), "no policy named 'best'"),
        (("small", "--policy", "pace+hold", "--admission", "off"), "which of them?"),
        (("small", "--seed", "1", "--seeds", "2"), "give one of them"),
        (("small", "--from-history"), "give one of them"),
        (("small", "--plot", "x.png"), "the picture is an SVG"),
        (("small", "--plot", "/no/such/folder/x.svg"), "there is no folder"),
    ],
)
def test_wrong_input_is_told_and_exits_2(capfd: Any, argv: tuple[str, ...], words: str) -> None:
    code, out, err = ask(capfd, *argv)
    assert code == 2 and words in err and not out and "Traceback" not in err


def test_the_field_of_a_wrong_file_is_named(capfd: Any, tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("pools: [{name: a, weekly: lots}]")
    code, _, err = ask(capfd, str(path))
    assert code == 2 and 'bad.yaml: pools[0].weekly must be a number above 0, not "lots"' in err


def test_policies_are_asked_for_by_name_with_and_without_admission() -> None:
    from bullswarm.cli.simulate import _policies
    from bullswarm.simulate.policies import USUAL

    assert _policies((), None) == _policies(("all",), None) == USUAL
    assert _policies(("pace",), None) == ("pace+hold", "pace")
    assert _policies(("random", "pace+hold", "pace+hold"), None) == ("random", "pace+hold")
    assert _policies(("random", "pace"), "hold") == ("random+hold", "pace+hold")
    assert _policies(("all",), "off") == tuple(dict.fromkeys(n.split("+")[0] for n in USUAL))


def test_ctrl_c_ends_it_and_leaves_no_process(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "bullswarm", "simulate", "overloaded", "--processes", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "BULLSWARM_HOME": str(tmp_path)},
    )
    time.sleep(2.5)
    # As a terminal does it: everybody of the group is told.
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130 and not out
    assert "interrupted" in err and "Traceback" not in err
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_what_a_home_did_is_replayed(world: World) -> None:
    world.echo("a", "b")
    empty = world.bullswarm("simulate", "--from-history")
    assert empty.code == 1 and "no finished work on record" in empty.stderr
    for n in range(3):
        prompt = f"echo: answer The parser reads token {n} and builds a tree of nodes."
        assert world.bullswarm("run", "--lane", "analyze", prompt).code == 0
    ran = world.bullswarm("simulate", "--from-history", "--json", "--policy", "pace")
    assert ran.code == 0, ran.stderr
    report = ran.json
    assert report["fleet"] == "history" and report["recorded"]["done"] == 3
    assert [p["done"] for p in report["policies"]] == [3, 3]
    assert report["policies"][0]["cost"] is None
    assert any("no meter reading is on record" in words for words in report["unknown"])
    table = world.bullswarm("simulate", "--from-history", "--policy", "pace").stdout
    assert "recorded" in table and "not known: " in table
    seeds = world.bullswarm("simulate", "--from-history", "--seeds", "2")
    assert seeds.code == 2 and "happened once" in seeds.stderr
