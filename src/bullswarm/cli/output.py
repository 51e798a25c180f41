"""How facts are printed: JSON for programs, aligned columns for people, colour on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import click
import msgspec

COLOURS = {"good": "green", "warn": "yellow", "bad": "red", "dim": "bright_black", "key": "cyan"}


def print_json(value: Any) -> None:
    """One indented JSON document on stdout."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2)
    click.echo(text.decode())


def complete(value: Any) -> Any:
    """A value with every field it has, those at their defaults too: a program that reads settings
    must not need to know the defaults."""
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.fields(value)
        return {f.encode_name: complete(getattr(value, f.name)) for f in fields}
    if isinstance(value, dict):
        return {key: complete(item) for key, item in value.items()}
    return value


def masked(settings: Any) -> Any:
    """Settings as they may be shown: the values of variables that are set for a provider's
    workers may be keys, and are left out."""
    if isinstance(settings, dict):
        return {
            key: dict.fromkeys(item, "(set)")
            if key == "env" and isinstance(item, dict)
            else masked(item)
            for key, item in settings.items()
        }
    return settings


def said(value: Any) -> str:
    """Settings in one line: ``enabled=true, homes=/a, /b``; what is unset is left out."""

    def word(item: Any) -> str:
        if isinstance(item, bool):
            return "true" if item else "false"
        if isinstance(item, (list, tuple)):
            return ", ".join(map(word, item))
        if isinstance(item, dict):
            return " ".join(f"{key}:{word(one)}" for key, one in item.items())
        return str(item)

    items = msgspec.to_builtins(value).items()
    return ", ".join(f"{key}={word(item)}" for key, item in items if item is not None)


def coloured() -> bool:
    """Whether stdout is a terminal that wants colour (NO_COLOR is honoured)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def paint(text: str, tone: str | None, on: bool) -> str:
    """``text`` in one of the named tones, or as it is."""
    return click.style(text, fg=COLOURS[tone]) if on and tone else text


def table(rows: Iterable[Sequence[tuple[str, str | None]]], header: Sequence[str]) -> list[str]:
    """Lines of padded columns; each cell is (text, tone). The last column is never padded."""
    body = [list(row) for row in rows]
    widths = [len(title) for title in header]
    for row in body:
        for index, (text, _) in enumerate(row):
            widths[index] = max(widths[index], len(text))
    on = coloured()
    last = len(header) - 1

    def pad(text: str, index: int) -> str:
        return text if index == last else text.ljust(widths[index])

    lines = ["  ".join(paint(pad(title, i), "dim", on) for i, title in enumerate(header)).rstrip()]
    for row in body:
        cells = [paint(pad(text, i), tone, on) for i, (text, tone) in enumerate(row)]
        lines.append("  ".join(cells).rstrip())
    return lines


def percent(value: float | None) -> str:
    """``42%``; an unknown value is ``?``, never 0."""
    return "?" if value is None else f"{value:.0f}%"


def signed(value: float | None) -> str:
    """``+12.3``; an unmetered or unknown value is ``-``."""
    return "-" if value is None else f"{value:+.1f}"


def when(moment: datetime | None, now: datetime) -> str:
    """A moment in local time, as short as it is unambiguous."""
    if moment is None:
        return "?"
    local, here = moment.astimezone(), now.astimezone()
    if local.date() == here.date():
        return local.strftime("%H:%M")
    if abs(local - here) < timedelta(days=6):
        return local.strftime("%a %H:%M")
    if local.year == here.year:
        return f"{local.day} {local.strftime('%b %H:%M')}"
    return local.strftime("%Y-%m-%d %H:%M")


def span(seconds: float | None) -> str:
    """``45 s``, ``12 min``, ``3 h 05``, ``2 d 4 h``; unknown is ``?``."""
    if seconds is None:
        return "?"
    if seconds < 0:
        return "0 s"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest:02d}"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"


def note(text: str) -> None:
    """A line for people on stderr; stdout stays clean for what was asked for."""
    click.echo(text, err=True)
