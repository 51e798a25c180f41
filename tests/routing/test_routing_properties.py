"""What holds for any fleet."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from routekit import NOW, at, bench, lasting, pool, rates, row, snap

from bullswarm.routing import admit, route
from bullswarm.routing.room import why_none
from bullswarm.routing.types import (
    STRATEGIES,
    Admission,
    Config,
    Decision,
    Health,
    Policy,
    Pool,
    Request,
    Snapshot,
    Window,
    Work,
)

NAMES = ("a", "b", "c:1", "c:2")
HOLD = Admission(mode="hold")
percents = st.one_of(
    st.none(), st.sampled_from([0, 12, 50, 74, 76, 89, 91, 96, 100])
) | st.integers(0, 100)
fast = settings(max_examples=120, deadline=None)


@st.composite
def windows(draw: st.DrawFn) -> list[Window]:
    found = []
    if draw(st.booleans()):
        left = draw(st.one_of(st.none(), st.integers(-5, 310)))
        reset = None if left is None else at(left)
        found.append(
            Window(kind="five_hour", minutes=300, used_pct=draw(percents), resets_at=reset)
        )
    if draw(st.booleans()):
        kind = draw(st.sampled_from(["weekly", "monthly"]))
        left = draw(st.one_of(st.none(), st.integers(-5, 1500), st.integers(1, 10080)))
        reset = None if left is None else at(left)
        minutes = 10080 if kind == "weekly" else 43200
        found.append(Window(kind=kind, minutes=minutes, used_pct=draw(percents), resets_at=reset))
    return found


@st.composite
def pools(draw: st.DrawFn, name: str) -> Pool:
    return pool(
        name,
        *draw(windows()),
        seen=draw(st.integers(0, 20)),
        pacing=draw(st.sampled_from(["weekly", "monthly", None])),
        cost_rank=draw(st.sampled_from([1, 2])),
        enabled=draw(st.sampled_from([True, True, True, False])),
        paused=draw(st.sampled_from([False, False, False, True])),
        reserve_pct=draw(st.sampled_from([0, 0, 20])),
        cap=draw(st.sampled_from([None, None, 1, 3])),
        rates=draw(st.sampled_from([(), rates(0.5, 0.05), rates(None, 0.3), rates(2.0)])),
        health=draw(st.sampled_from([Health(), Health(attempts=4, errors=1, median_seconds=9)])),
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    work = tuple(
        Work(
            id=f"w{n}",
            pool=draw(st.sampled_from(NAMES)),
            lane="build",
            started_at=at(-draw(st.integers(0, 40))),
            ended_at=draw(st.sampled_from([None, None, at(-0.5)])),
        )
        for n in range(draw(st.integers(0, 6)))
    )
    benched = draw(st.lists(st.sampled_from(NAMES), max_size=2, unique=True))
    return snap(
        *(draw(pools(name)) for name in names),
        work=work,
        quarantines=tuple(bench(name, draw(st.integers(1, 900))) for name in benched),
        durations=draw(st.sampled_from([(), (lasting(4, 9, 60),)])),
        config=Config(
            assignments=draw(st.sampled_from([{}, {}, {"build": "a"}])),
            worker_cap=draw(st.sampled_from([None, None, 4])),
        ),
    )


requests = st.builds(
    Request,
    lane=st.just("build"),
    caller=st.sampled_from([None, None, "a", "c"]),
    incumbent=st.sampled_from([None, None, "a", "b", "c:2"]),
    pin=st.sampled_from([None, None, None, "b", "c"]),
    exclude=st.sampled_from([(), (), ("a",)]),
    waiting_since=st.sampled_from([None, at(-100), at(-599), at(-601)]),
    ran_minutes=st.sampled_from([0.0, 0.0, 20.0]),
)
policies = st.builds(
    Policy,
    strategy=st.sampled_from(STRATEGIES),
    prefer=st.sampled_from([(), ("b", "a"), ("c", "b")]),
)


@fast
@given(snapshots(), requests, policies, st.randoms(use_true_random=False))
def test_the_order_of_pools_never_matters(
    snapshot: Snapshot, request: Request, policy: Policy, random: object
) -> None:
    made = route(snapshot, request, policy)
    assert made == route(snapshot, request, policy)
    shuffled = list(snapshot.pools)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    other = msgspec.structs.replace(snapshot, pools=tuple(shuffled))
    assert route(other, request, policy) == made
    assert admit(other, request, policy, HOLD) == admit(snapshot, request, policy, HOLD)


@fast
@given(snapshots(), requests, policies)
def test_a_filtered_pool_is_never_picked_and_every_pool_has_its_row(
    snapshot: Snapshot, request: Request, policy: Policy
) -> None:
    for made in (route(snapshot, request, policy), admit(snapshot, request, policy, HOLD)):
        names = [c.pool for c in made.candidates]
        assert sorted(names) == sorted(p.name for p in snapshot.pools)
        assert [c.rank for c in made.candidates] == list(range(1, len(names) + 1))
        if made.pool is not None:
            won = made.candidates[0]
            assert won.pool == made.pool and won.eligible and won.lost is None
            assert made.hold is None
        elif made.hold is None:
            assert not any(c.eligible for c in made.candidates)
        for c in made.candidates:
            assert c.eligible is (c.why_not is None)
            assert c.pool == made.pool or c.lost or c.why_not


@fast
@given(snapshots(), requests, policies)
def test_a_decision_survives_being_stored(
    snapshot: Snapshot, request: Request, policy: Policy
) -> None:
    made = route(snapshot, request, policy)
    assert msgspec.json.decode(msgspec.json.encode(made), type=Decision) == made
    again = msgspec.json.decode(msgspec.json.encode(snapshot), type=Snapshot)
    assert route(again, request, policy) == made


@settings(max_examples=300, deadline=None)
@given(snapshots(), requests, policies, st.data())
def test_raising_a_pool_s_used_share_never_makes_it_win(
    snapshot: Snapshot, request: Request, policy: Policy, data: st.DataObject
) -> None:
    at_ = data.draw(st.integers(0, len(snapshot.pools) - 1))
    one = snapshot.pools[at_]
    assert one.reading is not None
    known = [n for n, w in enumerate(one.reading.windows) if w.used_pct is not None]
    assume(known)
    which = data.draw(st.sampled_from(known))
    old = list(one.reading.windows)
    more = data.draw(st.integers(int(old[which].used_pct or 0), 100))
    old[which] = msgspec.structs.replace(old[which], used_pct=float(more))
    reading = msgspec.structs.replace(one.reading, windows=tuple(old))
    fuller = msgspec.structs.replace(one, reading=reading)
    changed = list(snapshot.pools)
    changed[at_] = fuller
    before = route(snapshot, request, policy).pool
    after = route(msgspec.structs.replace(snapshot, pools=tuple(changed)), request, policy).pool
    assert after != one.name or before == one.name


@fast
@given(st.data(), st.integers(0, 3), st.integers(1, 3), st.sampled_from(STRATEGIES))
def test_of_two_pools_that_differ_only_in_load_the_quieter_wins(
    data: st.DataObject, quiet: int, more: int, strategy: str
) -> None:
    first = data.draw(pools("a"))
    assume(first.enabled and not first.paused)
    twin = msgspec.structs.replace(first, name="b", provider="b")
    busier, quieter = data.draw(st.permutations(["a", "b"]))
    work = tuple(
        Work(id=f"{p}{n}", pool=p, lane="build", started_at=at(-3))
        for p, count in ((busier, quiet + more), (quieter, quiet))
        for n in range(count)
    )
    request = Request(lane="build", incumbent=data.draw(st.sampled_from([None, busier])))
    made = route(snap(first, twin, work=work), request, Policy(strategy=strategy))  # type: ignore[arg-type]
    assert made.pool in (None, quieter)


@fast
@given(st.floats(0, 80), st.floats(1, 290), st.floats(0.1, 3), st.integers(0, 4))
def test_the_forecast_never_counts_spend_after_the_reset(
    used: float, left: float, rate: float, inflight: int
) -> None:
    window = Window(kind="five_hour", minutes=300, used_pct=used, resets_at=at(left))
    work = tuple(Work(id=f"{n}", pool="a", lane="build", started_at=NOW) for n in range(inflight))
    snapshot = snap(pool("a", window, rates=rates(rate)), work=work, durations=(lasting(120),))
    forecast = row(route(snapshot, Request(lane="build")), "a").forecast_five_hour_pct
    assert forecast is not None
    assert abs(forecast - (used + rate * (inflight + 1) * min(120, left))) < 1e-6


@settings(max_examples=300, deadline=None)
@given(snapshots(), requests, policies)
def test_a_hold_names_a_later_time_within_its_patience_and_never_while_there_is_room(
    snapshot: Snapshot, request: Request, policy: Policy
) -> None:
    from bullswarm.routing.pick import weigh
    from bullswarm.routing.view import FleetView

    made = admit(snapshot, request, policy, HOLD)
    if made.hold is None:
        return
    assert made.pool is None and made.hold.reason
    assert made.hold.until > NOW
    if made.hold.kind == "cap":
        return
    ends = (request.waiting_since or NOW) + timedelta(minutes=HOLD.patience_minutes)
    assert made.hold.until <= ends and ends > NOW
    rows = weigh(FleetView(snapshot), request, policy)
    ready = [r for r in rows if r.eligible and why_none(r, HOLD) is None]
    for one in ready:
        cap = one.view.pool.cap
        assert cap is not None and one.inflight >= cap and not one.runs_on_caller


@settings(max_examples=300, deadline=None)
@given(snapshots(), requests, policies)
def test_out_of_patience_or_not_what_is_placed_has_room_where_anybody_has(
    snapshot: Snapshot, request: Request, policy: Policy
) -> None:
    from bullswarm.routing.pick import weigh
    from bullswarm.routing.view import FleetView

    made = admit(snapshot, request, policy, HOLD)
    if made.pool is None:
        return
    ready = []
    for one in weigh(FleetView(snapshot), request, policy):
        cap = one.view.pool.cap
        full = cap is not None and one.inflight >= cap and not one.runs_on_caller
        if one.eligible and not full and why_none(one, HOLD) is None:
            ready.append(one.name)
    assert not ready or made.pool in ready


@fast
@given(snapshots(), requests, policies)
def test_caps_are_never_passed(snapshot: Snapshot, request: Request, policy: Policy) -> None:
    made = admit(snapshot, request, policy, Admission())
    if made.pool is None or made.keep_on_caller:
        return
    live = [w for w in snapshot.work if w.ended_at is None]
    cap = next(p.cap for p in snapshot.pools if p.name == made.pool)
    assert cap is None or sum(w.pool == made.pool for w in live) < cap
    assert snapshot.config.worker_cap is None or len(live) < snapshot.config.worker_cap
