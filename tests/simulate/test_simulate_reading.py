"""A fleet of one's own: what is wrong is named by its path, with what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from bullswarm.errors import UsageError
from bullswarm.simulate.reading import parse_fleet, read_fleet

GOOD = """
name: mine
days: 10
pools:
  - {name: a, fiveHour: 200, weekly: 1800, starts: fixed, resetsInHours: 30, used: 20, price: 5}
  - {name: b, monthly: 4000, meter: false, lanes: [build]}
work:
  tasksPerDay: 40
  burst: [1, 4]
  lanes: {build: {mean: 12, sigma: 0.5}}
events: {outages: 0}
meter: {every: 1, late: 0}
admission: {capPerPool: 6}
workerCap: 5
"""


def test_a_whole_fleet_is_read() -> None:
    one = parse_fleet(GOOD)
    assert (one.name, one.days, one.cap, one.admission.cap_per_pool) == ("mine", 10, 5, 6)
    a, b = one.pools
    assert (a.five_hour, a.weekly, a.starts, a.used, a.price) == (200, 1800, "fixed", 20, 5)
    assert (b.monthly, b.meter, b.lanes, b.price) == (4000, False, ("build",), None)
    assert list(one.work.lanes) == ["build"] and one.work.burst == (1, 4)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file must be an object, not nothing"),
        ("[1, 2", "not valid YAML"),
        ("days: 3", "pools is missing; it must be a list"),
        ("pools: []", "pools must be a list with at least one entry, not []"),
        ("pools: {a: 3}", "pools must be a list"),
        ("pools: [{weekly: 3}]", "pools[0].name is missing; it must be a text"),
        ("pools: [{name: a, weekly: x}]", 'pools[0].weekly must be a number above 0, not "x"'),
        ("pools: [{name: a, weekly: -4}]", "pools[0].weekly must be a number above 0, not -4"),
        ("pools: [{name: a, weekly: .inf}]", "pools[0].weekly must be a number above 0, not inf"),
        ("pools: [{name: a, weekly: true}]", "pools[0].weekly must be a number above 0, not true"),
        ("pools: [{name: a, week: 3}]", "pools[0].week is no field; did you mean weekly?"),
        ("pools: [{name: a, used: 120}]", "pools[0].used must be a number from 0 to 100, not 120"),
        ("pools: [{name: a, starts: now}]", "pools[0].starts must be one of first-use, fixed"),
        ("pools: [{name: a, lanes: [x]}]", "pools[0].lanes[0] must be one of analyze, build"),
        ("pools: [{name: a, weekly: 5}, {name: a}]", "pools[1].name must be no other pool's"),
        ("pools: [{name: a, weekly: 5, monthly: 5}]", "weekly and monthly can't both be set"),
        ("pools: [{name: a, weekly: 5, used: 5}]", "starts must be 'fixed'"),
        ("pools: [{name: a, weekly: 5, lanes: []}]", "pools[0].lanes must name at least one"),
        ("pools: [{name: a, weekly: 5, lanes: [build]}]", "no pool takes analyze work"),
        ("pools: [{name: a}]", "work.tasksPerDay must be given"),
        ("pools: [{name: a, weekly: 5}]\nwork: {burst: [3]}", "work.burst must be a list of 2"),
        ("pools: [{name: a, weekly: 5}]\nwork: {burst: [3, 1]}", "must be [least, most]"),
        ("pools: [{name: a, weekly: 5}]\nwork: {lanes: {x: {}}}", "one of analyze, build, chore"),
        ("pools: [{name: a, weekly: 5}]\nwork: {lanes: {}}", "at least one lane"),
        (
            "pools: [{name: a, weekly: 5}]\nwork: {tasksPerDay: 9.0e+9}",
            "more than can be simulated",
        ),
        ("pools: [{name: a, weekly: 5}]\nworkerCap: 0", "workerCap must be a whole number from 1"),
        ("pools: [{name: a, weekly: 5}]\ndays: 400", "days must be a number above 0 to 366"),
    ],
)
def test_what_is_wrong_is_named_with_what_would_be_right(text: str, words: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_fleet(text, name="mine.yaml")
    assert str(error.value).startswith("mine.yaml: ") and words in str(error.value)
    assert error.value.exit_code == 2


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be read"):
        read_fleet(tmp_path / "none.yaml")
    binary = tmp_path / "b.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="can't be read"):
        read_fleet(binary)
    good = tmp_path / "g.yaml"
    good.write_text(GOOD)
    assert read_fleet(good).name == "mine"
