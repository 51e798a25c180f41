"""``bullswarm provider``: list, validate, scaffold and probe providers."""

from __future__ import annotations

from typing import Any

import click

from bullswarm.cli.common import NAME, Group, as_json, examples, home_of
from bullswarm.cli.output import note, print_json, table


@click.group(
    cls=Group, epilog=examples("bullswarm provider list", "bullswarm provider probe claude-code")
)
def provider() -> None:
    """List, validate, scaffold and probe providers. A provider is a folder that says how to launch
    an agent CLI, read its events and read its meter."""


@provider.command("list", epilog=examples("bullswarm provider list"))
@as_json
@click.pass_context
def list_(ctx: click.Context, json: bool) -> int:
    """Show what loaded, from where, and with which pools."""
    app = _app(ctx)
    rows = app.registry.listing(app.env)
    faults = app.registry.faults()
    if json:
        print_json({"providers": rows, "faults": faults})
        return 0

    def row(one: Any) -> list[tuple[str, str | None]]:
        return [
            (one.name, "key"),
            (one.origin, None),
            (one.command, None),
            (", ".join(one.pools) or "-", None),
            (one.state, "good" if one.state == "ready" else "warn"),
        ]

    for line in table(map(row, rows), ("PROVIDER", "FROM", "COMMAND", "POOLS", "STATE")):
        click.echo(line)
    for fault in faults:
        note(f"{fault.provider}: {fault.message}")
    return 0


@provider.command(
    epilog=examples("bullswarm provider validate mycli", "bullswarm provider validate ./mycli")
)
@click.argument("path", type=NAME)
@as_json
@click.pass_context
def validate(ctx: click.Context, path: str, json: bool) -> int:
    """Check a connector (a file, a provider's folder, or a name); every fault at once."""
    from bullswarm.providers.validate import validate_path

    faults = validate_path(path, _app(ctx).home.providers)
    if json:
        print_json({"ok": not faults, "faults": faults})
    elif not faults:
        click.echo(f"{path}: valid")
    else:
        for fault in faults:
            click.echo(f"{fault.path}: {fault.message}")
    return 2 if faults else 0


@provider.command(epilog=examples("bullswarm provider scaffold mycli"))
@click.argument("name", type=NAME)
@as_json
@click.pass_context
def scaffold(ctx: click.Context, name: str, json: bool) -> int:
    """Write a new provider's folder into the home, ready to be filled in."""
    from bullswarm.providers.scaffold import scaffold as write

    folder = write(_app(ctx).home.providers, name)
    if json:
        print_json({"folder": str(folder)})
    else:
        click.echo(f"{folder}: edit connector.toml, then 'bullswarm provider validate {name}'")
    return 0


@provider.command(epilog=examples("bullswarm provider probe claude-code"))
@click.argument("pool", type=NAME)
@as_json
@click.pass_context
def probe(ctx: click.Context, pool: str, json: bool) -> int:
    """Look whether a pool could work: its binary, its login, its meter. Never spends a prompt."""
    from bullswarm.providers.probe import probe as look

    app = _app(ctx)
    entry, account = app.pool(pool)
    report = look(entry, account, app.env, app.now(), app.settings.providers)
    if json:
        print_json(report)
    else:
        for line in report.findings:
            click.echo(f"{'ok ' if line.ok else '!! '} {line.what}: {line.text}")
    return 0 if report.ok else 1


def _app(ctx: click.Context) -> Any:
    from bullswarm.runs.app import App

    return App.open(home=home_of(ctx))
