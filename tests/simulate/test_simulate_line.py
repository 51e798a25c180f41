"""The line of waiting work: oldest first, and only so many ask at a time."""

from __future__ import annotations

from bullswarm.simulate.line import Line


def test_oldest_first_over_files_and_as_deep_as_asked() -> None:
    line = Line()
    for index, file in ((5, "build"), (1, "chore"), (3, "build"), (2, "build")):
        line.put(index, file)
    assert len(line) == 4
    assert line.oldest((), 1, 9) == [(1, "chore"), (2, "build")]
    assert line.oldest((), 9, 3) == [(1, "chore"), (2, "build"), (3, "build")]
    assert line.oldest({"chore"}, 2, 9) == [(2, "build"), (3, "build")]
    line.take(2, "build")
    assert line.oldest((), 9, 9) == [(1, "chore"), (3, "build"), (5, "build")]


def test_who_is_behind_has_not_asked_yet() -> None:
    line = Line()
    for index in range(4):
        line.put(index, "build")
    line.ask(10.0, 2)
    line.ask(30.0, 3)
    line.ask(50.0, 0)
    assert [line.since(n, "build", 60.0) for n in range(4)] == [10.0, 10.0, 30.0, 60.0]
    line.take(0, "build")
    line.put(0, "build")
    assert line.since(0, "build", 70.0) == 70.0, "asked anew after its attempt"


def test_what_was_handed_back_is_patient_from_when_it_is_handed_in_again() -> None:
    line = Line()
    line.put(1, "build")
    line.ask(10.0, 5)
    line.handed_back("build", 90.0)
    assert line.since(1, "build", 20.0) == 90.0
    line.take(1, "build")
    line.put(2, "build")
    assert line.since(2, "build", 95.0) == 95.0
