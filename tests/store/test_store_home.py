from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from bullswarm.errors import BullswarmError
from bullswarm.store import Home, Store, atomic_write


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("explicit", "env", "want"),
    [
        ("{tmp}/asked", {"BULLSWARM_HOME": "{tmp}/variable", "HOME": "{tmp}"}, "{tmp}/asked"),
        (None, {"BULLSWARM_HOME": "{tmp}/variable", "HOME": "{tmp}"}, "{tmp}/variable"),
        (None, {"BULLSWARM_HOME": "", "HOME": "{tmp}"}, "{tmp}/.bullswarm"),
        (None, {"HOME": "{tmp}"}, "{tmp}/.bullswarm"),
    ],
)
def test_the_home_is_what_was_asked_for_then_the_variable_then_the_default(
    tmp_path: Path, explicit: str | None, env: dict[str, str], want: str
) -> None:
    filled = {key: value.format(tmp=tmp_path) for key, value in env.items()}
    home = Home.open(explicit.format(tmp=tmp_path) if explicit else None, filled)
    assert str(home.path) == want.format(tmp=tmp_path)
    assert Path(home).is_dir()


def test_a_relative_home_does_not_follow_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Home.open("here").path == tmp_path / "here"


def test_folders_are_private_and_made_when_asked_for(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        home = Home.open(tmp_path / "home")
        assert sorted(home.path.iterdir()) == []
        for folder in (home.path, home.runs, home.workflows, home.history, home.providers):
            assert mode(folder) == 0o700
        assert home.history == home.path / "meters" / "history"
        assert mode(home.path / "meters") == 0o700
    finally:
        os.umask(old)


def test_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        home = Home.open(tmp_path / "home")
        atomic_write(home.state_file, b"{}")
        with Store(home) as store:
            store.set_value("a", 1)
            files = sorted(path.name for path in home.path.iterdir())
            assert files == ["bullswarm.db", "bullswarm.db-shm", "bullswarm.db-wal", "state.json"]
            assert {mode(path) for path in home.path.iterdir()} == {0o600}
    finally:
        os.umask(old)


def test_a_home_that_cannot_be_written_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(BullswarmError, match=r"can't be written; make it writable.*BULLSWARM_HOME"):
        Home.open(tmp_path / "home")


@pytest.mark.parametrize("below", ["", "/home"])
def test_a_file_where_the_home_should_be_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BullswarmError, match=r"is a file.*BULLSWARM_HOME"):
        Home.open(f"{tmp_path}/file{below}")


def test_a_full_disk_is_named_and_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.json"
    atomic_write(path, b"old")

    def full(fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(BullswarmError, match=r"disk is full.*state.json.*free some space"):
        atomic_write(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["state.json"]


def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "state.json"
    real.parent.mkdir()
    real.write_bytes(b"old")
    link = tmp_path / "state.json"
    link.symlink_to(real)
    atomic_write(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
