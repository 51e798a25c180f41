"""The registry: what loads, from where, that nothing broken stops a run, and that it is quick."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from providerkit import MINIMAL, load, person, pools, write

from bullswarm.errors import UsageError
from bullswarm.providers import entrypoints
from bullswarm.providers.registry import Registry
from bullswarm.providers.types import Provider


def test_the_built_in_providers_are_there_and_fixtures_are_off(tmp_path: Path) -> None:
    registry = load(person(tmp_path))
    assert [p.connector.name for p in registry.providers()] == [
        "claude-code",
        "codex",
        "opencode",
        "gemini",
        "qwen",
    ]
    assert registry.names()[-2:] == ("echo", "demo")
    assert registry.faults() == ()


def test_every_provider_meets_the_protocol(tmp_path: Path) -> None:
    registry = load(person(tmp_path))
    for name in registry.names():
        assert isinstance(registry.get(name), Provider)


@pytest.mark.parametrize(
    ("settings", "env", "on"),
    [
        ({}, {}, False),
        ({"echo": {"enabled": True}}, {}, True),
        ({}, {"BULLSWARM_ECHO": "1"}, True),
        ({"echo": {"enabled": False}}, {"BULLSWARM_ECHO": "1"}, False),
    ],
)
def test_echo_is_opt_in(
    settings: dict[str, Any], env: dict[str, str], on: bool, tmp_path: Path
) -> None:
    assert ("echo" in pools(load(person(tmp_path) | env, settings))) is on


def test_a_provider_that_is_off_has_no_pools_but_a_name(tmp_path: Path) -> None:
    registry = load(person(tmp_path, "codex"), {"codex": {"enabled": False}})
    assert "codex" not in pools(registry)
    assert {r.name: r.state for r in registry.listing()}["codex"] == "off"


def test_a_folder_in_the_home_is_a_provider(tmp_path: Path) -> None:
    env = person(tmp_path, "mine")
    write(tmp_path / "providers" / "mine" / "connector.json", {**MINIMAL, "upstreamGroup": "r:x"})
    registry = load(env, home=tmp_path / "providers")
    account = pools(registry)["mine"]
    assert (account.unavailable, account.credential_group) == (None, "r:x")
    provider, found = registry.of_pool("mine")
    assert (provider.connector.name, found) == ("mine", account)


def test_code_beside_a_connector_overrides_it_and_is_loaded_late(tmp_path: Path) -> None:
    env = person(tmp_path, "mine")
    folder = tmp_path / "providers" / "mine"
    write(folder / "connector.json", MINIMAL)
    write(
        folder / "provider.py",
        "from pathlib import Path\n"
        "from bullswarm.providers import ConnectorProvider\n"
        f"Path({str(tmp_path / 'loaded')!r}).touch()\n"
        "class Mine(ConnectorProvider):\n"
        "    def pool_name(self, home):\n"
        "        return 'mine:special'\n",
    )
    registry = load(env, home=tmp_path / "providers")
    assert not (tmp_path / "loaded").exists()
    assert "mine:special" in pools(registry)
    assert (tmp_path / "loaded").exists()


BROKEN: dict[str, tuple[dict[str, Any], str, str]] = {
    "no connector": ({"README.md": "x"}, "mine", "there is no connector.json"),
    "damaged": ({"connector.json": "{"}, "mine", "is no JSON"),
    "wrong field": ({"connector.json": {**MINIMAL, "comand": "x"}}, "mine", "comand: "),
    "another name": ({"connector.json": {**MINIMAL, "name": "other"}}, "mine", "'other'"),
    "raises": (
        {"connector.json": MINIMAL, "provider.py": "raise RuntimeError('no luck')"},
        "mine",
        "RuntimeError: no luck",
    ),
    "no class": ({"connector.json": MINIMAL, "provider.py": "x = 1"}, "mine", "one subclass"),
    "accounts raise": (
        {
            "connector.json": MINIMAL,
            "provider.py": "from bullswarm.providers import ConnectorProvider\n"
            "class P(ConnectorProvider):\n"
            "    def accounts(self, env, settings):\n        raise KeyError('home')\n",
        },
        "mine",
        "KeyError: 'home'",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_provider_is_reported_and_stops_nobody(case: str, tmp_path: Path) -> None:
    files, name, words = BROKEN[case]
    for file, content in files.items():
        write(tmp_path / "providers" / "mine" / file, content)
    registry = load(person(tmp_path, "codex"), home=tmp_path / "providers")
    found = pools(registry)
    assert "codex" in found
    assert "mine" not in found
    assert [f.provider for f in registry.faults()] == [name]
    assert words in registry.faults()[0].message
    assert len(registry.listing()) == len(registry.names())
    pools(registry)
    assert len(registry.faults()) == 1


def test_a_broken_provider_is_called_broken_unless_it_is_off(tmp_path: Path) -> None:
    write(tmp_path / "providers" / "mine" / "connector.json", "{")
    for settings, state in (({}, "broken"), ({"mine": {"enabled": False}}, "off")):
        registry = load(person(tmp_path), settings, home=tmp_path / "providers")
        assert {row.name: row.state for row in registry.listing()}["mine"] == state


def test_a_setting_for_nobody_is_reported(tmp_path: Path) -> None:
    registry = load(person(tmp_path), {"claud": {"enabled": True}})
    assert [(f.provider, "no such provider" in f.message) for f in registry.faults()] == [
        ("claud", True)
    ]


def test_an_unknown_name_is_a_usage_error_with_the_names_there_are(tmp_path: Path) -> None:
    registry = load(person(tmp_path))
    with pytest.raises(UsageError, match="there are: claude-code, codex"):
        registry.get("claud")
    with pytest.raises(UsageError, match="there are: claude-code"):
        registry.of_pool("claud")


def _package(site: Path, name: str, target: str, module: str, code: str) -> None:
    write(site / f"{module}.py", code)
    info = site / f"{module}-1.0.dist-info"
    write(info / "METADATA", f"Name: {module}\n")
    write(
        info / "entry_points.txt",
        f"[console_scripts]\nx = y:z\n\n[bullswarm.providers]\n{name} = {target}\n",
    )


CODE = (
    "import msgspec\n"
    "from bullswarm.providers import Connector, ConnectorProvider\n"
    "connector = msgspec.convert({'name': 'plugged', 'command': 'plugged', 'args': ['{prompt}']},"
    " Connector)\n"
    "def make():\n    return ConnectorProvider(connector)\n"
    "provider = make()\n"
    "number = 3\n"
)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.mark.parametrize("attribute", ["connector", "make", "provider"])
def test_an_installed_package_brings_a_provider(attribute: str, site: Path, tmp_path: Path) -> None:
    module = f"plug_{attribute}"
    _package(site, "plugged", f"{module}:{attribute}", module, CODE)
    registry = load(person(tmp_path, "plugged"), entry_points=True)
    assert pools(registry)["plugged"].unavailable is None
    assert {r.name: r.origin for r in registry.listing()}["plugged"] == "package"


@pytest.mark.parametrize(
    ("name", "target", "words"),
    [
        ("plugged", "plug_bad:number", "it must be a provider"),
        ("plugged", "plug_bad:nothing", "AttributeError"),
        ("plugged", "plug_missing", "ModuleNotFoundError"),
        ("codex", "plug_bad:provider", "the name is built-in"),
        ("renamed", "plug_bad:provider", "it calls itself 'plugged'"),
    ],
)
def test_a_bad_entry_point_is_reported(
    name: str, target: str, words: str, site: Path, tmp_path: Path
) -> None:
    _package(site, name, target, "plug_bad", CODE)
    registry = load(person(tmp_path, "codex"), entry_points=True)
    assert "codex" in pools(registry)
    assert [words in f.message for f in registry.faults()] == [True]


def test_what_was_found_is_kept_until_a_folder_changes(tmp_path: Path) -> None:
    site, cache = tmp_path / "site", tmp_path / "cache"
    site.mkdir()
    cache.mkdir()
    path = [str(site), str(tmp_path / "missing")]
    assert entrypoints.find(cache, path) == ()
    _package(site, "a", "plug_a:x", "plug_a", "")
    os.utime(site, ns=(1, 1))
    assert entrypoints.find(cache, path) == (("a", "plug_a:x"),)
    # Kept by the folder's time: a file changed behind its back is not seen, a new time is.
    write(site / "plug_a-1.0.dist-info" / "entry_points.txt", "[bullswarm.providers]\nb = m:y\n")
    assert entrypoints.find(cache, path) == (("a", "plug_a:x"),)
    os.utime(site, ns=(2, 2))
    assert entrypoints.find(cache, path) == (("b", "m:y"),)
    (cache / entrypoints.CACHE).write_text("nonsense")
    assert entrypoints.find(cache, path) == (("b", "m:y"),)
    assert entrypoints.find(tmp_path / "nowhere", path) == (("b", "m:y"),)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[bullswarm.providers]\na = m:x\n", [("a", "m:x")]),
        ("[bullswarm.providers]\n# no\n a=m # yes\n[other]\nb = m\n", [("a", "m")]),
        ("[other]\nbullswarm.providers = x\n", []),
        ("", []),
    ],
)
def test_entry_point_files(text: str, found: list[tuple[str, str]]) -> None:
    assert entrypoints.parse(text) == found


COLD = """
import sys
from pathlib import Path
from bullswarm.providers.registry import Registry
registry = Registry.load(Path(sys.argv[1]), {"echo": {"enabled": True}}, {"HOME": sys.argv[1]})
assert registry.accounts()
dear = ["asyncio", "importlib.metadata", "subprocess", "httpx", "tomllib", "jsonschema", "psutil"]
print([name for name in dear if name in sys.modules])
"""


def test_loading_brings_nothing_dear_along(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", COLD, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_demo_home_holds_the_demo_and_nothing_else(tmp_path: Path) -> None:
    settings = {"demo": {"enabled": True, "only": True, "homes": {"a": str(tmp_path / "a")}}}
    write(tmp_path / "providers" / "mine" / "connector.json", MINIMAL)
    registry = Registry.load(tmp_path / "providers", settings, person(tmp_path, "claude"))
    assert [a.pool for a in registry.accounts()] == ["demo-a"]
