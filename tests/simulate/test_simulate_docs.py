"""The page on simulation says what is so."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bullswarm.cli import invoke
from bullswarm.simulate import compare
from bullswarm.simulate.policies import BASELINES
from bullswarm.simulate.reading import parse_fleet

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "simulate.md").read_text(encoding="utf-8")


def test_the_fleet_of_the_page_can_be_simulated() -> None:
    [text] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    mine = parse_fleet(text)
    assert len(mine.pools) == 3 and mine.events.early_resets == 0.05
    report = compare(mine, ["pace+hold"], (1,), processes=1)
    assert report.policies[0].done > 0 and report.policies[0].harvested_pct is not None


def test_the_example_in_python_runs(capsys: Any) -> None:
    [code] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(code, "docs/simulate.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["pace", "hold"], ["random", "off"]]


def test_every_policy_column_and_flag_is_on_the_page() -> None:
    from bullswarm.cli.simulate import simulate

    for name in BASELINES:
        assert f"`{name}`" in PAGE
    for word in ("HARVESTED", "DONE", "LOST/100", "WASTED", "WAIT", "COST"):
        assert f"| {word} |" in PAGE
    flags = {flag for p in simulate.params for flag in p.opts if flag.startswith("--")}
    missing = {flag for flag in flags if flag not in PAGE} - {"--processes"}
    assert not missing


@pytest.mark.parametrize(
    ("argv", "key"),
    [(("small", "--seed", "1", "--policy", "pace"), "simulate"), (("--list",), "simulate --list")],
)
def test_the_names_in_json_are_the_documented_ones(
    capfd: Any, argv: tuple[str, ...], key: str
) -> None:
    names = {}
    for line in (DOCS / "commands.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 2:
            names[cells[0].strip("`")] = set(re.findall(r"`(\w+)`", cells[1]))
    assert invoke(["simulate", *argv, "--json"]) == 0
    out, err = capfd.readouterr()
    document = json.loads(out)
    assert set(document) == names[key] and not err
    for row in document.get("policies", ()):
        assert set(row) == names["policies[]"]
