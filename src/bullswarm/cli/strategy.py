"""``bullswarm strategy``: what the operator decides. Everything lands in ``state.json``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from bullswarm.cli.common import (
    NAME,
    PATIENCE,
    PERCENT,
    Group,
    Number,
    OnLimit,
    agent_of,
    as_json,
    examples,
    home_of,
    preferred,
)
from bullswarm.cli.output import complete, masked, print_json, said
from bullswarm.routing.types import STRATEGIES

LANES = click.Choice(["analyze", "build", "chore"])


@click.group(
    cls=Group,
    epilog=examples(
        "bullswarm strategy show",
        "bullswarm strategy assign codex --lane build",
        "bullswarm strategy set --on-limit wait",
    ),
)
def strategy() -> None:
    """Configure assignments, subscriptions, limits and the default policy.

    An assignment is a preference: quarantine, exhaustion, the 5-hour tiers and capabilities still
    win over it.
    """


@strategy.command(
    epilog=examples(
        "bullswarm strategy assign codex --lane build",
        "bullswarm strategy assign claude-code --lane analyze --effort high",
    )
)
@click.argument("pool", type=NAME)
@click.option("--lane", type=LANES, help="For this lane.")
@click.option(
    "--effort", type=NAME, metavar="EFFORT", help="For this effort (with --lane: for both)."
)
@as_json
@click.pass_context
def assign(ctx: click.Context, pool: str, lane: str | None, effort: str | None, json: bool) -> int:
    """Prefer a pool for a lane, an effort, or both."""
    from bullswarm.store import edits

    app = _app(ctx)
    app.pool(pool)
    key = _key(lane, effort)
    edits.assign(app.home, key, pool)
    return _done({"assignments": app.reload().config.assignments}, f"{key} prefers {pool}", json)


@strategy.command(
    "clear-assignment", epilog=examples("bullswarm strategy clear-assignment --lane build")
)
@click.option("--lane", type=LANES, help="The lane it was made for.")
@click.option("--effort", type=NAME, metavar="EFFORT", help="The effort it was made for.")
@as_json
@click.pass_context
def clear_assignment(ctx: click.Context, lane: str | None, effort: str | None, json: bool) -> int:
    """Drop the assignment of a lane, an effort, or both."""
    from bullswarm.store import edits

    app = _app(ctx)
    key = _key(lane, effort)
    was = edits.clear_assignment(app.home, key)
    text = f"{key} prefers no pool any more" if was else f"{key} had no assignment"
    return _done({"assignments": app.reload().config.assignments, "was": was}, text, json)


@strategy.command(
    "set-subscription",
    epilog=examples(
        "bullswarm strategy set-subscription claude-code --reserve 20",
        "bullswarm strategy set-subscription opencode --quota-window monthly "
        "--resets-at 2027-01-15T00:00:00Z",
    ),
)
@click.argument("pool", type=NAME)
@click.option("--quota-window", type=click.Choice(["weekly", "monthly"]), help="What paces it.")
@click.option(
    "--resets-at",
    type=NAME,
    metavar="ISO",
    help="When its window ends, where its provider does "
    "not say; rolled forward by itself. 'none' clears it.",
)
@click.option(
    "--reserve",
    type=PERCENT,
    metavar="PCT",
    help="Keep this share of the pacing window for yourself.",
)
@click.option("--cost-rank", type=Number(min=0), metavar="RANK", help="Lower is cheaper.")
@click.option("--cap", type=click.IntRange(0, 1000), help="Live agents at most; 0 clears it.")
@click.option(
    "--model", type=NAME, metavar="MODEL", help="The model to use there; 'none' clears it."
)
@click.option("--enabled/--disabled", default=None, help="Whether it takes work at all.")
@as_json
@click.pass_context
def set_subscription(ctx: click.Context, /, pool: str, json: bool, **given: Any) -> int:
    """Say what a pool's subscription is like."""
    from bullswarm.store import edits

    app = _app(ctx)
    app.pool(pool)
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise click.UsageError("nothing to set: give --reserve, --resets-at, --quota-window, ...")
    if "resets_at" in changes:
        changes["resets_at"] = _reset(changes["resets_at"])
    if changes.get("cap") == 0:
        changes["cap"] = None
    if changes.get("model") == "none":
        changes["model"] = None
    edits.set_subscription(app.home, pool, changes)
    mine = app.reload().subscriptions.get(pool)
    words = said({k.replace("_", "-"): "cleared" if v is None else v for k, v in changes.items()})
    return _done({"pool": pool, "subscription": complete(mine)}, f"{pool}: {words}", json)


