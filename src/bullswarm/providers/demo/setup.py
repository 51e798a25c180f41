"""A throwaway home with the demo fleet in it, and a git folder for its workers."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bullswarm.errors import BullswarmError

WEEK, MONTH, FIVE_HOURS = 10080, 43200, 300

# Each pool shows one rule: in danger in its five hours, behind its pace, about on pace, monthly.
FLEET: dict[str, dict[str, Any]] = {
    "claude": {
        "windows": [(FIVE_HOURS, 93, 210), (WEEK, 48, 3 * 1440)],
        "subscription": {"costRank": 3},
    },
    "codex": {
        "windows": [(FIVE_HOURS, 22, 95), (WEEK, 31, 2.5 * 1440)],
        "subscription": {"costRank": 2},
    },
    "gemini": {
        "windows": [(FIVE_HOURS, 40, 120), (WEEK, 66, 2 * 1440)],
        "subscription": {"costRank": 1},
    },
    "relay": {
        "windows": [(MONTH, 44, 15 * 1440)],
        "subscription": {"costRank": 1, "quotaWindow": "monthly", "lanes": ["build", "chore"]},
    },
}
"""Pool to its windows (minutes long, percent used, minutes to the reset) and its settings."""


def set_up(home: str | os.PathLike[str]) -> Path:
    """See ``demo.set_up``."""
    folder = Path(home).absolute()
    now = datetime.now(UTC).replace(microsecond=0)
    try:
        homes = {n: str(_meter(folder, n, spec["windows"], now)) for n, spec in FLEET.items()}
        state = {
            "providers": {"demo": {"enabled": True, "only": True, "homes": homes}},
            "subscriptions": {f"demo-{n}": spec["subscription"] for n, spec in FLEET.items()},
        }
        _write(folder / "state.json", state)
        return _work(folder / "work")
    except OSError as error:
        raise BullswarmError(f"{folder} can't be set up: {error.strerror or error}") from error


def _meter(home: Path, name: str, windows: list[tuple[int, float, float]], now: datetime) -> Path:
    folder = home / "demo" / name
    folder.mkdir(parents=True, exist_ok=True)
    listed = [
        {
            "minutes": minutes,
            "usedPct": used,
            "resetsAt": (now + timedelta(minutes=left)).isoformat(),
        }
        for minutes, used, left in windows
    ]
    _write(folder / "meter.json", {"windows": listed})
    return folder


def _work(folder: Path) -> Path:
    """A git folder with one commit; a plain folder where there is no git."""
    import subprocess

    folder.mkdir(parents=True, exist_ok=True)
    readme = folder / "README.md"
    if not readme.exists():
        readme.write_text("# A folder for the demo\n", encoding="utf-8")
    who = ("-c", "user.name=bullswarm demo", "-c", "user.email=demo@localhost")
    for args in (
        ("init", "-q"),
        ("add", "-A"),
        (*who, "-c", "commit.gpgsign=false", "commit", "-q", "--no-verify", "-m", "Start"),
    ):
        try:
            done = subprocess.run(("git", *args), cwd=folder, capture_output=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            break
        if done.returncode != 0:
            break
    return folder


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    path.chmod(0o600)
