#!/usr/bin/env python3
"""Install the pinned agent CLIs from npm into ``.clis``, each in a prefix of its own, side by side.

Nothing is done where the right versions are there already. ``BULLSWARM_TEST_CLIS`` names another
folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINNED = {
    "claude-code": ("@anthropic-ai/claude-code", "2.1.197"),
    "codex": ("@openai/codex", "0.171.0"),
    "opencode-ai": ("opencode-ai", "1.18.33"),
    "gemini-cli": ("@google/gemini-cli", "0.61.0"),
    "qwen-code": ("@qwen-code/qwen-code", "0.15.10"),
}
TRIES = 3


def installed(prefix: Path, package: str) -> str | None:
    """The version that is there, or None."""
    manifest = prefix / "node_modules" / package / "package.json"
    try:
        version: str = json.loads(manifest.read_text())["version"]
    except (OSError, ValueError, KeyError):
        return None
    return version


def install(base: Path, name: str) -> str | None:
    """Install one CLI; None when it is there, else npm's last words."""
    package, version = PINNED[name]
    prefix = base / name
    if installed(prefix, package) == version:
        return None
    prefix.mkdir(parents=True, exist_ok=True)
    (prefix / "package.json").write_text('{"private": true}\n')
    command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"]
    said = ""
    for _ in range(TRIES):
        done = subprocess.run(
            [*command, f"{package}@{version}"], cwd=prefix, capture_output=True, text=True
        )
        if done.returncode == 0 and installed(prefix, package) == version:
            print(f"clis: {name} {version}", file=sys.stderr, flush=True)
            return None
        said = (done.stderr or done.stdout).strip()
    return said or "npm gave no reason"


def main() -> int:
    base = Path(os.environ.get("BULLSWARM_TEST_CLIS") or ROOT / ".clis")
    base.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(len(PINNED)) as pool:
        problems = dict(zip(PINNED, pool.map(lambda n: install(base, n), PINNED), strict=True))
    for name, said in problems.items():
        if said is not None:
            print(f"clis: {name} could not be installed: {said}", file=sys.stderr)
    return 1 if any(said is not None for said in problems.values()) else 0


if __name__ == "__main__":
    raise SystemExit(main())
