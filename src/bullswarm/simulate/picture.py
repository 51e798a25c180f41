"""A picture of one simulation: every pool's windows over time, attempts lost, work in line. SVG,
written by hand: a few lines and rectangles need no library."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from bullswarm.simulate.outcome import Outcome
from bullswarm.simulate.types import DAY, Scenario

WIDTH, LEFT, RIGHT = 1000.0, 130.0, 20.0
TOP, ROW, GAP, FOOT = 64.0, 70.0, 14.0, 40.0
INK, FAINT, PACING, FIVE, LOST, LINE = (
    "#24292f", "#d0d7de", "#0969da", "#bf8700", "#cf222e", "#8250df",
)  # fmt: skip
MOST_POINTS = 1000
"""Of a curve's points so many are drawn, the highest of each stretch: peaks stay."""


def svg(scenario: Scenario, outcome: Outcome, title: str) -> str:
    """The picture as an SVG document. ``outcome`` must have been made with ``trace``."""
    trace = outcome.trace
    if trace is None:
        raise ValueError("the outcome has no trace")
    pools = [pool.name for pool in scenario.fleet.pools]
    height = TOP + (len(pools) + 1) * (ROW + GAP) + FOOT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:g}" height="{height:g}" '
        f'viewBox="0 0 {WIDTH:g} {height:g}" font-family="sans-serif" font-size="12" '
        f'fill="{INK}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH:g}" height="{height:g}" fill="#ffffff"/>',
        f'<text x="16" y="22" font-size="15">{escape(title)}</text>',
        _legend(),
    ]
    lost: dict[str, list[float]] = {}
    for at, pool in trace.lost:
        lost.setdefault(pool, []).append(at)
    for n, pool in enumerate(pools):
        y = TOP + n * (ROW + GAP)
        points = trace.used.get(pool, [])
        parts.append(_frame(pool, y, "100%"))
        parts.append(
            _curve([(at, five) for at, five, _ in points], 100.0, y, scenario.horizon, FIVE, 1.0)
        )
        parts.append(
            _curve([(at, used) for at, _, used in points], 100.0, y, scenario.horizon, PACING, 1.8)
        )
        parts.extend(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y:g}" y2="{y + 9:g}" stroke="{LOST}" '
            'stroke-width="1.5"/>'
            for x in dict.fromkeys(_x(at, scenario.horizon) for at in lost.get(pool, ()))
        )
    y = TOP + len(pools) * (ROW + GAP)
    most = max((count for _, count in trace.waiting), default=0)
    parts.append(_frame("waiting", y, str(most)))
    waiting: list[tuple[float, float | None]] = [(at, float(c)) for at, c in trace.waiting]
    parts.append(_curve(waiting, float(max(most, 1)), y, scenario.horizon, LINE, 1.4))
    parts.append(_days(scenario.horizon, y + ROW))
    parts.append("</svg>")
    return "\n".join(part for part in parts if part) + "\n"


def _x(at: float, horizon: float) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, at / horizon), 1)


def _legend() -> str:
    parts = []
    x = LEFT
    for words, colour in (
        ("weekly or monthly window", PACING),
        ("5-hour window", FIVE),
        ("attempts lost to a limit", LOST),
        ("tasks waiting", LINE),
    ):
        parts.append(f'<rect x="{x:g}" y="36" width="14" height="4" fill="{colour}"/>')
        parts.append(f'<text x="{x + 20:g}" y="42">{words}</text>')
        x += 44 + 6.6 * len(words)
    return "\n".join(parts)


def _frame(name: str, y: float, top: str) -> str:
    shown = name if len(name) <= 15 else name[:14] + "…"
    return (
        f'<rect x="{LEFT:g}" y="{y:g}" width="{WIDTH - LEFT - RIGHT:g}" height="{ROW:g}" '
        f'fill="none" stroke="{FAINT}"/>\n'
        f'<text x="16" y="{y + ROW / 2 + 4:g}">{escape(shown)}</text>\n'
        f'<text x="{LEFT - 6:g}" y="{y + 10:g}" text-anchor="end" font-size="9">{top}</text>'
    )


def _curve(
    points: Sequence[tuple[float, float | None]],
    top: float,
    y: float,
    horizon: float,
    colour: str,
    width: float,
) -> str:
    known = [(at, value) for at, value in points if value is not None]
    if not known:
        return ""
    step = max(1, len(known) // MOST_POINTS)
    thin = [max(known[i : i + step], key=lambda p: p[1]) for i in range(0, len(known), step)]
    where = " ".join(
        f"{_x(at, horizon):g},{y + ROW * (1.0 - min(1.0, value / top)):.1f}" for at, value in thin
    )
    return f'<polyline points="{where}" fill="none" stroke="{colour}" stroke-width="{width:g}"/>'


def _days(horizon: float, y: float) -> str:
    days = horizon / DAY
    step = 1 if days <= 14 else 7 if days <= 120 else 30
    parts = []
    for day in range(0, int(days) + 1, step):
        x = _x(day * DAY, horizon)
        parts.append(
            f'<line x1="{x:g}" x2="{x:g}" y1="{TOP:g}" y2="{y + 5:g}" stroke="{FAINT}" '
            'stroke-dasharray="2 4"/>'
        )
        parts.append(f'<text x="{x:g}" y="{y + 18:g}" text-anchor="middle">day {day}</text>')
    return "\n".join(parts)
