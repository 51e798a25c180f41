#!/usr/bin/env python3
"""Set up a checkout and run something in it: ``demo``, ``test``, ``lint``, ``bench`` or ``clis``.

Needs only Python 3.11 or newer and git. Everything is installed into ``.venv`` beside this folder;
the pinned agent CLIs that the tests drive come from npm into ``.clis`` where npm is there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
USAGE = "usage: python3 tools/dev.py demo | test [pytest arguments] | lint | bench | clis"


def say(text: str) -> None:
    print(f"dev: {text}", file=sys.stderr, flush=True)


def run(*argv: str | Path, check: bool = True, env: dict[str, str] | None = None) -> int:
    code = subprocess.run([str(a) for a in argv], cwd=ROOT, env=env).returncode
    if check and code:
        say(f"failed with exit {code}: {' '.join(str(a) for a in argv)}")
        raise SystemExit(code)
    return code


def make_venv() -> None:
    if (BIN / "python").exists():
        return
    say("creating .venv")
    if subprocess.run([sys.executable, "-m", "venv", str(VENV)], cwd=ROOT).returncode == 0:
        return
    # Debian's python3 comes without ensurepip unless python3-venv is there.
    shutil.rmtree(VENV, ignore_errors=True)
    if shutil.which("uv"):
        run("uv", "venv", "--seed", "--python", sys.executable, VENV)
        return
    say("this Python can't make a virtual environment: install its venv module")
    say("(Debian, Ubuntu: apt-get install python3-venv), then run this again")
    raise SystemExit(1)


def install(extra: str) -> None:
    """Install the checkout (editable) with one set of extras; quick when nothing changed."""
    make_venv()
    stamp = VENV / f".installed-{extra or 'base'}"
    project = (ROOT / "pyproject.toml").read_bytes()
    want = hashlib.sha256(project + str(ROOT).encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == want:
        return
    say("installing bullswarm" + (f" with what its {extra} needs" if extra else ""))
    target = f".[{extra}]" if extra else "."
    pip = [BIN / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, "-e", target)
    stamp.write_text(want)


def install_clis() -> bool:
    """The pinned agent CLIs from npm; False where there is no npm."""
    if not shutil.which("npm"):
        say("no npm here: the tests that drive the real agent CLIs are left out of this run")
        return False
    run(sys.executable, ROOT / "tools" / "install_clis.py")
    return True


def test(args: list[str]) -> int:
    install("dev")
    real = install_clis()
    selection = [] if real else ["-m", "not real"]
    return run(BIN / "python", "-m", "pytest", *selection, *args, check=False)


def lint() -> int:
    install("dev")
    code = run(BIN / "ruff", "check", ".", check=False)
    code |= run(BIN / "ruff", "format", "--check", ".", check=False)
    return code | run(BIN / "mypy", check=False)


def bench() -> int:
    install("dev")
    code = 0
    for script in sorted((ROOT / "bench").glob("bench_*.py")):
        say(script.name)
        code |= run(BIN / "python", script, "--check", check=False)
    return code


def main(argv: list[str]) -> int:
    if sys.version_info < (3, 11):  # noqa: UP036 (this is where an older Python is told)
        say(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}")
        return 1
    match argv:
        case ["demo", *rest]:
            install("")
            return run(BIN / "bullswarm", "demo", *rest, check=False)
        case ["test", *rest]:
            return test(rest)
        case ["lint"]:
            return lint()
        case ["bench"]:
            return bench()
        case ["clis"]:
            return 0 if install_clis() else 1
    print(USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
