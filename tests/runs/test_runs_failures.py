"""What is no limit: throttles, logins, retries, and what ``pools`` shows of it all."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from runskit import ANSWER, WORK, Bench, kinds_of, pools_of, task_of

from bullswarm.errors import BullswarmError
from bullswarm.runs import Progress
from rig import World

RACE = "error Your access token could not be refreshed: refresh_token_reused"
DAMAGED = "stderr Error: /home/me/.claude.json: JSON Parse error: Unexpected EOF"


def retry_line(seconds: float) -> str:
    """A request refused with a wait that the provider names."""
    text = f"Too many requests, try again in {seconds:g} seconds"
    return f"raw {json.dumps({'type': 'error', 'text': text, 'status': 429})}"


def test_a_throttle_backs_off_twice_on_the_same_pool_then_moves(world: World) -> None:
    bench = Bench(world, "a", "b")
    bench.script("a", "throttle")
    verdict = bench.go()
    assert verdict.ok and pools_of(verdict) == ["a", "a", "a", "b"]
    assert kinds_of(verdict) == ["throttle"] * 3 + [None]
    assert not bench.benches(), "nothing was spent"


def test_a_throttle_that_passes_costs_no_move(world: World) -> None:
    bench = Bench(world, "a", "b")
    bench.script("a", "throttle")

    def on(item: Progress) -> None:
        if item.kind == "ended":
            bench.script("a")

    assert pools_of(bench.go(on=on)) == ["a", "a"]


def test_the_pauses_are_waited_out_and_shown(world: World) -> None:
    bench = Bench(world, "a", "b", throttlePausesSeconds=[20, 60])
    bench.script("a", "throttle")
    shown: list[str] = []

    def on(item: Progress) -> None:
        if item.kind == "waiting" and item.until is not None:
            agents = bench.app().store.agents()
            shown.append(agents[0].why)
            bench.skew += timedelta(seconds=61)

    verdict = bench.go(on=on)
    assert pools_of(verdict) == ["a", "a", "a", "b"]
    assert [t.split(" s ")[0] for t in bench.told("waiting") if " s on " in t] == ["20", "60"]
    assert shown == ["a pause before the next attempt"] * 2


@pytest.mark.parametrize(("seconds", "pools"), [(1, ["a", "a", "a", "b"]), (600, ["a", "b"])])
def test_a_named_wait_is_honoured_up_to_two_minutes_and_beyond_it_the_work_moves(
    world: World, seconds: float, pools: list[str]
) -> None:
    bench = Bench(world, "a", "b", throttlePausesSeconds=[60, 60])
    bench.script("a", *[retry_line(seconds)] * 2, "exit 1")
    verdict = bench.go()
    assert verdict.ok and pools_of(verdict) == pools and kinds_of(verdict)[0] == "throttle"
    held = bench.benches().get("echo:a")
    if seconds > 120:
        # A wait that long is kept by everybody.
        assert held is not None and held.kind == "throttle"
        assert 540 < (held.until - bench.now()).total_seconds() <= 600
        assert pools_of(bench.go()) == ["b"]
    else:
        assert held is None


@pytest.mark.parametrize("mode", ["return", "quarantine"])
def test_a_throttle_in_either_mode_backs_off_on_the_same_pool_first(
    world: World, mode: str
) -> None:
    bench = Bench(world, "a", "b", mode=mode)
    bench.script("a", "throttle")
    verdict = bench.go()
    assert pools_of(verdict)[:3] == ["a"] * 3
    assert verdict.ok is (mode == "quarantine")
    if mode == "return":
        assert verdict.failure_kind == "throttle" and len(verdict.attempts) == 3


def relay(world: World, group: str | None, *names: str) -> list[str]:
    """A third party's provider: some homes, one upstream credential."""
    import bullswarm.providers.echo as echo

    folder = Path(echo.__file__).parent
    made = world.bull / "providers" / "relay"
    made.mkdir(parents=True, exist_ok=True)
    connector = json.loads((folder / "connector.json").read_text())
    text = json.dumps(connector).replace("{folder}", str(folder))
    connector = {**json.loads(text), "name": "relay", "optIn": False, "homeDefault": None}
    connector["upstreamGroup"] = group
    (made / "connector.json").write_text(json.dumps(connector))
    homes = []
    for name in names:
        home = world.root / "echo" / name
        home.mkdir(parents=True, exist_ok=True)
        homes.append(str(home))
    state = world.bull / "state.json"
    known = json.loads(state.read_text()) if state.exists() else {}
    known.setdefault("providers", {})["relay"] = {"enabled": True, "homes": homes}
    state.write_text(json.dumps(known))
    return [f"relay:{name}" for name in names]


