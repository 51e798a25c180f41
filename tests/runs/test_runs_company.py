"""Two runs in one folder at once: neither claims the other's changes without saying so."""

from __future__ import annotations

import threading

from runskit import Bench

from bullswarm.judge.types import Verdict
from rig import World


def test_changes_that_may_be_another_runs_are_told_so(world: World) -> None:
    bench = Bench(world, "a", "b")
    other: list[Verdict] = []

    def meanwhile() -> None:
        prompt = "echo: write theirs.txt x\necho: answer Wrote theirs.txt, as asked."
        other.append(bench.go(prompt, lane="build", use=("echo:b",)))

    thread = threading.Thread(target=meanwhile)
    prompt = "echo: sleep 1.5\necho: answer All of it is done, see the files."

    def on(item: object) -> None:
        if getattr(item, "kind", "") == "started" and not thread.ident:
            thread.start()

    idle = bench.go(prompt, lane="build", use=("echo:a",), on=on)
    thread.join()
    assert other[0].ok and any("in this folder meanwhile" in n for n in other[0].notes)
    assert idle.changes is not None and idle.changes.created == ("theirs.txt",)
    assert f"in this folder meanwhile: run {other[0].short_id}; what changed may be theirs" in (
        idle.notes
    )


def test_a_run_alone_is_not_told_of_company(world: World) -> None:
    bench = Bench(world, "a")
    first = bench.go("echo: write one.txt x", lane="build")
    second = bench.go("echo: write two.txt x", lane="build")
    assert first.ok and second.ok
    assert not any("meanwhile" in n for n in (*first.notes, *second.notes))