@strategy.command(
    "set-provider",
    epilog=examples(
        "bullswarm strategy set-provider claude-code --home ~/logins/claude-two",
        "bullswarm strategy set-provider qwen --disabled",
    ),
)
@click.argument("provider", type=NAME)
@click.option("--enabled/--disabled", default=None, help="Whether its pools exist at all.")
@click.option(
    "--bin", "bin_", type=NAME, metavar="PATH", help="The binary to run; 'none' clears it."
)
@click.option(
    "--home",
    "homes",
    type=NAME,
    multiple=True,
    metavar="DIR",
    help="A further login home: a pool of its own. Can be given several times; 'none' forgets "
    "those that were added.",
)
@as_json
@click.pass_context
def set_provider(
    ctx: click.Context,
    provider: str,
    enabled: bool | None,
    bin_: str | None,
    homes: tuple[str, ...],
    json: bool,
) -> int:
    """Switch a provider on or off, name its binary, or add login homes."""
    from pathlib import Path

    from bullswarm.errors import UsageError
    from bullswarm.store import edits

    app = _app(ctx)
    known = app.registry.names()
    if provider not in known:
        raise UsageError(f"no provider named {provider!r}; there are: {', '.join(known)}")
    changes: dict[str, Any] = {}
    if enabled is not None:
        changes["enabled"] = enabled
    if bin_ is not None:
        changes["bin"] = None if bin_ == "none" else str(Path(bin_).expanduser().absolute())
    if homes == ("none",):
        changes["homes"] = None
    elif homes:
        paths = [Path(home).expanduser().absolute() for home in homes]
        for path in paths:
            if not path.is_dir():
                raise UsageError(f"--home: {path} is not a folder; log in there first")
        changes["homes"] = [str(path) for path in paths]
    if not changes:
        raise click.UsageError("nothing to set: give --enabled, --disabled, --bin or --home")
    edits.set_provider(app.home, provider, changes)
    now = masked(app.reload().providers.get(provider, {}))
    text = f"{provider}: {said(now) or 'as its connector says'}"
    return _done({"provider": provider, "settings": now}, text, json)


@strategy.command(
    epilog=examples(
        "bullswarm strategy set --on-limit wait",
        "bullswarm strategy set --worker-cap 8 --inflight-penalty 3",
    )
)
@click.option(
    "--on-limit",
    type=OnLimit(),
    help="limits.mode: bench and move on, hand it back, or wait for the reset.",
)
@click.option(
    "--strategy",
    help="The default strategy of 'run'.",
    type=click.Choice(STRATEGIES),
)
@click.option(
    "--prefer",
    type=NAME,
    metavar="A,B,...",
    help="The default preference list; 'none' clears it.",
)
@click.option(
    "--quota-ceiling",
    type=PERCENT,
    metavar="PCT",
    help="The used% above which a pool is skipped (not for pace).",
)
@click.option(
    "--latency",
    type=click.Choice(["fast", "slow", "none"]),
    help="Prefer models of this class; 'none' clears it.",
)
@click.option(
    "--domain",
    "domains",
    multiple=True,
    metavar="WORD=A,B,...",
    help="The preference list of a domain ('run --domain WORD'); WORD=none drops it. Can be given "
    "several times.",
)
@click.option(
    "--admission",
    type=click.Choice(["off", "hold"]),
    help="Whether work is held while no pool has room.",
)
@click.option("--patience", type=PATIENCE, metavar="MINUTES", help="How long work is held at most.")
@click.option(
    "--cap-per-pool", type=click.IntRange(1, 1000), help="Agents a pool while work is held."
)
@click.option(
    "--tail-factor",
    type=Number(min=0, max=100),
    metavar="N",
    help="How often a hold counts the expected spend: tails are long.",
)
@click.option(
    "--worker-cap", type=click.IntRange(1, 1000), help="Live agents of all pools together."
)
@click.option(
    "--inflight-penalty",
    type=PERCENT,
    metavar="POINTS",
    help="Surplus points for each agent in flight; 0 turns it off.",
)
@click.option(
    "--depth-limit", type=click.IntRange(1, 16), help="How deep agents may call bullswarm."
)
@click.option(
    "--caller-name", type=NAME, metavar="NAME", help="The agent that calls us; 'none' clears it."
)
@click.option(
    "--stagger",
    type=click.Choice(["off", "on"]),
    help="Whether 'pools' says when to start accounts whose week waits for its first use.",
)
@as_json
@click.pass_context
def set(ctx: click.Context, /, json: bool, **given: Any) -> int:
    """Set the defaults of every run."""
    from bullswarm.store import edits

    app = _app(ctx)
    domains = dict(_domain(app, text) for text in given.pop("domains"))
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes and not domains:
        raise click.UsageError(
            "nothing to set: 'bullswarm strategy set --help' lists what there is"
        )
    if changes.get("latency") == "none":
        changes["latency"] = None
    if "prefer" in changes:
        words = changes["prefer"]
        changes["prefer"] = () if words == "none" else preferred(app, words)
    if "caller_name" in changes:
        name = changes["caller_name"]
        changes["caller_name"] = None if name == "none" else agent_of(app, name, "--caller-name")
    edits.set_defaults(app.home, changes)
    edits.set_domains(app.home, domains)
    changes |= {f"domain {domain}": names for domain, names in domains.items()}
    words = said({k.replace("_", "-"): v for k, v in changes.items() if v != ()})
    return _done({"settings": masked(complete(app.reload()))}, words or "cleared", json)