def test_a_dead_credential_takes_its_whole_group_along(world: World) -> None:
    bench = Bench(world, "z")
    members = relay(world, "relay:host", "r1", "r2", "r3")
    bench.pools = [*members, "echo:z"]
    bench.script("r1", "auth")
    verdict = bench.go()
    assert verdict.ok and [a.pool for a in verdict.attempts] == ["relay:r1", "echo:z"]
    benches = bench.benches()
    assert set(benches) == set(members)
    until = {q.until for q in benches.values()}
    assert len(until) == 1, "the same deadline"
    assert 540 < (until.pop() - bench.now()).total_seconds() <= 600
    assert benches["relay:r2"].reason.startswith("sibling of relay:r1: ")
    assert [a.pool for a in bench.go().attempts] == ["echo:z"]


def test_a_spent_quota_never_spreads_over_a_group(world: World) -> None:
    bench = Bench(world, "z")
    members = relay(world, "relay:host", "r1", "r2")
    bench.pools = [*members, "echo:z"]
    bench.script("r1", f"limit-event five_hour {bench.in_(5400)}")
    verdict = bench.go()
    assert [a.pool for a in verdict.attempts] == ["relay:r1", "relay:r2"]
    assert set(bench.benches()) == {"relay:r1"}


def test_a_siblings_later_deadline_is_never_shortened(world: World) -> None:
    bench = Bench(world, "z")
    members = relay(world, "relay:host", "r1", "r2")
    bench.pools = [*members, "echo:z"]
    bench.script("r2", f"limit-event five_hour {bench.in_(5400)}")
    bench.go(use=("relay:r2", "echo:z"))
    bench.script("r1", "auth")
    bench.go()
    app = bench.app()
    mine = [q for q in app.store.quarantines(app.now()) if q.pool == "relay:r2"]
    latest = max(q.until for q in mine)
    assert abs((latest - bench.now()).total_seconds() - 5400) < 60


def test_a_lost_race_for_a_login_is_tried_once_more_on_the_same_pool(world: World) -> None:
    bench = Bench(world, "a", "b")
    bench.script("a", RACE)

    def on(item: Progress) -> None:
        if item.kind == "ended":
            bench.script("a")

    verdict = bench.go(on=on)
    assert verdict.ok and pools_of(verdict) == ["a", "a"]
    assert not bench.benches(), "nobody was logged out"


def test_a_race_that_is_lost_twice_moves_and_benches_nobody(world: World) -> None:
    bench = Bench(world, "a", "b")
    bench.script("a", RACE)
    verdict = bench.go()
    assert verdict.ok and pools_of(verdict) == ["a", "a", "b"]
    assert not bench.benches()


def test_a_damaged_login_is_named_as_such_and_is_no_dead_account(world: World) -> None:
    bench = Bench(world, "a", "b")
    bench.script("a", DAMAGED, "exit 1")
    verdict = bench.go()
    assert verdict.ok and pools_of(verdict) == ["a", "b"]
    assert "damaged login file" in verdict.attempts[0].why
    assert not bench.benches()


def test_nothing_produced_is_tried_once_more_on_the_same_pool_and_told_why(world: World) -> None:
    bench = Bench(world, "a", "b")
    verdict = bench.go(WORK, lane="build")
    assert not verdict.ok and pools_of(verdict) == ["a", "a"]
    assert kinds_of(verdict) == ["not-produced"] * 2
    assert "did not pass" in task_of(verdict, 2) and "must change a file" in task_of(verdict, 2)
    assert "the automatic retry is spent" in verdict.notes


