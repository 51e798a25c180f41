from __future__ import annotations

from pathlib import Path

import pytest

from bullswarm.store import default_worker_cap
from bullswarm.store.memory import memory_bytes

GIB = 1024**3


@pytest.mark.parametrize(
    ("gib", "cap"), [(0.5, 1), (2, 1), (3.9, 1), (4, 2), (24, 12), (128, 64), (2000, 64)]
)
def test_one_worker_for_each_two_gib(gib: float, cap: int) -> None:
    assert default_worker_cap(int(gib * GIB)) == cap


def test_this_machine_has_a_cap() -> None:
    assert 1 <= default_worker_cap() <= 64


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "1000000"}, 1_000_000),
        ("0::/a\n", {"a/memory.max": "2000000", "memory.max": "1000000"}, 1_000_000),
        ("0::/../..\n", {"memory.max": "1000000"}, 1_000_000),
        ("5:cpu,memory:/x\n", {"memory/x/memory.limit_in_bytes": "1000000"}, 1_000_000),
        ("5:memory:/x\n", {"memory/x/memory.limit_in_bytes": "9223372036854771712"}, None),
        ("0::/a\n", {}, None),
        ("nonsense\n", {"memory.max": "nonsense"}, None),
    ],
)
def test_a_control_groups_limit_counts(
    tmp_path: Path, groups: str, files: dict[str, str], limit: int | None
) -> None:
    proc, sys = tmp_path / "proc", tmp_path / "sys"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text(groups)
    for name, text in files.items():
        path = sys / "fs" / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    physical = memory_bytes(tmp_path / "none", tmp_path / "none")
    assert memory_bytes(proc, sys) == (limit or physical)
