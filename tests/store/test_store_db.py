from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
from storekit import agent, python, store_at

from bullswarm.errors import BullswarmError
from bullswarm.store import Home
from bullswarm.store.db import Database


def test_the_file_is_in_wal_mode_with_a_long_patience(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    assert store.db.execute("pragma journal_mode") == [("wal",)]
    assert store.db.execute("pragma busy_timeout") == [(30_000,)]
    assert store.db.execute("pragma synchronous") == [(1,)]


@pytest.mark.parametrize("content", [b"not a database at all " * 50, b"\x00" * 5000])
def test_a_damaged_file_is_named_and_left_alone(tmp_path: Path, content: bytes) -> None:
    home = Home.open(tmp_path / "home")
    home.db_file.write_bytes(content)
    store = store_at(tmp_path)
    with pytest.raises(BullswarmError, match=r"bullswarm.db is damaged .*move it away"):
        store.agents()
    assert home.db_file.read_bytes() == content


def test_damage_in_the_middle_is_named(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    for _ in range(200):
        store.add(agent())
    store.close()
    data = bytearray(store.home.db_file.read_bytes())
    data[4096 * 2 :] = b"\xa5" * len(data[4096 * 2 :])
    store.home.db_file.write_bytes(data)
    with pytest.raises(BullswarmError, match="is damaged"):
        store.agents()


def test_a_file_without_its_tables_is_damaged(tmp_path: Path) -> None:
    home = Home.open(tmp_path / "home")
    raw = sqlite3.connect(home.db_file)
    raw.execute("pragma user_version = 1")
    raw.close()
    with pytest.raises(BullswarmError, match="is damaged"):
        store_at(tmp_path).agents()


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    home = Home.open(tmp_path / "home")
    raw = sqlite3.connect(home.db_file)
    raw.execute("pragma user_version = 99")
    raw.close()
    with pytest.raises(BullswarmError, match=r"written by a newer bullswarm .*upgrade"):
        store_at(tmp_path).agents()


def test_a_full_disk_is_named_and_nothing_is_half_done(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    store.set_value("before", 1)
    pages = store.db.execute("pragma page_count")[0][0]
    store.db.execute(f"pragma max_page_count = {pages}")
    with pytest.raises(BullswarmError, match="disk is full"), store.exclusive():
        store.set_value("before", 2)
        store.set_value("big", "x" * 1_000_000)
    assert store.get_value("before") == 1
    store.set_value("before", 3)
    assert store.get_value("before") == 3


def test_a_lock_that_is_never_given_up_ends_in_an_error(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    store.set_value("a", 1)
    raw = sqlite3.connect(store.home.db_file, isolation_level=None)
    raw.execute("begin immediate")
    impatient = Database(store.home.db_file, busy_s=0.05)
    locked = pytest.raises(BullswarmError, match=r"another process has kept .* locked")
    with locked, impatient.exclusive():
        pass
    assert store.get_value("a") == 1, "reading goes on"
    raw.execute("rollback")
    with impatient.exclusive():
        pass
    raw.close()
    impatient.close()


def test_what_raises_in_a_transaction_leaves_nothing_behind(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    with pytest.raises(ValueError), store.exclusive():
        store.set_value("a", 1)
        raise ValueError
    assert store.get_value("a") is None


def test_a_transaction_within_another_can_fail_alone(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    with store.exclusive():
        store.set_value("a", 1)
        with pytest.raises(ValueError), store.exclusive():
            store.set_value("b", 1)
            with store.exclusive():
                store.set_value("c", 1)
            raise ValueError
        with store.exclusive():
            store.set_value("d", 1)
    assert [store.get_value(key) for key in "abcd"] == [1, None, None, 1]


def test_threads_share_a_store(tmp_path: Path) -> None:
    store = store_at(tmp_path)

    def count() -> None:
        for _ in range(25):
            with store.exclusive():
                store.set_value("n", store.get_value("n", 0) + 1)

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get_value("n") == 200


def test_a_forked_child_opens_the_file_for_itself(tmp_path: Path) -> None:
    code = (
        "import os, sys; from storekit import *; s = store_at(Path(sys.argv[1]));"
        "s.set_value('n', 1); pid = os.fork();\n"
        "if pid == 0: s.set_value('n', 2); os._exit(0)\n"
        "os.waitpid(pid, 0); print(s.get_value('n'))"
    )
    child = python(code, str(tmp_path), cwd=Path(__file__).parent)
    assert child.communicate()[0] == "2\n"


def test_a_forked_child_that_closes_it_closes_its_own(tmp_path: Path) -> None:
    code = (
        "import os, sys; from storekit import *; s = store_at(Path(sys.argv[1]));"
        "s.set_value('n', 1); kept = s.db._connection; pid = os.fork();\n"
        "if pid == 0: s.close(); kept.execute('select 1'); os._exit(7)\n"
        "code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]);"
        "s.set_value('n', 3); print(code, s.get_value('n'))"
    )
    child = python(code, str(tmp_path), cwd=Path(__file__).parent)
    assert child.communicate()[0] == "7 3\n"


def test_a_process_that_dies_in_a_transaction_leaves_nothing_behind(tmp_path: Path) -> None:
    code = (
        "import os, sys; from storekit import *; s = store_at(Path(sys.argv[1]));"
        "t = s.exclusive(); t.__enter__(); s.set_value('n', 1); os.kill(os.getpid(), 9)"
    )
    store = store_at(tmp_path)
    child = python(code, str(tmp_path), cwd=Path(__file__).parent)
    child.communicate()
    assert child.returncode == -9
    assert store.get_value("n") is None
    store.set_value("n", 2)


def test_many_open_a_new_file_at_once(tmp_path: Path) -> None:
    home = Home.open(tmp_path / "home")
    gate = threading.Barrier(12)
    faults: list[BaseException] = []

    def use() -> None:
        database = Database(home.db_file)
        gate.wait()
        try:
            database.execute("select * from agents")
        except BaseException as error:
            faults.append(error)
        finally:
            database.close()

    threads = [threading.Thread(target=use) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert home.db_file.stat().st_size > 0
