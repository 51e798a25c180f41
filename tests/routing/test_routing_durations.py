"""Expected minutes: mean residual life from records, and its fallbacks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from routekit import lasting

from bullswarm.routing.durations import DurationBook

ROWS = (
    lasting(1, 2, 3, 30, pool="a", lane="build"),
    lasting(50, pool="a", lane="chore"),
    lasting(8, 100, pool="b", lane="build"),
    lasting(500, pool="b", lane="analyze"),
)


@pytest.mark.parametrize(
    ("pool", "lane", "age", "minutes"),
    [
        ("a", "build", 0, 9.0),
        ("a", "build", 2.5, (0.5 + 27.5) / 2),
        ("a", "build", 20, 10.0),  # twenty minutes old: not about to end
        ("a", "build", 40, 10.0),  # nothing of the lane is as long: the pool
        ("a", "build", 60, 40.0),  # nor of the pool: the lane
        ("a", "build", 200, 300.0),  # nor of the lane: everything
        ("a", "analyze", 0, (1 + 2 + 3 + 30 + 50) / 5),
        ("c", "build", 0, (1 + 2 + 3 + 30 + 8 + 100) / 6),
        ("c", "write", 0, 694 / 8),
    ],
)
def test_residual_life_falls_back_by_level(
    pool: str, lane: str, age: float, minutes: float
) -> None:
    assert DurationBook(ROWS, 6).residual(pool, lane, age) == (pytest.approx(minutes), True)


def test_the_prior_does_not_age_and_is_named() -> None:
    book = DurationBook((), 6)
    assert book.residual("a", "build", 0) == book.residual("a", "build", 500) == (6, False)
    assert DurationBook(ROWS, 6).residual("a", "build", 900) == (6, False)


def test_a_row_for_any_pool_is_taken_as_given() -> None:
    book = DurationBook((*ROWS, lasting(70, pool="*", lane="build")), 6)
    assert book.mean("c", "build") == (70, True)


def test_nonsense_in_the_records_is_left_out() -> None:
    book = DurationBook((lasting(0, -4, float("inf"), 10, pool="a", lane="build"),), 6)
    assert book.mean("a", "build") == (10, True)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.1, 500), min_size=1, max_size=90),
    st.floats(0, 400),
)
def test_few_and_many_records_give_the_mean_of_what_is_left(
    minutes: list[float], age: float
) -> None:
    book = DurationBook((lasting(*minutes, pool="a", lane="build"),), 6)
    left = [d - age for d in minutes if d > age]
    got, known = book.residual("a", "build", age)
    assert known is bool(left)
    assert got == pytest.approx(
        max(sum(left) / len(left), 1 / 60) if left else 6, rel=1e-6, abs=1e-6
    )
    assert book.mean("a", "build")[0] == pytest.approx(max(sum(minutes) / len(minutes), 1 / 60))
