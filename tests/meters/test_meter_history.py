from __future__ import annotations

import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from meterkit import NOW, after, five, reading, week

from bullswarm.meters import History, history_path
from bullswarm.meters.history import file_name


def test_an_appended_reading_comes_back(tmp_path: Path) -> None:
    history = History(tmp_path / "p.jsonl")
    assert history.load() == ()
    read = reading(five(12.5, after(60)), week(3, after(days=2), "opus"))
    assert history.append(read)
    assert history.load() == (read,)


def test_file_and_folder_are_private(tmp_path: Path) -> None:
    path = history_path(tmp_path / "home", "claude-code:/home/x")
    History(path).append(reading(five(1)))
    assert path.parent == tmp_path / "home" / "meters" / "history"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@given(st.text(min_size=1, max_size=300), st.text(min_size=1, max_size=300))
def test_every_pool_has_a_file_of_its_own_inside_the_folder(a: str, b: str) -> None:
    names = [file_name(one.encode("utf-8", "replace").decode()) for one in (a, b)]
    for name in names:
        assert "/" not in name
        assert not name.startswith(".")
        assert len(name.encode()) < 240
    if a.encode("utf-8", "replace") != b.encode("utf-8", "replace"):
        assert names[0] != names[1]


def test_of_a_flat_run_the_first_and_the_last_are_kept(tmp_path: Path) -> None:
    history = History(tmp_path / "p.jsonl")
    for n in range(10):
        history.append(reading(five(10, after(200)), at=after(n)))
    history.append(reading(five(11, after(200)), at=after(10)))
    history.append(reading(five(11, after(200)), at=after(11)))
    assert [(p.observed_at, p.windows[0].used_pct) for p in history.load()] == [
        (after(0), 10),
        (after(9), 10),
        (after(10), 11),
        (after(11), 11),
    ]


def test_the_very_reading_that_came_last_is_not_added_again(tmp_path: Path) -> None:
    history = History(tmp_path / "p.jsonl")
    assert history.append(reading(five(10, after(200))))
    assert not history.append(reading(five(10, after(200))))
    assert len(history.load()) == 1


def test_a_reading_without_a_number_or_a_time_is_no_point(tmp_path: Path) -> None:
    history = History(tmp_path / "p.jsonl")
    assert not history.append(reading(five(None, after(5))))
    assert not history.append(reading())
    assert not history.append(reading(five(5), at=None))
    assert history.load() == ()


def test_torn_and_corrupt_lines_are_passed_over_and_nothing_after_them_is_lost(
    tmp_path: Path,
) -> None:
    path = tmp_path / "p.jsonl"
    history = History(path)
    history.append(reading(five(1), at=after(1)))
    with path.open("ab") as file:
        file.write(
            b'not json\n\xff\xfe\x00\n[1]\n{"pool":"p","observedAt":"2026-03-04T12:00:00"}\n'
        )
        file.write(b'{"pool": "p", "obser')
    history.append(reading(five(2), at=after(2)))
    history.append(reading(five(3), at=after(3)))
    assert [p.windows[0].used_pct for p in history.load()] == [1, 2, 3]


def test_the_series_is_capped_to_the_newest(tmp_path: Path) -> None:
    history = History(tmp_path / "p.jsonl", cap=50)
    for n in range(200):
        history.append(reading(five(n % 90), at=after(n)))
    points = history.load()
    assert len(points) == 50
    assert points[-1].observed_at == after(199)
    lines = (tmp_path / "p.jsonl").read_bytes().count(b"\n")
    assert 50 <= lines <= 56
    assert stat.S_IMODE((tmp_path / "p.jsonl").stat().st_mode) == 0o600


def test_points_come_back_in_order_of_time(tmp_path: Path) -> None:
    history = History(tmp_path / "p.jsonl")
    for minute in (5, 1, 3):
        history.append(reading(five(minute), at=after(minute)))
    assert [p.windows[0].used_pct for p in history.load()] == [1, 3, 5]
    assert [p.windows[0].used_pct for p in history.load(1)] == [3]


def test_appends_from_several_processes_lose_nothing(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import sys
        from datetime import UTC, datetime, timedelta
        from bullswarm.meters import History, window_from
        from bullswarm.routing.types import Reading
        path, me = sys.argv[1], int(sys.argv[2])
        for n in range(100):
            at = datetime(2026, 3, 4, tzinfo=UTC) + timedelta(seconds=n * 10 + me)
            window = window_from(300, (n * 10 + me) % 97, None)
            History(path).append(Reading(pool="p", observed_at=at, windows=(window,)))
        """
    )
    path = tmp_path / "p.jsonl"
    running = [
        subprocess.Popen([sys.executable, "-c", script, str(path), str(me)]) for me in range(4)
    ]
    assert [one.wait(60) for one in running] == [0, 0, 0, 0]
    points = History(path).load()
    assert len({p.observed_at for p in points}) == 400
    assert all(msgspec.json.decode(line) for line in path.read_bytes().splitlines())


def test_a_note_is_not_kept_in_the_series(tmp_path: Path) -> None:
    history = History(tmp_path / "p.jsonl")
    history.append(msgspec.structs.replace(reading(five(1)), note="hello"))
    assert history.load()[0].note is None
    assert history.load()[0].observed_at == NOW
