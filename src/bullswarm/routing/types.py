"""The values routing reads and returns: one immutable snapshot in, one decision out.

Every time is an aware UTC ``datetime``; every percentage is a float in percent points (0..100);
every duration is in minutes unless its name says otherwise. Nothing here touches a clock, a file,
a process, the environment or the network.
"""

from datetime import datetime
from typing import Literal

import msgspec

Lane = Literal["analyze", "build", "chore"]
LANES: tuple[Lane, ...] = ("analyze", "build", "chore")

WindowKind = Literal["five_hour", "daily", "weekly", "monthly", "other"]
PacingKind = Literal["weekly", "monthly"]
Source = Literal["live", "cache", "declared", "none"]
Strategy = Literal["pace", "prefer-order", "most-quota", "lowest-latency"]
STRATEGIES: tuple[Strategy, ...] = ("pace", "prefer-order", "most-quota", "lowest-latency")
LatencyClass = Literal["fast", "slow"]
Tier = Literal[
    "urgent", "normal", "draining", "near-limit", "caller", "forecast-gated", "ineligible"
]
ChargeBasis = Literal["penalty", "history", "bootstrap"]
EstimateSource = Literal["history", "bootstrap", "none"]


class Value(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=False, gc=False
):
    """Base of every routing value: immutable, keyword-only, camelCase in JSON. Values hold no
    cycles, and a snapshot has thousands of them: the collector need not look."""


class Window(Value, frozen=True, kw_only=True):
    """One metered window of a pool, known by its length and never by the slot it arrived in.

    ``minutes`` is the window's length (300 = five hours, 10080 = a week). A monthly window has the
    length of the calendar month that ends at ``resets_at``; its ``minutes`` is advisory.
    ``used_pct`` is None when the provider named the window without a percentage: unknown, never 0.
    ``family`` is set where the window binds one model family of the pool only ("opus").
    ``reset_declared`` marks a reset that the operator declared rather than the provider reported.
    """

    kind: WindowKind
    minutes: float
    used_pct: float | None = None
    resets_at: datetime | None = None
    family: str | None = None
    reset_declared: bool = False


class Reading(Value, frozen=True, kw_only=True):
    """What a pool's meter said, when, and how we came by it.

    ``account`` is a non-secret digest of the account identity, so a swapped login starts afresh.
    ``note`` is a sentence for people: why there is no live reading, or what looked odd.
    """

    pool: str
    source: Source = "none"
    observed_at: datetime | None = None
    windows: tuple[Window, ...] = ()
    account: str | None = None
    note: str | None = None


class Rate(Value, frozen=True, kw_only=True):
    """Measured burn of one window: percentage points per worker-minute.

    ``per_minute`` is None below five attributable worker-minutes (a fresh machine routes
    on pace and the flat penalty until it has measured something).
    """

    kind: WindowKind
    per_minute: float | None = None
    worker_minutes: float = 0.0
    family: str | None = None


class Model(Value, frozen=True, kw_only=True):
    """One model a pool can run. ``family`` groups models that one limit binds ("opus")."""

    name: str
    family: str | None = None
    latency: LatencyClass = "slow"


class Health(Value, frozen=True, kw_only=True):
    """Errors and latency of a pool over the last hour; a tie-breaker only."""

    attempts: int = 0
    errors: int = 0
    median_seconds: float | None = None


class Pool(Value, frozen=True, kw_only=True):
    """One installed agent CLI, or one account of it, as routing sees it.

    ``cost_rank``: lower is cheaper. ``pacing`` is the subscription window that paces the pool; None
    means unmetered. ``reserve_pct`` is kept for the person who owns the account: the pacing window
    counts as full at 100 minus it. ``unavailable`` says why it can't be started at all (no binary).
    ``models`` empty means any model name is passed through.
    """

    name: str
    provider: str
    lanes: tuple[str, ...] = LANES
    capabilities: tuple[str, ...] = ()
    models: tuple[Model, ...] = ()
    default_model: str | None = None
    cost_rank: float = 1.0
    pacing: PacingKind | None = "weekly"
    enabled: bool = True
    unavailable: str | None = None
    paused_until: datetime | None = None
    paused: bool = False
    credential_group: str | None = None
    reserve_pct: float = 0.0
    cap: int | None = None
    reading: Reading | None = None
    rates: tuple[Rate, ...] = ()
    health: Health = Health()


class Work(Value, frozen=True, kw_only=True):
    """One agent's time on a pool: in flight while ``ended_at`` is None, else recently ended.
    ``ran_minutes`` as in ``Request``."""

    id: str
    pool: str
    lane: str
    started_at: datetime
    ended_at: datetime | None = None
    model: str | None = None
    ran_minutes: float = 0.0


class Quarantine(Value, frozen=True, kw_only=True):
    """A bench: the pool (or one model family on it) is ineligible until ``until``."""

    pool: str
    kind: Literal["quota", "auth", "throttle", "probe"]
    until: datetime
    reason: str
    source: str = ""
    since: datetime | None = None
    family: str | None = None


class Durations(Value, frozen=True, kw_only=True):
    """Recorded attempt durations in minutes, for one pool and lane ("*" matches any)."""

    pool: str
    lane: str
    minutes: tuple[float, ...] = ()


class Admission(Value, frozen=True, kw_only=True):
    """When to hold work rather than dispatch it.

    ``five_hour_line`` and ``pacing_line`` are forecast percentages; ``cap_per_pool`` agents in
    flight; ``tail_factor`` multiplies the candidate's expected spend (tails are long);
    ``patience_minutes`` bounds the hold.
    """

    mode: Literal["off", "hold"] = "off"
    five_hour_line: float = 90.0
    pacing_line: float = 97.0
    cap_per_pool: int = 4
    tail_factor: float = 3.0
    patience_minutes: float = 600.0


