"""Who can take a request at all, in words. Preference comes after, on every path (routing rules).

A pool that fails for good (its lanes, its models, the route of the step) is told from one that is
only away for a time and will come back: the second says when.
"""

from __future__ import annotations

from datetime import datetime

from bullswarm.routing.types import Model, Pool, Request, Window
from bullswarm.routing.view import FleetView, PoolView
from bullswarm.routing.windows import describe

Fit = tuple[str | None, Model | None, bool, datetime | None]
"""``(why_not, model, away, back_at)``: why the pool can't take the request (None: it can, with
``model``); whether it is capable and only away for a time; and when it is known to return."""


class Ask:
    """A request made ready: names resolved against the fleet once, not once a pool."""

    __slots__ = (
        "assigned",
        "assigned_key",
        "avoid",
        "caller",
        "capabilities",
        "exclude",
        "groups",
        "incumbent",
        "lane",
        "model",
        "now",
        "open",
        "pin",
        "request",
        "use",
        "want_fast",
    )

    def __init__(self, request: Request, view: FleetView, want_fast: bool = False) -> None:
        self.request = request
        self.now = view.now
        self.lane = request.lane
        self.capabilities = request.capabilities
        self.model = request.model
        self.pin = named(request.pin, view) if request.pin is not None else None
        self.use = frozenset(request.use)
        self.avoid = frozenset(request.avoid)
        self.exclude = frozenset[str]().union(*(named(t, view) for t in request.exclude))
        self.groups = frozenset(request.exclude_groups)
        self.caller = named(request.caller, view)
        self.incumbent = request.incumbent
        self.want_fast = want_fast
        self.open = self.pin is None and not (self.use or self.avoid or self.exclude or self.groups)
        self.assigned_key, assigned = assignment(view.config.assignments, request)
        self.assigned = named(assigned, view)


def named(token: str | None, view: FleetView) -> frozenset[str]:
    """What a token names: the pool of that name, else every pool of that provider. So excluding
    the account "x" that was tried leaves the account "x:work" of provider "x" in play."""
    if not token:
        return frozenset()
    if token in view.names:
        return frozenset((token,))
    return frozenset(v.pool.name for v in view.pools if v.pool.provider == token)


def assignment(assignments: dict[str, str], request: Request) -> tuple[str, str | None]:
    """The most specific approved assignment: "lane/effort", then the lane, then the effort."""
    if not assignments:
        return "", None
    keys = [request.lane]
    if request.effort:
        keys = [f"{request.lane}/{request.effort}", request.lane, request.effort]
    for key in keys:
        if key in assignments:
            return key, assignments[key]
    return "", None


def fit(view: PoolView, ask: Ask) -> Fit:
    """Whether the pool can take the request now, and if not, why and until when."""
    pool = view.pool
    why = _never(pool, ask)
    if why is not None:
        return why, None, False, None
    models = pool.models
    asked: Model | None = None
    if ask.model is not None:
        if models:
            asked = next((m for m in models if m.name == ask.model), None)
            if asked is None:
                return f"model {ask.model} is not one of its models", None, False, None
        else:
            asked = Model(name=ask.model, latency="slow")
    if view.benches or view.full or pool.paused or pool.paused_until is not None:
        away = _away(view, ask)
        if away is not None:
            return away
    if asked is None and not ask.want_fast and not view.benches and not view.family_full:
        return None, _default(pool), False, None
    return _choose(view, ask, asked)


def _never(pool: Pool, ask: Ask) -> str | None:
    if not pool.enabled:
        return "disabled"
    if pool.unavailable is not None:
        return f"unavailable: {pool.unavailable}"
    if ask.lane not in pool.lanes:
        return f"does not take {ask.lane} work"
    for needed in ask.capabilities:
        if needed not in pool.capabilities:
            missing = [c for c in ask.capabilities if c not in pool.capabilities]
            return f"lacks {', '.join(missing)}"
    if ask.open:
        return None
    if ask.pin is not None and pool.name not in ask.pin:
        return f"not the pinned pool {ask.request.pin}"
    if ask.use and pool.name not in ask.use and pool.provider not in ask.use:
        return "not among the pools asked for"
    if ask.avoid and (pool.name in ask.avoid or pool.provider in ask.avoid):
        return "to be avoided, as asked"
    if pool.name in ask.exclude:
        return "already tried"
    if ask.groups and pool.credential_group is not None and pool.credential_group in ask.groups:
        return f"shares the dead credential {pool.credential_group}"
    return None


