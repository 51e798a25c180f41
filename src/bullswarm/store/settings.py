"""What a person configures: ``state.json``, typed, checked, and never lost or overwritten."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from bullswarm.errors import BullswarmError
from bullswarm.routing import types as routing
from bullswarm.store.files import atomic_write, locked
from bullswarm.store.home import Home

Percent = Annotated[float, Meta(ge=0, le=100)]
Count = Annotated[int, Meta(ge=1, le=1000)]
Moment = Annotated[datetime, Meta(tz=True)]


class Section(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """Base of the settings: immutable, camelCase in the file, an unknown key is an error."""


class ConfigSection(Section, frozen=True, kw_only=True):
    """``config``. ``inflight_penalty_pct``: surplus points for each agent in flight, 0 turns it
    off. ``depth_limit``: how deep agents may call bullswarm. ``worker_cap``: live workers of all
    pools together, None means by the machine's memory. ``assignments``: "lane", "effort" or
    "lane/effort" to a pool. ``bootstrap_minutes``: an attempt's length before any was recorded.
    ``stagger``: whether ``pools`` says when to start accounts whose week waits for its first
    use."""

    inflight_penalty_pct: Percent = 3.0
    caller_name: str | None = None
    depth_limit: Annotated[int, Meta(ge=1, le=16)] = 2
    worker_cap: Count | None = None
    assignments: dict[str, str] = {}
    bootstrap_minutes: Annotated[float, Meta(gt=0, le=1440)] = 6.0
    stagger: Literal["off", "on"] = "off"


class LimitsSection(Section, frozen=True, kw_only=True):
    """``limits``. ``mode``: what a provider's limit does. ``throttle_pauses_seconds``: the
    pauses on the same pool after a throttle, two at most. ``wait_margin_seconds``: how long after a
    reset a wait for it ends; clocks differ, and providers are late."""

    mode: Literal["quarantine", "return", "wait"] = "quarantine"
    throttle_pauses_seconds: Annotated[
        tuple[Annotated[float, Meta(ge=0, le=3600)], ...], Meta(max_length=2)
    ] = (20.0, 60.0)
    wait_margin_seconds: Annotated[float, Meta(ge=0, le=3600)] = 30.0


class PolicySection(Section, frozen=True, kw_only=True):
    """``policy``: how to choose, where a run does not say it."""

    strategy: routing.Strategy = "pace"
    prefer: tuple[str, ...] = ()
    quota_ceiling: Percent = 80.0
    domains: dict[str, tuple[str, ...]] = {}
    latency: routing.LatencyClass | None = None


class AdmissionSection(Section, frozen=True, kw_only=True):
    """``admission``: when to hold work. ``mode`` None means hold
    for workflows and batches, off for a single run."""

    mode: Literal["off", "hold"] | None = None
    five_hour_line: Percent = 90.0
    pacing_line: Percent = 97.0
    cap_per_pool: Count = 4
    tail_factor: Annotated[float, Meta(ge=0, le=100)] = 3.0
    patience_minutes: Annotated[float, Meta(ge=0, le=525600)] = 600.0


class Subscription(Section, frozen=True, kw_only=True):
    """``subscriptions.<pool>``: what the operator says of one pool; None means as its connector
    says. ``reserve`` is the percentage of the pacing window kept for the account's owner."""

    quota_window: routing.PacingKind | None = None
    resets_at: Moment | None = None
    reserve: Percent = 0.0
    cost_rank: Annotated[float, Meta(ge=0)] | None = None
    cap: Count | None = None
    enabled: bool | None = None
    lanes: tuple[routing.Lane, ...] | None = None
    capabilities: tuple[str, ...] | None = None
    model: str | None = None


class Pause(Section, frozen=True, kw_only=True):
    """``paused.<pool>``: paused by hand until a time; None means until it is resumed."""

    until: Moment | None = None


class Settings(Section, frozen=True, kw_only=True):
    """All of ``state.json``. ``providers`` holds each provider's own settings (``enabled``,
    ``homes``, ``bin``, ``optIn``, ...), which only the provider knows."""

    config: ConfigSection = ConfigSection()
    limits: LimitsSection = LimitsSection()
    policy: PolicySection = PolicySection()
    admission: AdmissionSection = AdmissionSection()
    providers: dict[str, dict[str, Any]] = {}
    subscriptions: dict[str, Subscription] = {}
    paused: dict[str, Pause] = {}


def load(home: Home) -> Settings:
    """The settings of a home; a missing or empty file means the defaults. Raises
    ``BullswarmError`` for a damaged file, which is left as it is, and ``UsageError`` that names the
    setting and what would be right."""
    path = home.state_file
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Settings()
    except OSError as error:
        raise BullswarmError(f"{path} can't be read: {error.strerror or error}") from error
    if not data.strip():
        return Settings()
    try:
        return msgspec.json.decode(data, type=Settings)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # What is wrong is worked out only now: it is dear, and rarely needed.
        from bullswarm.store.settings_errors import explain

        raise explain(data, path, error) from error


def update(home: Home, fn: Callable[[Settings], Settings]) -> Settings:
    """Change the settings: ``fn`` gets what is stored and gives what shall be. One process at a
    time, so nothing is lost; the result is checked like a file of a person's. Raises as ``load``
    does, and where the file can't be written; the file is then as it was."""
    with locked(home.path / "state.lock"):
        old = load(home)
        data = msgspec.json.format(msgspec.json.encode(fn(old)), indent=2) + b"\n"
        try:
            new = msgspec.json.decode(data, type=Settings)
        except msgspec.DecodeError as error:
            from bullswarm.store.settings_errors import explain

            raise explain(data, home.state_file, error) from error
        if new != old:
            atomic_write(home.state_file, data)
        return new


def routing_config(settings: Settings) -> routing.Config:
    """The part of the settings that routing knows."""
    config = settings.config
    return routing.Config(
        inflight_penalty_pct=config.inflight_penalty_pct,
        assignments=config.assignments,
        bootstrap_minutes=config.bootstrap_minutes,
        admission=routing_admission(settings),
        worker_cap=config.worker_cap,
    )


def routing_policy(settings: Settings) -> routing.Policy:
    """The configured policy."""
    policy = settings.policy
    return routing.Policy(
        strategy=policy.strategy,
        prefer=policy.prefer,
        quota_ceiling=policy.quota_ceiling,
        domains=policy.domains,
        latency=policy.latency,
    )


def routing_admission(
    settings: Settings, unset: Literal["off", "hold"] = "off"
) -> routing.Admission:
    """The configured admission; ``unset`` is the mode where the settings leave it open ("off" for
    a single run, "hold" for workflows and batches)."""
    admission = settings.admission
    return routing.Admission(
        mode=admission.mode or unset,
        five_hour_line=admission.five_hour_line,
        pacing_line=admission.pacing_line,
        cap_per_pool=admission.cap_per_pool,
        tail_factor=admission.tail_factor,
        patience_minutes=admission.patience_minutes,
    )
