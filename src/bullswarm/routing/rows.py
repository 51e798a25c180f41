"""One pool against one request: every number a pick compares."""

from __future__ import annotations

from math import inf
from typing import Literal

from bullswarm.routing.filters import Ask, fit
from bullswarm.routing.forecast import Load, clipped
from bullswarm.routing.tiers import (
    DRAINING,
    FIVE_HOUR_NEAR_LIMIT_PCT,
    GATED,
    INELIGIBLE,
    NORMAL,
    TIERS,
    URGENT,
    expiring,
    forecast_gated,
    near_limit,
    tier_of,
)
from bullswarm.routing.types import Candidate, ChargeBasis, EstimateSource, LatencyClass
from bullswarm.routing.view import FleetView, PoolView
from bullswarm.routing.windows import WORDS, describe


class Row:
    """A candidate in the making. ``base`` orders rows that nothing above it told apart: effective
    surplus, then load, cost, errors, latency, name. ``no_room`` says why admission passes it over.
    """

    __slots__ = (
        "ask",
        "assigned",
        "away",
        "back_at",
        "base",
        "basis",
        "charge",
        "cost",
        "draining",
        "effective",
        "eligible",
        "estimate",
        "expected",
        "expiry",
        "five_forecast",
        "gated",
        "incumbent",
        "inflight",
        "is_caller",
        "kept",
        "lost",
        "model",
        "name",
        "near",
        "no_room",
        "pacing_forecast",
        "ran",
        "rank",
        "rest",
        "tier",
        "urgency",
        "urgency_charged",
        "view",
        "why_not",
    )

    def __init__(self, view: PoolView, ask: Ask, fleet: FleetView) -> None:
        pool = view.pool
        load = view.load
        self.view = view
        self.ask = ask
        self.name = name = pool.name
        self.cost = pool.cost_rank
        self.why_not, self.model, self.away, self.back_at = fit(view, ask)
        self.eligible = eligible = self.why_not is None
        self.lost: str | None = None
        self.no_room: str | None = None
        self.kept = False
        self.rank = 0

        ran = self.ran = ask.request.ran_minutes
        if ran > 0.0:
            rest, known = fleet.book.residual(name, ask.lane, ran)
        else:
            rest, known = fleet.book.mean(name, ask.lane)
        self.rest = rest
        expected = self.expected = ran + rest
        self._spend(view, load, expected, known, fleet.config.inflight_penalty_pct)
        surplus = view.surplus
        # Rounded, so that noise in the last bits never outranks the load.
        effective = round((0.0 if surplus is None else surplus) - self.charge, 6)
        self.effective = effective

        self.is_caller = name in ask.caller
        self.incumbent = name == ask.incumbent
        self.assigned = name in ask.assigned
        five = self.five_forecast
        self.gated = self.near = False
        if five is not None and five >= FIVE_HOUR_NEAR_LIMIT_PCT:
            self.gated = forecast_gated(five)
            self.near = near_limit(five, view.five_elapsed)
        self.expiry: int | None = None
        self.urgency: float | None = None
        self.urgency_charged = 0.0
        if view.ends_soon:
            self.expiry = expiring(surplus, self.pacing_forecast)
            if (
                self.expiry is not None
                and surplus is not None
                and surplus > 0.0
                and view.left_share
            ):
                self.urgency = surplus / view.left_share
                self.urgency_charged = round(effective / view.left_share, 6)
        self.tier = INELIGIBLE
        if eligible:
            alone = self.is_caller and ask.pin is None
            self.tier = tier_of(alone, self.gated, self.near, self.expiry)
        health = pool.health
        median = health.median_seconds
        share = health.errors / health.attempts if health.attempts > 0 else 0.0
        self.base = (
            -effective,
            load.inflight,
            pool.cost_rank,
            load.ended_unread,
            share,
            inf if median is None else median,
            name,
        )

    def _spend(
        self, view: PoolView, load: Load, expected: float, known: bool, penalty: float
    ) -> None:
        """The forecasts with this candidate, and the charge on its surplus: what load and candidate
        are projected to spend of the pacing window, at least the flat penalty for each agent in
        flight."""
        five_rate, pacing_rate = view.five_rate, view.pacing_rate
        self.five_forecast = view.five_projected
        if five_rate is not None and view.five_projected is not None:
            self.five_forecast = view.five_projected + five_rate * clipped(expected, view.five_left)
        self.pacing_forecast = view.pacing_projected
        if pacing_rate is not None and view.pacing_projected is not None:
            self.pacing_forecast = view.pacing_projected + pacing_rate * expected
        source: Literal["history", "bootstrap"]
        source = "history" if known and load.from_history else "bootstrap"
        measured = five_rate is not None or pacing_rate is not None
        self.estimate: EstimateSource = source if measured else "none"
        self.inflight = inflight = load.inflight
        self.charge = floor = penalty * inflight
        self.basis: ChargeBasis | None = "penalty" if floor > 0.0 else None
        if pacing_rate is not None:
            spend = pacing_rate * (load.unread_minutes + load.rest_sum + expected)
            if spend > floor:
                self.charge = spend
                self.basis = source

    def candidate(self) -> Candidate:
        """The row as the decision keeps it."""
        view = self.view
        pool, pacing, five, model = view.pool, view.pacing, view.five, self.model
        # By position, in the order of the fields: keywords take four times as long.
        return Candidate(
            self.name,
            pool.provider,
            TIERS[self.tier],
            self.rank,
            self.eligible,
            self.why_not,
            self.lost,
            view.surplus,
            view.elapsed,
            pacing.used_pct if pacing is not None else None,
            WORDS[pacing.kind] if pacing is not None else pool.pacing,
            pacing.resets_at if pacing is not None else None,
            self.effective,
            self.charge,
            self.basis,
            self.inflight,
            five.used_pct if five is not None else None,
            view.five_elapsed,
            five.resets_at if five is not None else None,
            view.five_projected,
            self.five_forecast,
            self.pacing_forecast,
            view.five_rate,
            view.pacing_rate,
            self.estimate,
            self.expected,
            self.near,
            self.gated,
            self.expiry == URGENT,
            self.expiry == DRAINING,
            self.urgency,
            self.incumbent,
            self.assigned,
            self.is_caller,
            self.cost,
            model.name if model is not None else None,
            self.latency,
            pool.reading.source if pool.reading is not None else "none",
            view.age_minutes,
            self.error_share,
            pool.health.median_seconds,
        )

    @property
    def latency(self) -> LatencyClass | None:
        """The latency class of the model it would run, or of all its models where the CLI chooses;
        None where nobody declared one."""
        models = self.view.pool.models
        if not models:
            return None
        if self.model is not None:
            return self.model.latency
        first = models[0].latency
        return first if all(model.latency == first for model in models) else None

    @property
    def error_share(self) -> float | None:
        """The share (0..1) of the last hour's attempts that failed; None without any."""
        health = self.view.pool.health
        return health.errors / health.attempts if health.attempts > 0 else None

    @property
    def median(self) -> float | None:
        """The median seconds of the last hour's attempts."""
        return self.view.pool.health.median_seconds

    @property
    def pacing_word(self) -> str:
        """The pacing window in words."""
        pacing = self.view.pacing
        return describe(pacing) if pacing is not None else "pacing"

    @property
    def runs_on_caller(self) -> bool:
        """Whether picking it means that the caller does the work in its own session."""
        return self.is_caller and self.ask.pin is None

    @property
    def ordinary(self) -> bool:
        """Whether assignment and incumbency count in its tier."""
        return NORMAL <= self.tier < GATED
