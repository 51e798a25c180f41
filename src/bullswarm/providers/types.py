"""What a provider is: a declarative connector, and the few hooks that code may override.

A provider's quirks live in its folder alone; everything else in bullswarm talks to these types.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from bullswarm.dispatch.types import Event
from bullswarm.routing.types import Model, PacingKind, Reading


class Declared(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True
):
    """Base of what a connector file may say; an unknown key is an error that names it."""


class ModelEntry(Declared, frozen=True, kw_only=True):
    """One model: ``name`` is what the CLI takes; ``family`` groups what one limit binds."""

    name: str
    family: str | None = None
    latency: Literal["fast", "slow"] = "slow"


class Rule(Declared, frozen=True, kw_only=True):
    """One declarative stream rule: where ``when`` matches, emit an event of kind ``emit``.

    ``when`` maps dotted paths to a literal, a list of literals (any of which matches),
    ``{"exists": true}`` or ``{"matches": "<regular expression>"}``, whose named groups fill the
    ``Event`` fields of those names. ``take`` maps an ``Event`` field to the dotted path it is read
    from ("a.b|c" reads the first that is there). ``set`` maps an ``Event`` field to a literal.
    ``each`` is the path of a list: the rule is tried on every object in it, with paths from that
    object, or from the whole event with a leading ``$.``.
    """

    emit: str
    each: str | None = None
    when: dict[str, Any] = {}
    take: dict[str, str] = {}
    set: dict[str, Any] = {}


class Stream(Declared, frozen=True, kw_only=True):
    """How the CLI speaks. ``jsonl`` is captured as ``stream-<stamp>.jsonl``, ``text`` as
    ``stdout-<stamp>.log``. ``terminal``: a run is never ok without a final event (text mode has
    none and must say ``terminal: false``)."""

    format: Literal["jsonl", "text"] = "jsonl"
    terminal: bool = True
    rules: tuple[Rule, ...] = ()


class Phrases(Declared, frozen=True, kw_only=True):
    """The provider's own words for its "no", on top of the built-in grammar. Regular expressions,
    case-insensitive."""

    quota: tuple[str, ...] = ()
    throttle: tuple[str, ...] = ()
    auth: tuple[str, ...] = ()
    overloaded: tuple[str, ...] = ()


class EarlyKill(Declared, frozen=True, kw_only=True):
    """How many provider retry notices of a kind end the attempt (measured: CLIs retry for minutes
    or for ever)."""

    auth: int = 2
    throttle: int = 2
    overloaded: int = 4
    other: int = 5


class Silence(Declared, frozen=True, kw_only=True):
    """Seconds without a byte before the attempt is ``stalled``: at the start, and mid-run."""

    startup_s: float = 120.0
    running_s: float = 900.0
    final_grace_s: float = 5.0


class Connector(Declared, frozen=True, kw_only=True):
    """The declarative half of a provider (``connector.json`` or ``connector.toml``).

    ``aliases`` are other words for the provider where a preference is asked for ("claude").
    ``args`` is the argument template after ``command``; ``{prompt}``, ``{model}``, ``{effort}``,
    ``{session}``, ``{cwd}``, ``{permission}`` are filled in. ``model_args``, ``effort_args``,
    ``resume_args``, ``permission_args`` and ``lane_args`` are inserted where ``{model_args}`` ...
    stands in ``args`` (an element of its own), only when such a value was asked for. ``prompt_via``
    is ``arg`` or ``stdin``. ``efforts`` maps our effort words to the CLI's. ``env`` is set for the
    worker, ``env_drop`` removed from it. ``home_env`` names the variable that selects the login
    home and ``home_default`` where the CLI keeps it otherwise; each home is a pool.
    ``caller_markers`` are variables that the CLI sets for the commands it runs.
    ``start_gap_s`` keeps starts on one login home that many seconds apart: CLIs rewrite their own
    files as they start. ``auth_signatures`` are extra phrases for a dead upstream credential.
    ``stderr_text`` is a regular expression with a group ``text``: what the provider said, in a line
    of the CLI's log on stderr.
    """

    name: str
    command: str
    title: str = ""
    aliases: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    model_args: tuple[str, ...] = ()
    effort_args: tuple[str, ...] = ()
    resume_args: tuple[str, ...] = ()
    permission_args: tuple[str, ...] = ()
    lane_args: dict[str, tuple[str, ...]] = {}
    prompt_via: Literal["arg", "stdin"] = "arg"
    efforts: dict[str, str] = {}
    env: dict[str, str] = {}
    env_drop: tuple[str, ...] = ()
    home_env: str | None = None
    home_default: str | None = None
    home_glob: str | None = None
    lanes: tuple[str, ...] = ("analyze", "build", "chore")
    capabilities: tuple[str, ...] = ()
    models: tuple[ModelEntry, ...] = ()
    default_model: str | None = None
    cost_rank: float = 1.0
    quota_window: PacingKind | None = "weekly"
    upstream_group: str | None = None
    meter: str | None = None
    meter_ttl_s: float = 60.0
    start_gap_s: float = 1.0
    stream: Stream = Stream()
    phrases: Phrases = Phrases()
    auth_signatures: tuple[str, ...] = ()
    stderr_text: str | None = None
    early_kill: EarlyKill = EarlyKill()
    silence: Silence = Silence()
    caller_markers: tuple[str, ...] = ()
    opt_in: bool = False
    login_hint: str = ""
    install_hint: str = ""


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """One pool a provider offers: the provider itself, or one login home of it.

    ``home`` is the login home's absolute path (None where the CLI has no such notion).
    ``identity`` is a non-secret digest of the login it resolves to, None where unknown; two pools
    with one identity, or one ``login_file``, are one credential group.
    """

    pool: str
    provider: str
    home: str | None = None
    identity: str | None = None
    login_file: str | None = None
    credential_group: str | None = None
    unavailable: str | None = None


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is asked: everything a provider needs to build a command line."""

    prompt: str
    cwd: str
    lane: str = "build"
    model: str | None = None
    effort: str | None = None
    permission_mode: str | None = None
    resume_session: str | None = None
    prompt_file: str | None = None


class CommandLine(msgspec.Struct, frozen=True, kw_only=True):
    """A shell-free command: argv, the variables to set and to drop, and what goes to stdin."""

    argv: tuple[str, ...]
    env_set: dict[str, str] = {}
    env_drop: tuple[str, ...] = ()
    stdin: str | None = None


@runtime_checkable
class Provider(Protocol):
    """The protocol every provider meets; ``providers.base.ConnectorProvider`` does it all from the
    connector alone, and a provider with code overrides what it must."""

    @property
    def connector(self) -> Connector: ...

    def accounts(self, env: Mapping[str, str], settings: Mapping[str, Any]) -> tuple[Account, ...]:
        """The pools on this machine. ``settings`` is ``config.providers[<name>]``. Starts nothing
        and spends nothing."""
        ...

    def command(self, account: Account, ask: Ask, settings: Mapping[str, Any]) -> CommandLine:
        """The command line for one attempt. Raises ``UsageError`` for what the CLI can't do."""
        ...

    def read_event(self, raw: dict[str, Any]) -> tuple[Event, ...]:
        """One raw JSON event in our words; unknown events give ()."""
        ...

    def read_meter(self, account: Account, env: Mapping[str, str], now: datetime) -> Reading | None:
        """A live reading, or None where this provider has no meter. Never spends a prompt; raises
        ``meters.MeterError`` where the meter can't be read."""
        ...

    def models(self, account: Account) -> tuple[Model, ...]:
        """The models this account can run, with their latency class."""
        ...