@strategy.command(epilog=examples("bullswarm strategy show", "bullswarm strategy show --json"))
@as_json
@click.pass_context
def show(ctx: click.Context, json: bool) -> int:
    """Show everything that is configured, defaults included."""
    app = _app(ctx)
    if json:
        print_json(masked(complete(app.settings)))
        return 0
    s = app.settings
    click.echo(f"limits.mode            {s.limits.mode}")
    click.echo(
        f"policy                 {s.policy.strategy}, ceiling {s.policy.quota_ceiling:g}%"
        + (f", prefer {', '.join(s.policy.prefer)}" if s.policy.prefer else "")
        + (f", {s.policy.latency} models" if s.policy.latency else "")
    )
    for domain, names in s.policy.domains.items():
        click.echo(f"domain                 {domain}: {', '.join(names)}")
    click.echo(
        f"admission              {s.admission.mode or 'by the work'}, "
        f"patience {s.admission.patience_minutes:g} min, "
        f"{s.admission.cap_per_pool} agents a pool"
    )
    click.echo(f"worker cap             {app.worker_cap()}")
    click.echo(f"in-flight penalty      {s.config.inflight_penalty_pct:g} points an agent")
    click.echo(f"depth limit            {s.config.depth_limit}")
    click.echo(f"staggered weeks        {s.config.stagger}")
    click.echo(f"caller                 {s.config.caller_name or 'detected'}")
    for key, pool in s.config.assignments.items():
        click.echo(f"assignment             {key} -> {pool}")
    for pool, sub in s.subscriptions.items():
        click.echo(f"subscription           {pool}: {said(sub)}")
    for name, given in s.providers.items():
        click.echo(f"provider               {name}: {said(masked(given))}")
    for pool, pause in s.paused.items():
        click.echo(
            f"paused                 {pool}" + (f" until {pause.until}" if pause.until else "")
        )
    click.echo(f"file                   {app.home.state_file}")
    return 0


def _app(ctx: click.Context) -> Any:
    from bullswarm.runs.app import App

    return App.open(home=home_of(ctx))


def _domain(app: Any, text: str) -> tuple[str, tuple[str, ...]]:
    domain, equals, names = text.partition("=")
    if not domain.strip() or not equals or not names.strip():
        raise click.BadParameter(
            f"{text!r} is no list of a domain such as sql=A,B", param_hint="--domain"
        )
    return domain.strip(), () if names.strip() == "none" else preferred(app, names, "--domain")


def _key(lane: str | None, effort: str | None) -> str:
    if lane is None and effort is None:
        raise click.UsageError("give --lane, --effort or both")
    return "/".join(word for word in (lane, effort) if word is not None)


def _reset(text: str) -> str | None:
    if text == "none":
        return None
    try:
        moment = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{text!r} is no ISO time such as 2026-01-31T09:00:00Z", param_hint="--resets-at"
        ) from None
    return moment.isoformat().replace("+00:00", "Z")


def _done(document: dict[str, Any], text: str, json: bool) -> int:
    if json:
        print_json(document)
    else:
        click.echo(text)
    return 0
