from __future__ import annotations

import json
from pathlib import Path

import pytest
from meterkit import NOW, after

from bullswarm.meters import MeterError, filemeter


def write(path: Path, value: object) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def test_a_file_of_windows_is_a_reading(tmp_path: Path) -> None:
    path = write(
        tmp_path / "usage.json",
        {
            "observedAt": after(-3).isoformat(),
            "windows": [
                {"minutes": 300, "usedPct": 41, "resetsAt": after(60).isoformat()},
                {"minutes": 10080, "usedPct": 7.5, "resetsAt": after(days=3).timestamp()},
                {"minutes": 10080, "usedPct": None, "resetsInMinutes": 60, "family": "Opus"},
            ],
        },
    )
    read = filemeter.read(path, "p", NOW, "a")
    assert (read.pool, read.account, read.source, read.observed_at) == ("p", "a", "live", after(-3))
    assert [(w.kind, w.used_pct, w.resets_at, w.family) for w in read.windows] == [
        ("five_hour", 41, after(60), None),
        ("weekly", 7.5, after(days=3), None),
        ("weekly", None, after(57), "opus"),
    ]


def test_without_a_time_the_files_own_is_used_and_never_the_future(tmp_path: Path) -> None:
    path = write(tmp_path / "usage.json", {"windows": [{"minutes": 300, "usedPct": 1}]})
    assert filemeter.read(path, "p", NOW).observed_at == NOW


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"windows": 3}',
        '{"windows": [3]}',
        '{"windows": [{"usedPct": 3}]}',
        '{"windows": [{"minutes": 0}]}',
        '{"windows": [{"minutes": "x"}]}',
        '{"windows": [{"minutes": null}]}',
        '{"windows": [{"minutes": 300, "resetsInMinutes": 1e300}]}',
        " " * 1_100_000,
    ],
)
def test_a_file_that_makes_no_sense_is_damaged(tmp_path: Path, content: str) -> None:
    with pytest.raises(MeterError) as caught:
        filemeter.read(write(tmp_path / "usage.json", content), "p", NOW)
    assert caught.value.kind == "damaged"


def test_no_file_is_missing(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(MeterError) as caught:
            filemeter.read(path, "p", NOW)
        assert caught.value.kind == "missing"


@pytest.mark.parametrize(
    ("meter", "home", "path"),
    [
        ("file:usage.json", "/h", "/h/usage.json"),
        ("file:{home}/x/usage.json", "/h", "/h/x/usage.json"),
        ("file:/var/usage.json", "/h", "/var/usage.json"),
        ("file:usage.json", None, "usage.json"),
    ],
)
def test_the_path_is_relative_to_the_accounts_home(meter: str, home: str | None, path: str) -> None:
    assert filemeter.resolve(meter, home) == Path(path)
