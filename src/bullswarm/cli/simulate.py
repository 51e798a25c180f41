"""``bullswarm simulate``: what a policy would do with a fleet and its work, without paying."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

from bullswarm.cli.common import NAME, Number, as_json, examples, home_of
from bullswarm.cli.output import note, print_json, span, table
from bullswarm.errors import BullswarmError, UsageError

EVERY_S = 2.0
"""How often progress is told where stderr is no terminal."""


@click.command(
    epilog=examples(
        "bullswarm simulate --list",
        "bullswarm simulate tight --seeds 3",
        "bullswarm simulate my-fleet.yaml --policy pace --plot windows.svg",
        "bullswarm simulate --from-history",
    )
)
@click.argument("fleet", type=NAME, required=False)
@click.option("--list", "listed", is_flag=True, help="List the built-in fleets and the policies.")
@click.option(
    "--from-history", is_flag=True, help="Replay this home's own records instead of a fleet."
)
@click.option(
    "--policy",
    "policies",
    type=NAME,
    multiple=True,
    metavar="NAME",
    help="A strategy or a baseline; more than one, or 'all' (default).",
)
@click.option(
    "--seeds", type=click.IntRange(1, 1000), metavar="N", help="Seeds 1 to N (default: 3)."
)
@click.option("--seed", type=click.IntRange(0, 2**31), metavar="N", help="This seed only.")
@click.option(
    "--days",
    type=Number(min=0.1, max=366),
    metavar="DAYS",
    help="How long (default: the fleet's own days; of a history, the newest part).",
)
@click.option(
    "--admission",
    type=click.Choice(["hold", "off"]),
    help="Only with, or without, admission (default: strategies both ways, baselines without).",
)
@click.option("--stagger", is_flag=True, help="Show each policy with staggered weeks, too.")
@click.option(
    "--plot",
    type=click.Path(path_type=Path),
    metavar="FILE.svg",
    help="Draw the windows over time of the first policy and seed.",
)
@click.option("--no-bound", is_flag=True, help="Leave the optimum out.")
@click.option(
    "--processes", type=click.IntRange(1, 256), metavar="N", help="Side by side (default: cores)."
)
@as_json
@click.pass_context
def simulate(
    ctx: click.Context,
    fleet: str | None,
    listed: bool,
    from_history: bool,
    policies: tuple[str, ...],
    seeds: int | None,
    seed: int | None,
    days: float | None,
    admission: str | None,
    stagger: bool,
    plot: Path | None,
    no_bound: bool,
    processes: int | None,
    json: bool,
) -> int:
    """Simulate FLEET (a built-in one, or a YAML file of your own) under routing policies.

    The simulation decides with the very functions that route real work. The optimum is a bound
    that no policy can beat, computed with all known ahead. The same seed gives the same answer.
    """
    if listed:
        return _list(json)
    names = _policies(policies, admission)
    subject = _subject(ctx, fleet, from_history, days)
    if from_history and (seeds is not None or seed is not None):
        raise UsageError("--seeds, --seed: a history happened once; leave them out")
    if seeds is not None and seed is not None:
        raise UsageError("--seeds, --seed: give one of them")
    if plot is not None:
        _check_plot(plot)
    from bullswarm.simulate.report import compare

    told = _Told(quiet=json and not sys.stderr.isatty())
    chosen = (seed,) if seed is not None else tuple(range(1, (seeds or 3) + 1))
    try:
        report = compare(
            subject,
            names,
            chosen,
            stagger=stagger,
            with_bound=not no_bound,
            processes=processes,
            on_done=told,
        )
    finally:
        told.end()
    if plot is not None:
        _plot(plot, subject, names[0], report.seeds[0])
        note(f"{plot}: {names[0]}, seed {report.seeds[0]}")
    if json:
        print_json(report)
        return 0
    _print(report)
    return 0


def _list(json: bool) -> int:
    from bullswarm.routing.types import STRATEGIES
    from bullswarm.simulate.fleets import FLEETS
    from bullswarm.simulate.policies import BASELINES, HOLD

    if json:
        print_json(
            {
                "fleets": list(FLEETS.values()),
                "strategies": STRATEGIES,
                "baselines": tuple(BASELINES),
            }
        )
        return 0
    for line in table(
        (
            [(f.name, "key"), (str(len(f.pools)), None), (f"{f.days:g}", None), (f.about, None)]
            for f in FLEETS.values()
        ),
        ("FLEET", "POOLS", "DAYS", "WHAT"),
    ):
        click.echo(line)
    click.echo(f"\nstrategies: {', '.join(STRATEGIES)}")
    click.echo(f"baselines:  {', '.join(BASELINES)}")
    click.echo(f"each also with admission: pace{HOLD}")
    return 0


def _policies(given: tuple[str, ...], admission: str | None) -> tuple[str, ...]:
    """The policies to run, by their full names. Raises ``UsageError`` for an unknown one."""
    from bullswarm.simulate.policies import BASELINES, HOLD, USUAL, check

    if not given or "all" in given:
        if admission is None:
            return USUAL
        every = dict.fromkeys(name.removesuffix(HOLD) for name in USUAL)
        return tuple(name + HOLD if admission == "hold" else name for name in every)
    names: list[str] = []
    for name in given:
        check(name)
        plain = name.removesuffix(HOLD)
        if name != plain:
            if admission == "off":
                raise UsageError(f"--policy {name} --admission off: which of them?")
            names.append(name)
        elif admission == "hold":
            names.append(plain + HOLD)
        elif admission == "off" or plain in BASELINES:
            names.append(plain)
        else:
            names += [plain + HOLD, plain]
    return tuple(dict.fromkeys(names))


def _subject(ctx: click.Context, fleet: str | None, from_history: bool, days: float | None) -> Any:
    """What is simulated: a fleet or a history. Raises ``UsageError``."""
    if from_history:
        if fleet is not None:
            raise UsageError("FLEET, --from-history: give one of them")
        from bullswarm.runs.app import App
        from bullswarm.simulate.home import home_history

        return home_history(App.open(home=home_of(ctx)), days)
    from bullswarm.simulate.fleets import FLEETS, built_in

    if fleet is None:
        raise UsageError(
            f"which fleet? Give one of {', '.join(FLEETS)}, the path of a YAML file, or "
            "--from-history"
        )
    if fleet in FLEETS:
        found = FLEETS[fleet]
    elif fleet.endswith((".yaml", ".yml", ".json")) or "/" in fleet or Path(fleet).exists():
        from bullswarm.simulate.reading import read_fleet

        found = read_fleet(fleet)
    else:
        found = built_in(fleet)
    if days is None:
        return found
    from msgspec.structs import replace

    return replace(found, days=days)


def _check_plot(path: Path) -> None:
    if path.suffix.lower() != ".svg":
        raise UsageError(f"--plot {path}: the picture is an SVG; name it so (windows.svg)")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--plot {path}: there is no folder {path.absolute().parent}")


def _plot(path: Path, subject: Any, policy: str, seed: int) -> None:
    from bullswarm.simulate.history import History
    from bullswarm.simulate.picture import svg
    from bullswarm.simulate.scenario import draw
    from bullswarm.simulate.types import FleetSpec
    from bullswarm.simulate.world import simulate as run

    if isinstance(subject, FleetSpec):
        scenario = draw(subject, seed)
    else:
        scenario = subject.scenario if isinstance(subject, History) else subject
    outcome = run(scenario, policy, trace=True)
    text = svg(scenario, outcome, f"{scenario.fleet.name}, {policy}, seed {seed}")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BullswarmError(f"--plot {path}: {error.strerror or error}") from error


class _Told:
    """Progress on stderr: one line that is written over on a terminal, else one now and then."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.live = sys.stderr.isatty()
        self.began = self.last = time.monotonic()
        self.open = False

    def __call__(self, done: int, total: int, what: str) -> None:
        now = time.monotonic()
        if self.quiet or (not self.live and now - self.last < EVERY_S):
            return
        self.last = now
        left = (now - self.began) / done * (total - done)
        text = f"{done} of {total} ({what}), about {span(left)} left"
        if self.live:
            click.echo(f"\r\033[K{text}", err=True, nl=False)
            self.open = True
        elif done < total:
            note(text)

    def end(self) -> None:
        if self.open:
            click.echo("\r\033[K", err=True, nl=False)


