"""Any words at all: an exit code and a sentence, never a traceback."""

from __future__ import annotations

import json
import os
from typing import Any

import click
from clikit import SAY, Cli, command, commands
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

EXAMPLES = int(os.environ.get("BULLSWARM_TEST_EXAMPLES", "250"))
PATHS = [path for path in commands() if path[:1] != ("demo",)]
FLAGS = sorted(
    {
        name
        for path in PATHS
        for parameter in command(path).params
        if isinstance(parameter, click.Option)
        for name in parameter.opts + parameter.secondary_opts
    }
)
VALUES = [
    *("analyze", "build", "echo:a", "echo:b", "echo", "claude", "codex", "none", "all", "-", "--"),
    *("0", "1", "-1", "1e9", "nan", "inf", "2h", "99999999999d", "2027-01-15T00:00:00Z"),
    *("0001-01-01", "9999-12-31T23:59:59-23:59", "quarantine", "wait", "hold", "pace", "weekly"),
    *(".", "..", "/", "/dev/null", "/dev/full", "a" * 5000, "a/" * 2000, "", " ", "\n", "*", "%s"),
    *("{}", "$HOME", "~", "~nobody-at-all/x", SAY, "\udcff\udcfe", "ß✓\U0001f402", "\ud800"),
]
words = st.one_of(
    st.sampled_from(FLAGS),
    st.sampled_from(VALUES),
    st.text(st.characters(exclude_characters="\0", exclude_categories=()), min_size=0, max_size=12),
    st.builds("{}={}".format, st.sampled_from(FLAGS), st.sampled_from(VALUES)),
)


def fitting(parameter: click.Parameter) -> st.SearchStrategy[str]:
    """Values that could be right, and now and then one that is not."""
    kind = parameter.type
    if isinstance(kind, click.Choice):
        good: st.SearchStrategy[str] = st.sampled_from(list(kind.choices))
    elif isinstance(kind, click.IntRange | click.FloatRange):
        low, high = kind.min or 0, min(kind.max or 10_000, 10_000)
        numbers = st.integers(int(low), int(high))
        good = numbers.map(str) if isinstance(kind, click.IntRange) else numbers.map("{}.5".format)
    else:
        good = st.sampled_from(["echo:a", "echo:b", "echo", "codex", "2h", "x", "."])
    return st.one_of(good, good, good, words)


@st.composite
def likely(draw: st.DrawFn) -> list[str]:
    """A verb with its arguments and some flags of its own."""
    path = draw(st.sampled_from(PATHS))
    argv = list(path)
    options = [p for p in command(path).params if isinstance(p, click.Option)]
    chosen = [p for p in options if p.required]
    chosen += draw(st.lists(st.sampled_from(options), max_size=3)) if options else []
    for option in chosen:
        argv.append(draw(st.sampled_from(option.opts + option.secondary_opts)))
        if not option.is_flag:
            argv.append(draw(fitting(option)))
    for parameter in command(path).params:
        if isinstance(parameter, click.Argument):
            argv.append(draw(fitting(parameter)))
    return argv


vectors = st.one_of(
    likely(),
    likely(),
    st.builds(
        lambda path, rest: [*path, *rest], st.sampled_from(PATHS), st.lists(words, max_size=7)
    ),
    st.lists(words, max_size=8),
)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="BULLSWARM_TEST_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(argv=vectors, stdin=st.binary(max_size=30))
def test_no_words_make_a_traceback(cli: Cli, argv: list[str], stdin: bytes) -> None:
    if "run" in argv:
        # What would be started is looked at; starting it a thousand times shows nothing more.
        argv = [*argv[: argv.index("run") + 1], "--dry-run", *argv[argv.index("run") + 1 :]]
    # What gets out of the call is what a user would see as a traceback.
    out = cli(*argv, stdin=stdin)
    assert out.code in (0, 1, 2)
    assert "Traceback" not in out.text
    if out.code == 2:
        assert out.stderr or "validate" in argv


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([v for v in VALUES if v.isascii() and len(v) < 100]),
    st.text(st.characters(codec="utf-8"), max_size=8),
)
documents = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["path", "env", "enabled", "homes", "bin", "a", "minutes", "windows"]),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=8,
)
SECTIONS = ["config", "limits", "policy", "admission", "providers", "subscriptions", "paused"]
PROVIDER = ["enabled", "homes", "bin", "env", "models", "optIn", "only", "ttl", "windows"]
NAMED = ["echo", "codex", "claude-code", "echo:a", "demo", "nobody"]


@settings(
    max_examples=EXAMPLES // 2,
    deadline=None,
    derandomize="BULLSWARM_TEST_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    whole=st.one_of(
        st.dictionaries(st.sampled_from(SECTIONS), documents, max_size=3),
        st.fixed_dictionaries(
            {
                "providers": st.dictionaries(
                    st.sampled_from(NAMED),
                    st.dictionaries(st.sampled_from(PROVIDER), documents, max_size=4),
                    max_size=3,
                )
            }
        ),
    ),
    meter=documents,
)
def test_no_settings_and_no_meter_make_a_traceback(
    cli: Cli, whole: dict[str, Any], meter: object
) -> None:
    state = cli.world.bull / "state.json"
    providers = whole.setdefault("providers", {})
    if isinstance(providers, dict):
        homes = {"a": str(cli.world.root / "echo" / "a")}
        providers.setdefault("echo", {"enabled": True, "homes": homes})
    state.write_text(json.dumps(whole))
    (cli.world.root / "echo" / "a" / "meter.json").write_text(json.dumps(meter))
    for argv in (
        ("pools", "--json"),
        ("strategy", "show"),
        ("run", "--lane", "build", "--dry-run", SAY),
    ):
        out = cli(*argv)
        assert out.code in (0, 1, 2)
        if out.code == 2:
            assert "state.json" in out.stderr or "providers." in out.stderr, out.stderr
    # A worse file than a person's is never made of it.
    assert json.loads(state.read_text()) == whole