@pytest.mark.parametrize("line", ["exit 3", "error the model fell over", "hang"])
def test_a_failure_of_the_pool_goes_elsewhere_once(world: World, line: str) -> None:
    bench = Bench(world, "a", "b", "c")
    for name in ("a", "b"):
        bench.script(name, line)
    verdict = bench.go(silence_s=0.7)
    assert not verdict.ok and pools_of(verdict) == ["a", "b"], "one automatic retry"
    kind = {"exit 3": "process", "hang": "stalled"}.get(line, "provider")
    assert kinds_of(verdict) == [kind] * 2
    assert not world.alive()


def test_an_answer_about_limits_benches_nobody(world: World) -> None:
    bench = Bench(world, "a", "b")
    said = "You've hit your session limit · resets 8:20pm (UTC) is what the client prints when"
    bench.script("a", f"tool Read {said}", f"say {said} its window is spent; I fixed the parser.")
    verdict = bench.go("Explain.")
    assert verdict.ok and pools_of(verdict) == ["a"] and not bench.benches()


def test_an_answer_that_is_the_notice_is_a_limit_whatever_the_exit(world: World) -> None:
    bench = Bench(world, "a", "b")
    bench.script("a", "answer You've hit your session limit · resets 11:59pm (UTC)")
    verdict = bench.go("Explain.\necho@b: answer The parser reads tokens and builds a tree.")
    assert verdict.ok and kinds_of(verdict) == ["quota", None]
    assert bench.benches()["echo:a"].kind == "quota"


def test_errors_and_latency_of_the_last_hour_are_shown(world: World) -> None:
    bench = Bench(world, "a", "b")
    bench.script("a", "exit 3")
    bench.go()
    bench.script("a", "sleep 0.3")
    bench.go(pool="echo:a")
    row = bench.rows()["echo:a"]
    assert (row.errors, row.attempts) == (1, 2)
    assert row.median_s is not None and row.median_s >= 0.3
    assert any("1 of 2 attempts failed in the last hour" in note for note in row.notes)
    shown = {p["pool"]: p for p in world.bullswarm("pools", "--json").json["pools"]}["echo:a"]
    assert shown["errors"] == 1 and shown["medianS"] >= 0.3
    assert "1 of 2 attempts failed" in world.bullswarm("pools").stdout
    bench.skew = timedelta(minutes=61)
    assert bench.rows()["echo:a"].errors == 0


def test_errors_are_a_tie_breaker_only(world: World) -> None:
    bench = Bench(world, "a", "b")
    bench.script("a", "exit 3")
    assert pools_of(bench.go(cwd=str(world.root))) == ["a", "b"]
    bench.script("a")
    # The order asked for outweighs them ...
    assert pools_of(bench.go(cwd=str(world.root))) == ["a"]
    # ... and where nothing else tells two pools apart they decide.
    from bullswarm.routing.types import Policy

    assert pools_of(bench.go(policy=Policy(strategy="most-quota"), cwd=str(world.home))) == ["b"]


def test_the_loop_guard_ends_an_endless_stream_as_the_providers_failure(world: World) -> None:
    bench = Bench(world, "a", "b")
    bench.script("a", "loop 400", "hang")
    verdict = bench.go(f"Explain.\n{ANSWER}", silence_s=20)
    assert verdict.ok and kinds_of(verdict) == ["provider", None]
    assert verdict.attempts[0].ended_by == "loop"


def test_a_disk_that_is_full_at_the_end_costs_no_verdict(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(world, "a")
    app = bench.app()

    def full(*_: Any, **__: Any) -> None:
        raise BullswarmError("the disk is full")

    for name in ("end", "set_incumbent"):
        monkeypatch.setattr(app.store, name, full)
    verdict = bench.go(app=app)
    assert verdict.ok and verdict.out_file and verdict.run_id
    assert [n for n in verdict.notes if n == "the record is not whole: the disk is full"]