def _print(report: Any) -> None:
    seeds = len(report.seeds)
    what = f"{report.fleet}: {report.about}" if report.about else report.fleet
    click.echo(f"{what}; {report.days:.3g} days, {seeds} seed{'s' if seeds > 1 else ''}")
    rows = [*([report.recorded] if report.recorded else []), *report.policies]
    header = (
        "POLICY",
        "ADMISSION",
        "HARVESTED",
        "DONE",
        "LOST/100",
        "WASTED",
        "WAIT MEDIAN",
        "WAIT 95TH",
        "COST",
    )
    for line in table(map(_row, rows), header):
        click.echo(line)
    if report.bound is None:
        click.echo("HARVESTED is completed worker-minutes a seed, for want of a bound")
    else:
        click.echo(
            "HARVESTED is completed work as a share of an optimum that knows the future; LOST/100 "
            "attempts that died on a limit, for 100 tasks"
        )
    for text in report.unknown:
        click.echo(f"  not known: {text}")


def _row(row: Any) -> list[tuple[str, str | None]]:
    share = row.harvested_pct
    return [
        (row.policy + (" (staggered)" if row.staggered else ""), "key"),
        (row.admission, None),
        (f"{share:.1f}%" if share is not None else f"{row.harvested:.0f}", None),
        (f"{row.done}/{row.tasks}", None),
        (f"{row.lost_per100:.2f}", "good" if row.lost_per100 < 1.0 else "warn"),
        (f"{row.wasted_pct:.1f}%", None),
        (span(row.wait_median_minutes * 60), None),
        (span(row.wait_p95_minutes * 60), None),
        (f"{row.cost:.2f}" if row.cost is not None else "?", None),
    ]
