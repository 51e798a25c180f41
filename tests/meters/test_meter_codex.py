from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from meterkit import NOW, Clock, FakeProvider, after

from bullswarm.meters import MemoryMeterStore, MeterError, Meters
from bullswarm.providers.codex import meter as codex
from bullswarm.providers.types import Account

Slot = Mapping[str, Any] | None


def slot(used: float, minutes: int | None, resets: datetime) -> dict[str, Any]:
    return {
        "used_percent": used,
        "window_minutes": minutes,
        "resets_at": int(resets.timestamp()),
    }


def line(at: datetime, primary: Slot, secondary: Slot = None, **more: Any) -> str:
    limits = {"limit_id": "codex", "primary": primary, "secondary": secondary, **more}
    return event(at, limits)


def event(at: datetime, limits: Any) -> str:
    stamp = at.isoformat().replace("+00:00", "Z")
    payload = {"type": "token_count", "info": None, "rate_limits": limits}
    return json.dumps({"timestamp": stamp, "type": "event_msg", "payload": payload})


def rollout(
    home: Path, name: str, *lines: str, changed: datetime = NOW, day: str = "2026/03/04"
) -> Path:
    folder = home / "sessions" / day
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rollout-{name}.jsonl"
    path.write_text("".join(one + "\n" for one in lines))
    os.utime(path, (changed.timestamp(), changed.timestamp()))
    return path


def account(home: Path) -> Account:
    return Account(pool="codex", provider="codex", home=str(home), identity="digest")


def windows(home: Path) -> list[tuple[str, str | None, float | None, datetime | None]]:
    read = codex.read_meter(account(home), {}, NOW)
    return [(w.kind, w.family, w.used_pct, w.resets_at) for w in read.windows]


def test_the_newest_sessions_limits_are_the_reading(tmp_path: Path) -> None:
    rollout(
        tmp_path,
        "a",
        line(after(-9), slot(3, 300, after(60)), slot(40, 10080, after(days=2))),
        line(after(-5), slot(7, 300, after(60)), slot(41, 10080, after(days=2))),
    )
    read = codex.read_meter(account(tmp_path), {}, NOW)
    assert windows(tmp_path) == [
        ("five_hour", None, 7, after(60)),
        ("weekly", None, 41, after(days=2)),
    ]
    assert (read.source, read.observed_at, read.account) == ("live", after(-5), "digest")


def test_the_newest_line_by_event_time_wins_over_all_files(tmp_path: Path) -> None:
    rollout(tmp_path, "b", line(after(-50), slot(90, 10080, after(days=6))), changed=after(-1))
    rollout(
        tmp_path,
        "a",
        line(after(-4), slot(12, 10080, after(days=3))),
        line(after(-40), slot(80, 10080, after(days=-1))),
        changed=after(-3),
        day="2026/02/20",
    )
    rollout(tmp_path, "c", line(after(-60), slot(1, 10080, after(days=1))), changed=after(-20))
    assert windows(tmp_path) == [("weekly", None, 12, after(days=3))]


def test_a_window_is_known_by_its_minutes_not_by_its_slot(tmp_path: Path) -> None:
    rollout(tmp_path, "a", line(after(-5), slot(25, 10080, after(days=2)), None))
    assert windows(tmp_path) == [("weekly", None, 25, after(days=2))]


def test_a_rollout_older_than_its_own_reset_is_unknown(tmp_path: Path) -> None:
    home = tmp_path / "codex"
    rollout(home, "a", line(after(days=-9), slot(99, 10080, after(days=-3))), changed=after(-9))
    provider = FakeProvider(lambda a, now: codex.read_meter(a, {}, now))
    read = Meters(MemoryMeterStore(), tmp_path / "ours", Clock()).read(provider, account(home))
    assert (read.source, read.windows) == ("none", ())
    assert read.note is not None
    assert "stale" in read.note


def test_a_reset_in_seconds_counts_from_the_event(tmp_path: Path) -> None:
    old = {"used_percent": 8.0, "window_minutes": 299, "resets_in_seconds": 3600}
    rollout(tmp_path, "a", line(after(-30), old))
    assert windows(tmp_path) == [("five_hour", None, 8, after(30))]


def test_a_window_without_a_length_is_of_unknown_kind(tmp_path: Path) -> None:
    rollout(tmp_path, "a", line(after(-5), slot(100, None, after(60))))
    assert windows(tmp_path) == [("other", None, 100, after(60))]


