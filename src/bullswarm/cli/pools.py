"""``bullswarm pools``: what every pool has left, and pausing, resuming and releasing one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import click

from bullswarm.cli.common import NAME, Group, as_json, examples, home_of
from bullswarm.cli.output import note, paint, percent, print_json, signed, span, table, when

UNITS = {"m": "minutes", "h": "hours", "d": "days"}


@click.group(
    cls=Group,
    invoke_without_command=True,
    epilog=examples(
        "bullswarm pools",
        "bullswarm pools --lane analyze --json",
        "bullswarm pools pause claude-code --until 2h",
    ),
)
@click.option("--fresh", is_flag=True, help="Read every meter now, cache or not.")
@click.option(
    "--lane",
    type=click.Choice(["analyze", "build", "chore"]),
    default="build",
    show_default=True,
    help="Rank the pools for this kind of work.",
)
@as_json
@click.pass_context
def pools(ctx: click.Context, fresh: bool, lane: str, json: bool) -> int:
    """Show what every pool has left, best first.

    surplus= is the elapsed share of the pacing window minus the used share, in points: above zero,
    quota is piling up unspent. 5h= is the 5-hour reading and where it is heading. '?' is unknown,
    '-' unmetered; neither is ever shown as 0.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    from bullswarm.runs.app import App
    from bullswarm.runs.overview import overview

    app = App.open(home=home_of(ctx))
    rows = overview(app, lane=lane, fresh=fresh)
    if json:
        print_json({"at": app.now(), "lane": lane, "pools": rows, "faults": app.registry.faults()})
        return 0
    now = app.now()
    if all((row.why_not or "").startswith("unavailable") for row in rows):
        note(
            "no pool can work yet: install an agent CLI (claude, codex, ...) and log in to it, "
            "or see 'bullswarm demo'"
        )
    if rows:
        header = (
            "POOL",
            "COST",
            "LANES",
            "METER",
            "SURPLUS",
            "INFLIGHT",
            "5-HOUR",
            "RUNWAY",
            "STATE",
        )
        for line in table((_row(row, now) for row in rows), header):
            click.echo(line)
    for row in rows:
        for text in row.notes:
            click.echo(paint(f"  {row.pool}: {text}", "dim", False))
    for fault in app.registry.faults():
        note(f"provider {fault.provider}: {fault.message}")
    return 0


def _row(row: Any, now: datetime) -> list[tuple[str, str | None]]:
    five = percent(row.five_hour_pct)
    if row.five_hour_pct is not None and row.projected_five_hour_pct is not None:
        ahead = percent(row.projected_five_hour_pct)
        if row.inflight and ahead != five:
            five = f"{five}->{ahead}"
    if row.five_hour_pct is None:
        five = "-" if not row.metered else "?"
    surplus = row.surplus
    return [
        (row.pool, "key"),
        (f"cost={row.cost_rank:g}", None),
        (",".join(row.lanes), None),
        (_meter(row, now), "dim" if row.source == "none" else None),
        (f"surplus={signed(surplus)}", "good" if (surplus or 0) > 0 else None),
        (f"inflight={row.inflight}", None),
        (f"5h={five}", "warn" if row.near_limit else None),
        (_runway(row, now), "warn" if row.dry_first else None),
        (row.state, _tone(row)),
    ]


def _meter(row: Any, now: datetime) -> str:
    if row.source == "none":
        return f"{row.pacing or 'unmetered'}: no meter" if row.pacing else "unmetered"
    word = row.source if row.source != "cache" else f"cache {span(row.age_s)}"
    used = f" {percent(row.used_pct)} used" if row.used_pct is not None else " ? used"
    reset = f", resets {when(row.resets_at, now)}" if row.resets_at else ""
    mark = ", declared-reset" if row.declared_reset else ""
    return f"{row.pacing or 'window'}{used}{reset} ({word}{mark})"


def _runway(row: Any, now: datetime) -> str:
    if row.dry_at is None:
        return "-"
    word = f"dry {when(row.dry_at, now)}"
    return f"{word} before reset" if row.dry_first else f"{word} after reset"


def _tone(row: Any) -> str | None:
    if row.state == "ok" or row.state.startswith(("ready", "urgent")):
        return "good"
    return "warn" if row.eligible else "bad"


@pools.command(
    epilog=examples(
        "bullswarm pools pause claude-code --until 2h",
        "bullswarm pools pause codex --until 2026-12-24T18:00",
    )
)
@click.argument("pool", type=NAME)
@click.option(
    "--until",
    type=NAME,
    metavar="TIME",
    help="An ISO time, or 2h, 30m, 3d; default: until resumed.",
)
@as_json
@click.pass_context
def pause(ctx: click.Context, pool: str, until: str | None, json: bool) -> int:
    """Keep new work off a pool. What runs there goes on."""
    from bullswarm.runs.app import App
    from bullswarm.store.edits import pause as pause_pool

    app = App.open(home=home_of(ctx))
    app.pool(pool)
    moment = parse_until(until, app.now()) if until else None
    pause_pool(app.home, pool, moment)
    if json:
        print_json({"pool": pool, "paused": True, "until": moment})
    else:
        end = f"until {when(moment, app.now())}" if moment else "until 'bullswarm pools resume'"
        click.echo(f"{pool} is paused {end}")
    return 0


@pools.command(epilog=examples("bullswarm pools resume claude-code"))
@click.argument("pool", type=NAME)
@as_json
@click.pass_context
def resume(ctx: click.Context, pool: str, json: bool) -> int:
    """Let a paused pool take work again."""
    from bullswarm.runs.app import App
    from bullswarm.store.edits import resume as resume_pool

    app = App.open(home=home_of(ctx))
    app.pool(pool)
    was = resume_pool(app.home, pool)
    if json:
        print_json({"pool": pool, "paused": False, "wasPaused": was})
    else:
        click.echo(f"{pool} takes work again" if was else f"{pool} was not paused")
    return 0


@pools.command(epilog=examples("bullswarm pools release claude-code"))
@click.argument("pool", type=NAME)
@as_json
@click.pass_context
def release(ctx: click.Context, pool: str, json: bool) -> int:
    """Lift every bench of a pool by hand: the next pick can choose it."""
    from bullswarm.runs.app import App

    app = App.open(home=home_of(ctx))
    app.pool(pool)
    lifted = app.store.release(pool)
    if json:
        print_json({"pool": pool, "lifted": lifted})
    else:
        click.echo(f"{pool}: {lifted} bench(es) lifted" if lifted else f"{pool} was not benched")
    return 0


def parse_until(text: str, now: datetime) -> datetime:
    """An ISO time (local where it names no zone), or a span such as ``90m``, ``2h``, ``3d``."""
    word = text.strip().lower()
    try:
        # A span is digits with a point at most; float() takes much more than people mean.
        number = word[:-1]
        if word[-1:] in UNITS and number.isascii() and number.replace(".", "", 1).isdigit():
            moment = now + timedelta(**{UNITS[word[-1]]: float(number)})
        else:
            moment = datetime.fromisoformat(text.strip()).astimezone(UTC)
    except OverflowError:
        raise click.BadParameter(f"{text!r} is too far away", param_hint="--until") from None
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither an ISO time (2026-01-31T09:00) nor a span (90m, 2h, 3d)",
            param_hint="--until",
        ) from None
    if moment <= now:
        raise click.BadParameter(f"{text!r} is not in the future", param_hint="--until")
    return moment