class Policy(Value, frozen=True, kw_only=True):
    """How to choose: one policy, four strategies.

    ``prefer`` names pools or providers, best first; ``domains`` maps a domain to such a list;
    ``quota_ceiling`` is the used% above which a candidate is gated for the three simple
    strategies. ``latency`` asks for fast models or tolerates slow ones.
    """

    strategy: Strategy = "pace"
    prefer: tuple[str, ...] = ()
    quota_ceiling: float = 80.0
    domains: dict[str, tuple[str, ...]] = {}
    latency: LatencyClass | None = None


class Config(Value, frozen=True, kw_only=True):
    """The operator's routing settings. ``assignments`` maps "lane", "effort" or "lane/effort" to a
    pool; ``bootstrap_minutes`` is the prior for an attempt's length before any was recorded.
    ``worker_cap`` bounds the live workers of all pools together; None is no bound."""

    inflight_penalty_pct: float = 3.0
    assignments: dict[str, str] = {}
    bootstrap_minutes: float = 6.0
    admission: Admission = Admission()
    worker_cap: int | None = None


class Request(Value, frozen=True, kw_only=True):
    """One piece of work that wants a pool.

    ``pin`` is a strict pool; ``use`` and ``avoid`` name pools or providers (a workflow step's
    route); ``exclude`` names pools already tried; ``exclude_groups`` credential groups already
    found dead for this step. ``caller`` is the pool or provider of the agent that invoked us;
    ``incumbent`` the pool already doing this work. ``waiting_since`` is when held work first asked.
    ``ran_minutes`` is how long an earlier attempt at it ran before a limit cut it off: it takes
    longer than that.
    """

    lane: str
    capabilities: tuple[str, ...] = ()
    model: str | None = None
    effort: str | None = None
    domain: str | None = None
    pin: str | None = None
    use: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    exclude_groups: tuple[str, ...] = ()
    caller: str | None = None
    incumbent: str | None = None
    waiting_since: datetime | None = None
    ran_minutes: float = 0.0


class Snapshot(Value, frozen=True, kw_only=True):
    """Everything a pick depends on, at one instant."""

    now: datetime
    pools: tuple[Pool, ...]
    work: tuple[Work, ...] = ()
    quarantines: tuple[Quarantine, ...] = ()
    durations: tuple[Durations, ...] = ()
    config: Config = Config()


class Candidate(Value, frozen=True, gc=False):
    """One row of a decision: every number the pick compared, and why the row lost.

    ``pace`` is the surplus (elapsed% - used% of the pacing window), None where unmetered or
    unknown. ``charge`` is subtracted from it to give ``effective_surplus``; ``charge_basis`` says
    what set it. ``projected_five_hour_pct`` is reading + burn since + rest of in-flight work;
    ``forecast_five_hour_pct`` adds this candidate. ``urgency`` is surplus divided by the fraction
    of the pacing window left, only where the window is ending soon. ``error_share`` (0..1) and
    ``median_seconds`` are the pool's last hour; they break ties only.
    """

    pool: str
    provider: str
    tier: Tier
    rank: int = 0
    eligible: bool = True
    why_not: str | None = None
    lost: str | None = None
    pace: float | None = None
    elapsed_pct: float | None = None
    used_pct: float | None = None
    pacing_window: str | None = None
    pacing_resets_at: datetime | None = None
    effective_surplus: float | None = None
    charge: float = 0.0
    charge_basis: ChargeBasis | None = None
    inflight: int = 0
    five_hour_pct: float | None = None
    five_hour_elapsed_pct: float | None = None
    five_hour_resets_at: datetime | None = None
    projected_five_hour_pct: float | None = None
    forecast_five_hour_pct: float | None = None
    forecast_pacing_pct: float | None = None
    rate_per_minute: float | None = None
    pacing_rate_per_minute: float | None = None
    estimate_source: EstimateSource = "none"
    expected_minutes: float | None = None
    near_limit: bool = False
    forecast_gated: bool = False
    urgent: bool = False
    draining: bool = False
    urgency: float | None = None
    incumbent: bool = False
    assigned: bool = False
    is_caller: bool = False
    cost_rank: float = 1.0
    model: str | None = None
    latency: LatencyClass | None = None
    reading_source: Source = "none"
    reading_age_minutes: float | None = None
    error_share: float | None = None
    median_seconds: float | None = None


class Hold(Value, frozen=True, kw_only=True):
    """Held, not dispatched: the earliest time a pool is expected to have room, and why.

    ``kind``: ``cap`` where a bound on live workers holds it (no patience ends that), ``admission``
    where the forecast does.
    """

    until: datetime
    kind: Literal["cap", "admission"] = "admission"
    reason: str
    pool: str | None = None
    patience_ends: datetime | None = None


class Decision(Value, frozen=True, kw_only=True):
    """What routing decided. ``pool`` is None when nothing can take the work or it is held.

    ``keep_on_caller``: the caller's own session is the pick. ``note`` is set only where a
    best-effort fallback was taken (every candidate gated). ``retry_at`` is the earliest known time
    at which a capable pool that is benched or full comes back; set only where ``pool`` is None.
    """

    pool: str | None
    reason: str
    model: str | None = None
    keep_on_caller: bool = False
    note: str | None = None
    hold: Hold | None = None
    retry_at: datetime | None = None
    candidates: tuple[Candidate, ...] = ()
    strategy: Strategy = "pace"
    at: datetime | None = None
