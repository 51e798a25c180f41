"""Is admission worth having? Twenty seeds a fleet, the default policy against every other.

``--check`` fails where the default policy with admission harvests less than it must, loses an
attempt or more per 100 tasks to a limit, or does not beat every baseline.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from bullswarm.simulate import FLEETS, compare
from bullswarm.simulate.policies import BASELINES, DEFAULT, USUAL

LEAST_PCT = {"tight": 97.0, "overloaded": 91.0}
MOST_LOST = 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--fleet", choices=list(FLEETS), action="append")
    parser.add_argument("--all", action="store_true", help="every strategy, not only the default")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    policies = USUAL if asked.all else (DEFAULT, "pace", *BASELINES)
    wrong: list[str] = []
    for name in asked.fleet or LEAST_PCT:
        began = time.monotonic()
        report = compare(FLEETS[name], policies, range(1, asked.seeds + 1))
        print(f"{name}: {asked.seeds} seeds in {time.monotonic() - began:.0f} s", flush=True)
        for row in report.policies:
            print(
                f"  {row.policy:14} {row.admission:4}  harvested {row.harvested_pct:6.2f}% "
                f"(worst seed {row.harvested_pct_min:6.2f}%)  lost {row.lost_per100:6.2f} per 100  "
                f"wasted {row.wasted_pct:5.1f}%"
            )
        wrong += faults(name, report)
    for line in wrong:
        print(f"FAIL {line}")
    return 1 if asked.check and wrong else 0


def faults(name: str, report: Any) -> list[str]:
    """What the default policy with admission fails to keep."""
    held, *others = report.policies
    found = []
    least = LEAST_PCT.get(name)
    if least is not None and held.harvested_pct < least:
        found.append(f"{name}: harvested {held.harvested_pct:.2f}%, not {least:g}%")
    if held.lost_per100 >= MOST_LOST:
        found.append(f"{name}: lost {held.lost_per100:.2f} attempts per 100 tasks")
    found += [
        f"{name}: {row.policy} harvested {row.harvested_pct:.2f}%"
        for row in others
        if row.policy in BASELINES and row.harvested_pct >= held.harvested_pct
    ]
    return found


if __name__ == "__main__":
    sys.exit(main())
