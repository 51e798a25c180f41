"""Pools: each login home is one, whose login it is, and which are one credential."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from providerkit import claude_login, codex_login, load, person, pools, write

from bullswarm.providers.groups import with_groups
from bullswarm.providers.homes import name_of
from bullswarm.providers.types import Account, Ask


def test_each_login_home_is_a_pool(tmp_path: Path) -> None:
    env = person(tmp_path, "claude", "codex")
    home = Path(env["HOME"])
    claude_login(home / ".claude")
    claude_login(home / ".claude-work")
    codex_login(home / ".codex")
    codex_login(home / ".codex-team", "other")
    (home / ".claude-notes").mkdir()
    found = pools(load(env))
    ready = [name for name, a in found.items() if a.unavailable is None]
    assert ready == ["claude-code", "claude-code:work", "codex", "codex:team"]
    assert found["claude-code:work"].home == str(home / ".claude-work")


@pytest.mark.parametrize(
    ("homes", "names"),
    [
        (["~/logins/alice", "~/logins/bob"], ["claude-code:alice", "claude-code:bob"]),
        ({"x": "~/logins/alice"}, ["claude-code:x"]),
        ({"x": {"path": "~/logins/alice"}}, ["claude-code:x"]),
        (["~/.claude"], []),
        (["~/a/me", "~/b/me"], ["claude-code:me", "claude-code:me-2"]),
    ],
)
def test_further_homes_come_from_the_settings(homes: Any, names: list[str], tmp_path: Path) -> None:
    env = person(tmp_path, "claude")
    found = pools(load(env, {"claude-code": {"homes": homes}}), "claude-code")
    assert list(found) == ["claude-code", *names]


@pytest.mark.parametrize(
    ("homes", "words"),
    [
        ("~/x", "providers.claude-code.homes must be a list"),
        ([3], "providers.claude-code.homes must be the path"),
        ({"a": {"path": "x", "evn": {}}}, "providers.claude-code.homes.a.evn is unknown"),
        ({"a b": "x"}, "'a b' is no name"),
        ({"a": {"path": "x", "env": {"K": 1}}}, "providers.claude-code.homes.a.env"),
    ],
)
def test_a_wrong_setting_is_a_fault_that_names_it_and_stops_nobody(
    homes: Any, words: str, tmp_path: Path
) -> None:
    env = person(tmp_path, "claude", "codex")
    registry = load(env, {"claude-code": {"homes": homes}})
    found = pools(registry)
    assert "claude-code" not in found
    assert "codex" in found
    (fault,) = registry.faults()
    assert fault.provider == "claude-code"
    assert words in fault.message


def test_the_variable_of_the_cli_selects_the_default_home(tmp_path: Path) -> None:
    env = person(tmp_path, "claude", "codex")
    env |= {"CLAUDE_CONFIG_DIR": str(tmp_path / "c"), "CODEX_HOME": str(tmp_path / "x")}
    found = pools(load(env))
    assert found["claude-code"].home == str(tmp_path / "c")
    assert found["codex"].home == str(tmp_path / "x")


def test_a_home_keeps_its_name_where_the_variable_points_at_it(tmp_path: Path) -> None:
    env = person(tmp_path, "claude")
    home = Path(env["HOME"])
    claude_login(home / ".claude")
    claude_login(home / ".claude-work")
    asked = env | {"CLAUDE_CONFIG_DIR": str(home / ".claude-work")}
    for one in (env, asked):
        found = pools(load(one))
        assert found["claude-code"].home == str(home / ".claude")
        assert found["claude-code:work"].home == str(home / ".claude-work")
    registry = load(asked)
    for pool, told in (("claude-code", False), ("claude-code:work", True)):
        provider, account = registry.of_pool(pool)
        line = provider.command(account, Ask(prompt="x", cwd="/"), {})
        # The default home is the one the CLI takes when it is told none: not even by our caller.
        assert ("CLAUDE_CONFIG_DIR" in line.env_set) is told
        assert ("CLAUDE_CONFIG_DIR" in line.env_drop) is not told


@pytest.mark.parametrize(
    ("path", "glob", "name"),
    [
        ("/home/me/.claude-work", "~/.claude-*", "work"),
        ("/srv/logins/Alice", "~/.claude-*", "alice"),
        ("/home/me/.claude", None, "claude"),
        ("/srv/a b", None, "a-b"),
        ("/", None, "home"),
    ],
)
def test_a_home_is_named_after_its_folder(path: str, glob: str | None, name: str) -> None:
    assert name_of(path, glob) == name


def test_a_cli_that_is_not_there_is_unavailable_with_a_hint(tmp_path: Path) -> None:
    found = pools(load(person(tmp_path)))
    assert found["claude-code"].unavailable == (
        "claude is not on PATH; install it with: npm install -g @anthropic-ai/claude-code"
    )
    assert all(account.unavailable for account in found.values())


def test_a_binary_may_be_named_and_must_be_one(tmp_path: Path) -> None:
    env = person(tmp_path, "claude")
    claude_login(Path(env["HOME"]) / ".claude")
    good = {"claude-code": {"bin": env["PATH"] + "/claude"}}
    assert pools(load({**env, "PATH": ""}, good))["claude-code"].unavailable is None
    bad = pools(load(env, {"claude-code": {"bin": "/nowhere/claude"}}))["claude-code"]
    assert bad.unavailable == (
        "/nowhere/claude is no program that can be run (providers.claude-code.bin)"
    )


@pytest.mark.parametrize(
    ("env", "files", "available"),
    [
        ({}, {}, False),
        ({"ANTHROPIC_API_KEY": "k"}, {}, True),
        ({"ANTHROPIC_API_KEY": ""}, {}, False),
        ({"CLAUDE_CODE_OAUTH_TOKEN": "t"}, {}, True),
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, {}, True),
        ({}, {".claude/.credentials.json": "{}"}, True),
        ({}, {".claude/settings.json": '{"apiKeyHelper": "x"}'}, True),
        ({}, {".claude/settings.json": '{"theme": "x"}'}, False),
        ({}, {".claude.json": '{"primaryApiKey": "k"}'}, True),
    ],
)
def test_claude_has_no_login_only_where_that_is_certain(
    env: dict[str, str], files: dict[str, str], available: bool, tmp_path: Path
) -> None:
    everyone = person(tmp_path, "claude")
    for name, text in files.items():
        write(Path(everyone["HOME"]) / name, text)
    found = pools(load({**everyone, **env}))["claude-code"]
    assert (found.unavailable is None) is available
    if not available:
        assert "no login in" in (found.unavailable or "")


@pytest.mark.parametrize(
    ("env", "files", "available"),
    [
        ({}, {}, False),
        ({"CODEX_API_KEY": "k"}, {}, True),
        ({"OPENAI_API_KEY": "k"}, {}, True),
        ({}, {"auth.json": "{}"}, True),
        ({}, {"config.toml": 'model_provider = "mock"'}, True),
        ({}, {"config.toml": 'model = "gpt"'}, False),
    ],
)
def test_codex_has_no_login_only_where_that_is_certain(
    env: dict[str, str], files: dict[str, str], available: bool, tmp_path: Path
) -> None:
    everyone = person(tmp_path, "codex")
    for name, text in files.items():
        write(Path(everyone["HOME"]) / ".codex" / name, text)
    assert (pools(load({**everyone, **env}))["codex"].unavailable is None) is available


@pytest.mark.parametrize(
    ("cli", "name", "file"),
    [
        ("claude", "claude-code", ".claude/.credentials.json"),
        ("codex", "codex", ".codex/auth.json"),
        ("gemini", "gemini", ".gemini/oauth_creds.json"),
        ("qwen", "qwen", ".qwen/oauth_creds.json"),
        ("opencode", "opencode", ".local/share/opencode/auth.json"),
    ],
)
@pytest.mark.parametrize("text", ["", '{"tokens": {"acc', "[]", "\0\0"])
def test_a_damaged_login_is_named_as_such(
    cli: str, name: str, file: str, text: str, tmp_path: Path
) -> None:
    env = person(tmp_path, cli)
    path = write(Path(env["HOME"]) / file, text)
    found = pools(load(env))[name]
    assert f"the login at {path} is damaged" in (found.unavailable or "")
    assert found.login_file == str(path)


def _jwt(subject: str) -> str:
    body = base64.urlsafe_b64encode(json.dumps({"sub": subject}).encode()).decode().rstrip("=")
    return f"h.{body}.s"


def test_identity_tells_accounts_apart_and_is_no_secret(tmp_path: Path) -> None:
    env = person(tmp_path, "claude", "codex")
    home = Path(env["HOME"])
    claude_login(home / ".claude-a", "u1", "o1")
    claude_login(home / ".claude-b", "u1", "o2")
    claude_login(home / ".claude-c", "u2", "o1")
    found = pools(load(env), "claude-code")
    identities = [found[f"claude-code:{n}"].identity for n in "abc"]
    assert len({*identities}) == 3
    assert all(i and "u1" not in i and len(i) == 16 for i in identities)


def test_members_of_one_codex_workspace_are_different_logins(tmp_path: Path) -> None:
    env = person(tmp_path, "codex")
    for name, subject in (("a", "alice"), ("b", "bob")):
        tokens = {"account_id": "workspace", "id_token": _jwt(subject)}
        write(Path(env["HOME"]) / f".codex-{name}" / "auth.json", {"tokens": tokens})
    found = pools(load(env))
    assert found["codex:a"].identity != found["codex:b"].identity
    assert found["codex:a"].credential_group is None


def test_two_homes_with_one_login_are_one_credential_group(tmp_path: Path) -> None:
    env = person(tmp_path, "claude", "codex")
    home = Path(env["HOME"])
    claude_login(home / ".claude-a", "u1")
    claude_login(home / ".claude-b", "u1")
    claude_login(home / ".claude-c", "u2")
    codex_login(home / ".codex")
    (home / ".codex-link").mkdir()
    (home / ".codex-link" / "auth.json").symlink_to(home / ".codex" / "auth.json")
    found = pools(load(env))
    assert found["claude-code:a"].credential_group == "login of claude-code:a"
    assert found["claude-code:b"].credential_group == "login of claude-code:a"
    assert found["claude-code:c"].credential_group is None
    assert (
        found["codex"].credential_group == found["codex:link"].credential_group == "login of codex"
    )


def test_a_linked_home_is_no_second_pool(tmp_path: Path) -> None:
    env = person(tmp_path, "codex")
    home = Path(env["HOME"])
    codex_login(home / ".codex")
    (home / ".codex-same").symlink_to(home / ".codex")
    assert list(pools(load(env), "codex")) == ["codex"]


def test_a_token_in_the_environment_is_the_default_homes_login_only(tmp_path: Path) -> None:
    env = person(tmp_path, "claude") | {"CLAUDE_CODE_OAUTH_TOKEN": "made-up"}
    claude_login(Path(env["HOME"]) / ".claude-work", "u1")
    found = pools(load(env), "claude-code")
    assert found["claude-code"].identity != found["claude-code:work"].identity
    assert found["claude-code:work"].credential_group is None


def test_an_api_key_and_a_subscription_of_one_vendor_share_nothing(tmp_path: Path) -> None:
    env = person(tmp_path, "claude")
    claude_login(Path(env["HOME"]) / ".claude", "u1")
    homes = {"key": {"path": str(tmp_path / "key"), "env": {"ANTHROPIC_API_KEY": "k"}}}
    found = pools(load(env, {"claude-code": {"homes": homes}}), "claude-code")
    assert found["claude-code:key"].unavailable is None
    assert found["claude-code:key"].credential_group is None
    assert found["claude-code:key"].identity != found["claude-code"].identity


def _account(pool: str, **more: Any) -> Account:
    return Account(pool=pool, provider="p", **more)


def test_an_upstream_group_is_a_group_even_of_one() -> None:
    (alone,) = with_groups([_account("a")], {"a": "relay:x"})
    assert alone.credential_group == "relay:x"


def test_groups_join_where_they_share_a_pool() -> None:
    accounts = [
        _account("a", identity="1"),
        _account("b", identity="1", login_file="/f"),
        _account("c", login_file="/f"),
        _account("d"),
    ]
    groups = {a.pool: a.credential_group for a in with_groups(accounts, {"c": "relay:x"})}
    assert groups == {"a": "relay:x", "b": "relay:x", "c": "relay:x", "d": None}


def test_unknown_logins_are_never_one_group() -> None:
    assert [a.credential_group for a in with_groups([_account("a"), _account("b")], {})] == [
        None,
        None,
    ]


def test_a_meter_sees_the_environment_a_worker_of_its_pool_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datetime import UTC, datetime

    from bullswarm.providers.claude_code import meter

    tokens = []

    def fetch(url: str, token: str) -> tuple[int, dict[str, str], bytes]:
        tokens.append(token)
        window = {"utilization": 41, "resets_at": None}
        return 200, {}, json.dumps({"seven_day": window}).encode()

    monkeypatch.setattr(meter, "fetch", fetch)
    env = person(tmp_path, "claude") | {"CLAUDE_CODE_OAUTH_TOKEN": "of-the-shell"}
    claude_login(Path(env["HOME"]) / ".claude-work")
    write(tmp_path / "r" / "settings.json", {})
    relay = {"path": str(tmp_path / "r"), "env": {"CLAUDE_CODE_OAUTH_TOKEN": "of-the-relay"}}
    registry = load(env, {"claude-code": {"homes": {"relay": relay}}})
    for pool in ("claude-code", "claude-code:work", "claude-code:relay"):
        provider, account = registry.of_pool(pool)
        reading = provider.read_meter(account, env, datetime.now(UTC))
        assert reading is not None and reading.account == account.identity
    assert tokens == ["of-the-shell", "made-up", "of-the-relay"]
