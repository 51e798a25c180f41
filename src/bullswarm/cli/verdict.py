"""A verdict for people: the one line that counts first, then where to read on."""

from __future__ import annotations

import click

from bullswarm.cli.output import coloured, paint, span
from bullswarm.judge.types import Attempt, Verdict


def print_verdict(verdict: Verdict) -> None:
    """Prints the verdict on stdout."""
    on = coloured()
    if verdict.keep_on_claude:
        pool = verdict.pick.pool if verdict.pick else "the caller"
        click.echo(paint(f"keep it in your own session ({pool}): nothing ran", "key", on))
        click.echo(f"  reason   {verdict.reason}")
        return
    kind = f" [{verdict.failure_kind}]" if verdict.failure_kind else ""
    word, tone = ("ok", "good") if verdict.ok else ("not ok", "bad")
    pool = f" on {verdict.pick.pool}" if verdict.pick else ""
    click.echo(paint(f"{word}{kind}{pool}: {verdict.why}", tone, on))
    if verdict.content_usable_despite_exit:
        click.echo(
            paint(
                "  the answer looks complete despite the exit: read it before you re-run",
                "warn",
                on,
            )
        )
    for label, value in _facts(verdict):
        click.echo(f"  {label:<9}{value}")
    for attempt in verdict.attempts if len(verdict.attempts) > 1 else ():
        click.echo(f"  attempt  {_attempt(attempt)}")
    for note in verdict.notes:
        click.echo(f"  note     {note}")


def _facts(verdict: Verdict) -> list[tuple[str, str]]:
    facts = []
    if verdict.reason and verdict.reason not in verdict.why:
        facts.append(("reason", verdict.reason))
    if verdict.out_file:
        facts.append(("answer", verdict.out_file))
    if verdict.stream_file and not verdict.ok:
        facts.append(("capture", verdict.stream_file))
    changes = verdict.changes
    if changes is not None and changes.any:
        paths = [*changes.created, *changes.modified, *(f"-{p}" for p in changes.deleted)]
        more = f" and {len(paths) - 8} more" if len(paths) > 8 else ""
        text = ", ".join(paths[:8]) + more
        if changes.commits:
            text += f"{', ' if text else ''}{len(changes.commits)} new commit(s)"
        facts.append(("changed", text))
    cost = [span(verdict.wall_s)]
    usage = verdict.usage
    if usage.input_tokens is not None or usage.output_tokens is not None:
        cost.append(f"{_n(usage.input_tokens)} tokens in, {_n(usage.output_tokens)} out")
    if usage.cost_usd is not None:
        cost.append(f"${usage.cost_usd:.4f} by the CLI's own account")
    facts.append(("cost", ", ".join(cost)))
    if verdict.retry_at:
        facts.append(("retry at", verdict.retry_at))
    if verdict.short_id:
        facts.append(("run", f"{verdict.short_id} (bullswarm explain {verdict.short_id})"))
    return facts


def _n(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _attempt(attempt: Attempt) -> str:
    kind = f" [{attempt.failure_kind}]" if attempt.failure_kind else ""
    return f"{attempt.n} {attempt.pool} {span(attempt.wall_s)}: {attempt.why}{kind}"