def _away(view: PoolView, ask: Ask) -> Fit | None:
    pool, now = view.pool, ask.now
    reasons: list[str] = []
    backs: list[datetime | None] = []
    until = pool.paused_until
    if pool.paused and (until is None or until > now):
        reasons.append(f"paused until {stamp(until)}" if until else "paused by hand")
        backs.append(until)
    elif until is not None and until > now:
        reasons.append(f"paused until {stamp(until)}")
        backs.append(until)
    for bench in view.benches:
        if bench.family is None:
            reasons.append(f"quarantined ({bench.kind}) until {stamp(bench.until)}: {bench.reason}")
            backs.append(bench.until)
    for window in view.full:
        reasons.append(_full_words(view, window))
        backs.append(window.resets_at)
    return _fit_away(reasons, backs) if reasons else None


def _fit_away(reasons: list[str], backs: list[datetime | None]) -> Fit:
    known = [b for b in backs if b is not None]
    return reasons[0], None, True, max(known) if len(known) == len(backs) else None


def _choose(view: PoolView, ask: Ask, asked: Model | None) -> Fit:
    """The model to run, round every family that is benched or full."""
    pool = view.pool
    default = asked or _default(pool)
    blocked: dict[str, tuple[str, datetime | None]] = {}
    if view.benches or view.family_full:
        for window in view.family_full:
            blocked[(window.family or "").lower()] = (_full_words(view, window), window.resets_at)
        for bench in view.benches:
            if bench.family is not None:
                words = f"{bench.family} quarantined ({bench.kind}) until {stamp(bench.until)}"
                key = bench.family.lower()
                back: datetime | None = bench.until
                if key in blocked:
                    other = blocked[key][1]
                    back = max(other, bench.until) if other is not None else None
                blocked[key] = (f"{words}: {bench.reason}", back)
    if asked is not None:
        order: list[Model] = [asked]
    else:
        order = [default] if default is not None else []
        if ask.want_fast and (default is None or default.latency != "fast"):
            order = [m for m in pool.models if m.latency == "fast"] + order
        if blocked:
            order.extend(pool.models)
    if not order:
        return None, None, False, None
    if not blocked:
        return None, order[0], False, None
    hits: list[tuple[str, datetime | None]] = []
    for model in order:
        hit = [why for family, why in blocked.items() if belongs(model, family)]
        if not hit:
            return None, model, False, None
        hits.append((hit[0][0], _latest([back for _, back in hit])))
    known = [back for _, back in hits if back is not None]
    return hits[0][0], None, True, min(known) if known else None


def _default(pool: Pool) -> Model | None:
    name = pool.default_model
    if name is None:
        return None
    for model in pool.models:
        if model.name == name:
            return model
    return Model(name=name)


def _latest(backs: list[datetime | None]) -> datetime | None:
    known = [b for b in backs if b is not None]
    return max(known) if known and len(known) == len(backs) else None


def belongs(model: Model, family: str) -> bool:
    """Whether a limit on ``family`` binds the model: by its declared family, else by its name."""
    family = family.lower()
    if model.family is not None:
        return model.family.lower() == family
    return family in model.name.lower()


def _full_words(view: PoolView, window: Window) -> str:
    used = window.used_pct or 0.0
    back = f", resets {stamp(window.resets_at)}" if window.resets_at else ""
    reserve = view.pool.reserve_pct
    if window is view.pacing and reserve > 0 and used < 100.0:
        kept = f"{describe(window)} window at {used:.0f}% with {reserve:.0f}% kept in reserve"
        return f"{kept}{back}"
    return f"{describe(window)} window full ({used:.0f}%){back}"


def stamp(when: datetime) -> str:
    """A moment, short and without doubt."""
    # Ten times as quick as a format string, and benched pools are many.
    return f"{when.year:04}-{when.month:02}-{when.day:02} {when.hour:02}:{when.minute:02} UTC"
