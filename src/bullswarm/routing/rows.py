"""One pool against one request: every number a pick compares."""

from __future__ import annotations

from math import inf

from bullswarm.routing.filters import Ask, fit
from bullswarm.routing.forecast import clipped, grown
from bullswarm.routing.tiers import (
    DRAINING,
    GATED,
    INELIGIBLE,
    NEAR_LIMIT,
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
        "error_share",
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
        "median",
        "model",
        "name",
        "near",
        "no_room",
        "pacing_forecast",
        "rank",
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

        self.expected, known = fleet.book.mean(name, ask.lane)
        five_rate, pacing_rate = view.five_rate, view.pacing_rate
        five = self.five_forecast = grown(
            view.five_projected, five_rate, clipped(self.expected, view.five_left)
        )
        pacing = self.pacing_forecast = grown(view.pacing_projected, pacing_rate, self.expected)
        recorded: EstimateSource = "history" if known and load.from_history else "bootstrap"
        self.estimate: EstimateSource = (
            "none" if five_rate is None and pacing_rate is None else recorded
        )

        self.inflight = load.inflight
        floor = fleet.config.inflight_penalty_pct * load.inflight
        spend = 0.0
        if pacing_rate is not None:
            minutes = load.unread_minutes + load.rest_minutes() + self.expected
            spend = pacing_rate * minutes
        self.basis: ChargeBasis | None = None
        if spend > floor:
            self.charge = spend
            self.basis = "history" if recorded == "history" else "bootstrap"
        else:
            self.charge = floor
            if floor > 0.0:
                self.basis = "penalty"
        surplus = view.surplus
        # Rounded, so that noise in the last bits never outranks the load.
        self.effective = round((surplus or 0.0) - self.charge, 6)

        self.is_caller = ask.caller is not None and pool in ask.caller
        self.incumbent = name == ask.incumbent
        self.assigned = ask.assigned is not None and pool in ask.assigned
        self.gated = forecast_gated(five)
        self.near = near_limit(five, view.five_elapsed)
        expiry = self.expiry = expiring(view.ends_soon, surplus, pacing) if view.ends_soon else None
        self.urgency: float | None = None
        self.urgency_charged = 0.0
        if expiry is not None and surplus is not None and view.left_share:
            self.urgency = surplus / view.left_share
            self.urgency_charged = round(self.effective / view.left_share, 6)
        self.tier = (
            tier_of(
                caller=self.is_caller and ask.pin is None,
                gated=self.gated,
                near=self.near,
                expiry=expiry,
            )
            if eligible
            else INELIGIBLE
        )
        health = pool.health
        self.error_share = health.errors / health.attempts if health.attempts > 0 else None
        median = self.median = health.median_seconds
        self.base = (
            -self.effective,
            load.inflight,
            pool.cost_rank,
            load.ended_unread,
            self.error_share or 0.0,
            inf if median is None else median,
            name,
        )

    def candidate(self) -> Candidate:
        """The row as the decision keeps it."""
        view = self.view
        pool, pacing, five, model = view.pool, view.pacing, view.five, self.model
        return Candidate(
            pool=self.name,
            provider=pool.provider,
            tier=TIERS[self.tier],
            rank=self.rank,
            eligible=self.eligible,
            why_not=self.why_not,
            lost=self.lost,
            pace=view.surplus,
            elapsed_pct=view.elapsed,
            used_pct=pacing.used_pct if pacing is not None else None,
            pacing_window=WORDS[pacing.kind] if pacing is not None else pool.pacing,
            pacing_resets_at=pacing.resets_at if pacing is not None else None,
            effective_surplus=self.effective,
            charge=self.charge,
            charge_basis=self.basis,
            inflight=self.inflight,
            five_hour_pct=five.used_pct if five is not None else None,
            five_hour_elapsed_pct=view.five_elapsed,
            five_hour_resets_at=five.resets_at if five is not None else None,
            projected_five_hour_pct=view.five_projected,
            forecast_five_hour_pct=self.five_forecast,
            forecast_pacing_pct=self.pacing_forecast,
            rate_per_minute=view.five_rate,
            pacing_rate_per_minute=view.pacing_rate,
            estimate_source=self.estimate,
            expected_minutes=self.expected,
            near_limit=self.near,
            forecast_gated=self.gated,
            urgent=self.expiry == URGENT,
            draining=self.expiry == DRAINING,
            urgency=self.urgency,
            incumbent=self.incumbent,
            assigned=self.assigned,
            is_caller=self.is_caller,
            cost_rank=self.cost,
            model=model.name if model is not None else None,
            latency=self.latency,
            reading_source=pool.reading.source if pool.reading is not None else "none",
            reading_age_minutes=view.age_minutes,
            error_share=self.error_share,
            median_seconds=self.median,
        )

    @property
    def latency(self) -> LatencyClass | None:
        """The latency class of the model it would run; None where nobody declared one."""
        return self.model.latency if self.model is not None and self.view.pool.models else None

    @property
    def tier_words(self) -> str:
        """The tier with the number that put the row there."""
        word = TIERS[self.tier]
        if self.tier in (NEAR_LIMIT, GATED):
            return f"{word} ({self.five_forecast:.0f}% of 5h forecast)"
        return word

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