def test_null_limits_are_passed_over(tmp_path: Path) -> None:
    rollout(
        tmp_path,
        "a",
        line(after(-9), slot(3, 300, after(60))),
        line(after(-5), None, None),
        event(after(-4), None),
    )
    assert windows(tmp_path) == [("five_hour", None, 3, after(60))]


def test_a_limit_of_one_model_binds_that_model_only(tmp_path: Path) -> None:
    rollout(
        tmp_path,
        "a",
        line(after(-9), slot(3, 10080, after(days=3))),
        line(
            after(-5),
            slot(90, 10080, after(days=2)),
            limit_id="codex_spark",
            limit_name="GPT-Codex-Spark",
        ),
    )
    assert windows(tmp_path) == [
        ("weekly", None, 3, after(days=3)),
        ("weekly", "gpt-codex-spark", 90, after(days=2)),
    ]
    assert codex.read_meter(account(tmp_path), {}, NOW).observed_at == after(-9)


def test_torn_and_foreign_lines_are_passed_over(tmp_path: Path) -> None:
    quoted = json.dumps({"type": "message", "text": line(after(-1), slot(99, 300, after(60)))})
    path = rollout(tmp_path, "a", line(after(-5), slot(3, 300, after(60))), quoted, "[1]", "{")
    with path.open("ab") as file:
        file.write(b'\xff\x00 "rate_limits"\n')
        file.write(line(after(-2), slot(50, 300, after(60)))[:80].encode())
    os.utime(path, (NOW.timestamp(), NOW.timestamp()))
    assert windows(tmp_path) == [("five_hour", None, 3, after(60))]


def test_limits_behind_megabytes_of_output_are_found(tmp_path: Path) -> None:
    noise = json.dumps({"type": "response_item", "payload": {"text": "x" * 10_000}})
    rollout(tmp_path, "a", line(after(-5), slot(3, 300, after(60))), *[noise] * 150)
    assert windows(tmp_path) == [("five_hour", None, 3, after(60))]


def test_an_event_of_the_future_is_not_newer_than_now(tmp_path: Path) -> None:
    rollout(tmp_path, "a", line(after(600), slot(3, 300, after(700))))
    assert codex.read_meter(account(tmp_path), {}, NOW).observed_at == NOW


def test_the_home_comes_from_the_account_or_the_environment(tmp_path: Path) -> None:
    rollout(tmp_path, "a", line(after(-5), slot(3, 300, after(60))))
    bare = Account(pool="codex", provider="codex")
    assert codex.read_meter(bare, {"CODEX_HOME": str(tmp_path)}, NOW).windows


@pytest.mark.parametrize(
    ("auth", "words"),
    [
        (None, "run codex login"),
        ("{", "damaged"),
        ('{"OPENAI_API_KEY": "k", "tokens": null}', "API key"),
        ('{"tokens": {"access_token": "t"}}', "no codex session"),
    ],
)
def test_without_a_session_the_reason_is_said(tmp_path: Path, auth: str | None, words: str) -> None:
    if auth is not None:
        (tmp_path / "auth.json").write_text(auth)
    rollout(tmp_path, "a", line(after(-5), None, None))
    with pytest.raises(MeterError, match=words) as caught:
        codex.read_meter(account(tmp_path), {}, NOW)
    assert caught.value.kind == "missing"


def test_only_the_newest_few_of_thousands_of_files_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(300):
        at = after(-n - 5)
        rollout(
            tmp_path,
            f"{n}",
            line(at, slot(n % 100, 300, after(200))),
            changed=at,
            day=f"2026/02/{n % 28 + 1:02d}",
        )
    read: list[str] = []
    real = codex._last_limits

    def counted(path: str, now: datetime) -> dict[str, codex.Seen]:
        read.append(path)
        return real(path, now)

    monkeypatch.setattr(codex, "_last_limits", counted)
    assert windows(tmp_path) == [("five_hour", None, 0, after(200))]
    assert len(read) <= codex.FILES


def test_response_headers_are_a_reading_for_nothing() -> None:
    found = codex.windows_from_headers(
        {
            "X-Codex-Primary-Used-Percent": "12.5",
            "x-codex-primary-window-minutes": "10080",
            "x-codex-primary-reset-at": str(after(60).timestamp()),
            "x-codex-secondary-used-percent": "x",
        },
        NOW,
    )
    assert [(w.kind, w.used_pct, w.resets_at) for w in found] == [("weekly", 12.5, after(60))]
