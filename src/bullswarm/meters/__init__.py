"""Meters: readings with their age and source, their history, and the rates and runway from it."""

from bullswarm.meters.clean import clean, flag_sliding, settle
from bullswarm.meters.declared import declare, roll_forward
from bullswarm.meters.errors import MeterError
from bullswarm.meters.history import History, history_path
from bullswarm.meters.rates import rates
from bullswarm.meters.runway import Runway, runway
from bullswarm.meters.service import Meters
from bullswarm.meters.store import MemoryMeterStore, MeterStore
from bullswarm.meters.windows import (
    claimed_window,
    kind_of,
    limit_reading,
    period_window,
    window_from,
)

__all__ = [
    "History",
    "MemoryMeterStore",
    "MeterError",
    "MeterStore",
    "Meters",
    "Runway",
    "claimed_window",
    "clean",
    "declare",
    "flag_sliding",
    "history_path",
    "kind_of",
    "limit_reading",
    "period_window",
    "rates",
    "roll_forward",
    "runway",
    "settle",
    "window_from",
]
