"""Twenty real processes at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from storekit import START, python, store_at

from bullswarm.store import Home, Store, load

CROWD = 20
ROUNDS = 5

CODE = """
import json, sys
import msgspec
from storekit import *
from bullswarm.store import update
from bullswarm.store.settings import Pause

store = store_at(Path(sys.argv[1]))
me_ = sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
waits = []
taken = 0
for n in range(5):
    id = f"{me_}-{n}"
    with store.exclusive():
        # The cap of one is checked and taken in one transaction.
        if not any(a.pool == "narrow" for a in store.agents()):
            store.add(agent(id=f"narrow-{id}", pool="narrow"))
            taken += 1
    store.add(agent(id=id))
    update(
        store.home,
        lambda old: msgspec.structs.replace(old, paused={**old.paused, id: Pause()}),
    )
    waits.append(store.claim_start("login", 2))
    store.bench(quota(START + timedelta(hours=int(me_) + 1)), source="meter")
    store.end(id, START + timedelta(minutes=1), True)
print(json.dumps([taken, waits]))
sys.stdout.flush()
sys.stdin.readline()
"""


def test_twenty_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    children = [
        python(CODE, str(tmp_path), str(n), cwd=Path(__file__).parent) for n in range(CROWD)
    ]
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        told = []
        for child in children:
            assert child.stdout is not None
            told.append(json.loads(child.stdout.readline()))
        for child in children:
            child.communicate("end\n")
            assert child.returncode == 0
    finally:
        for child in children:
            child.kill()
            child.wait()
    store = store_at(tmp_path)
    ids = {f"{who}-{n}" for who in range(CROWD) for n in range(ROUNDS)}
    ended = {work.id for work in store.work(START)}
    assert ids <= ended
    assert set(load(store.home).paused) == ids
    assert sum(taken for taken, _ in told) == 1, "a cap of one was passed once"
    waits = sorted(wait for _, some in told for wait in some)
    assert waits == [2.0 * n for n in range(CROWD * ROUNDS)]
    assert [q.until.hour for q in store.quarantines()] == [(START.hour + CROWD) % 24]
    # Everybody is gone by now, so what they held is gone too.
    assert store.agents() == ()


def test_opening_the_database_twice_in_a_process_drops_no_lock_of_the_first(
    tmp_path: Path,
) -> None:
    """To close a file drops every lock that the process has on it: another process then takes the
    write-ahead log for its own and removes it under our feet."""
    script = (
        "import sys; from bullswarm.store import Home, Store;"
        "s = Store(Home.open(sys.argv[1])); s.set_incumbent('k', 'p'); s.close()"
    )
    first = Store(Home.open(tmp_path / "home"))
    first.set_incumbent("a", "one")
    second = Store(Home.open(tmp_path / "home"))
    for n in range(3):
        second.set_incumbent("b", str(n))
        second.close()
        subprocess.run([sys.executable, "-c", script, str(tmp_path / "home")], check=True)
        assert first.incumbent("k") == "p" and first.incumbent("b") == str(n)
        assert second.incumbent("a") == "one"
