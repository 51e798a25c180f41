from __future__ import annotations

import fcntl
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from bullswarm.errors import BullswarmError, UsageError
from bullswarm.routing.types import Admission, Config, Policy
from bullswarm.store import (
    Home,
    Settings,
    Subscription,
    load,
    routing_admission,
    routing_config,
    routing_policy,
    update,
)
from bullswarm.store.files import locked
from bullswarm.store.settings import Pause


def home_with(path: Path, text: str | bytes | None) -> Home:
    home = Home.open(path / "home")
    if text is not None:
        home.state_file.write_bytes(text.encode() if isinstance(text, str) else text)
    return home


@pytest.mark.parametrize("text", [None, "", "\n", "{}"])
def test_nothing_configured_means_the_defaults(tmp_path: Path, text: str | None) -> None:
    settings = load(home_with(tmp_path, text))
    assert settings == Settings()
    assert settings.config.inflight_penalty_pct == 3
    assert settings.config.depth_limit == 2
    assert settings.limits.mode == "quarantine"
    assert settings.policy.strategy == "pace"


def test_the_defaults_are_routings_defaults() -> None:
    assert routing_config(Settings()) == Config()
    assert routing_policy(Settings()) == Policy()
    assert routing_admission(Settings()) == Admission()
    assert routing_admission(Settings(), unset="hold") == Admission(mode="hold")


def test_everything_that_can_be_configured_is_read(tmp_path: Path) -> None:
    text = """{
      "config": {"inflightPenaltyPct": 0, "callerName": "claude-code", "depthLimit": 3,
                 "workerCap": 5, "assignments": {"build": "codex"}, "bootstrapMinutes": 10},
      "limits": {"mode": "wait"},
      "policy": {"strategy": "prefer-order", "prefer": ["a", "b"], "quotaCeiling": 70,
                 "domains": {"web": ["c"]}, "latency": "fast"},
      "admission": {"mode": "off", "fiveHourLine": 80, "pacingLine": 90, "capPerPool": 6,
                    "tailFactor": 2, "patienceMinutes": 30},
      "providers": {"codex": {"enabled": false, "homes": ["/x"], "anything": {"goes": 1}}},
      "subscriptions": {"codex": {"quotaWindow": "monthly", "resetsAt": "2026-04-01T00:00:00+02:00",
                        "reserve": 20, "costRank": 2, "cap": 3, "enabled": true,
                        "lanes": ["build"], "capabilities": ["web"], "model": "m"}},
      "paused": {"codex": {"until": "2026-03-03T00:00:00Z"}, "claude-code": {"until": null}}
    }"""
    settings = load(home_with(tmp_path, text))
    assert routing_config(settings) == Config(
        inflight_penalty_pct=0,
        assignments={"build": "codex"},
        bootstrap_minutes=10,
        worker_cap=5,
        admission=Admission(
            mode="off",
            five_hour_line=80,
            pacing_line=90,
            cap_per_pool=6,
            tail_factor=2,
            patience_minutes=30,
        ),
    )
    assert routing_policy(settings) == Policy(
        strategy="prefer-order",
        prefer=("a", "b"),
        quota_ceiling=70,
        domains={"web": ("c",)},
        latency="fast",
    )
    assert routing_admission(settings, unset="hold").mode == "off"
    assert settings.providers["codex"]["anything"] == {"goes": 1}
    codex = settings.subscriptions["codex"]
    assert codex.resets_at == datetime(2026, 3, 31, 22, tzinfo=UTC)
    assert (codex.reserve, codex.lanes, codex.cap) == (20, ("build",), 3)
    assert settings.paused["codex"].until == datetime(2026, 3, 3, tzinfo=UTC)
    assert settings.paused["claude-code"] == Pause()


WRONG = [
    ('{"config": {"depthLimit": "x"}}', "config.depthLimit must be a whole number from 1 to 16"),
    ('{"config": {"depthLimit": 0}}', "config.depthLimit must be a whole number from 1 to 16"),
    ('{"config": {"depthLimit": true}}', "config.depthLimit must be a whole number"),
    ('{"config": {"depthLimit": 2.5}}', "config.depthLimit must be a whole number"),
    ('{"config": {"inflightPenaltyPct": -1}}', "inflightPenaltyPct must be a number from 0 to 100"),
    ('{"config": {"bootstrapMinutes": 0}}', "bootstrapMinutes must be a number above 0 to 1440"),
    ('{"config": {"workerCap": 0}}', "config.workerCap must be a whole number from 1"),
    ('{"config": {"callerName": 3}}', "config.callerName must be a text, not 3"),
    ('{"config": {"assignments": {"build": 1}}}', "config.assignments.build must be a text"),
    (
        '{"config": {"depthLimt": 2}}',
        "config.depthLimt is no setting; did you mean depthLimit. config knows .*depthLimit",
    ),
    ('{"conf": {}}', "conf is no setting; did you mean config. the file knows admission, config"),
    ('{"config": []}', "config must be an object"),
    ("[]", "the file must be an object"),
    ('{"limits": {"mode": "bench"}}', 'mode must be one of quarantine, return, wait, not "bench"'),
    ('{"policy": {"prefer": "a"}}', "policy.prefer must be a list"),
    ('{"policy": {"prefer": ["a", 1]}}', r"policy.prefer\[1\] must be a text"),
    ('{"policy": {"domains": {"web": [1]}}}', r"policy.domains.web\[0\] must be a text"),
    ('{"admission": {"capPerPool": 0}}', "admission.capPerPool must be a whole number from 1"),
    ('{"providers": {"codex": true}}', "providers.codex must be an object"),
    (
        '{"subscriptions": {"claude-code:work": {"reserve": 101}}}',
        "subscriptions.claude-code:work.reserve must be a number from 0 to 100",
    ),
    (
        '{"subscriptions": {"codex": {"resetsAt": "2026-04-01T00:00:00"}}}',
        "subscriptions.codex.resetsAt must be a time with its zone",
    ),
    ('{"subscriptions": {"codex": {"enabled": "yes"}}}', "codex.enabled must be true or false"),
    ('{"subscriptions": {"codex": {"lanes": ["fun"]}}}', "must be one of analyze, build, chore"),
    ('{"paused": {"codex": true}}', "paused.codex must be an object"),
]


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_a_wrong_setting_is_named_with_what_would_be_right(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        load(home_with(tmp_path, text))


@pytest.mark.parametrize("text", [b'{"config": {', b"\x00\x00", b'{"a": "\xff"}', b"{} x"])
def test_a_damaged_file_is_named_and_left_alone(tmp_path: Path, text: bytes) -> None:
    home = home_with(tmp_path, text)
    for attempt in (load, lambda home: update(home, lambda old: old)):
        with pytest.raises(BullswarmError, match=r"state.json is damaged and was left as it is"):
            attempt(home)
    assert home.state_file.read_bytes() == text


def test_an_update_is_stored_as_json_for_people(tmp_path: Path) -> None:
    home = home_with(tmp_path, None)
    until = datetime(2026, 3, 3, tzinfo=UTC)

    def pause(old: Settings) -> Settings:
        return msgspec.structs.replace(old, paused={**old.paused, "codex": Pause(until=until)})

    assert update(home, pause) == load(home) == Settings(paused={"codex": Pause(until=until)})
    text = home.state_file.read_text()
    assert '\n    "codex": {\n' in text
    assert text.endswith("}\n")


def test_an_update_to_something_wrong_stores_nothing(tmp_path: Path) -> None:
    home = home_with(tmp_path, '{"limits": {"mode": "wait"}}')
    with pytest.raises(UsageError, match=r"subscriptions.codex.reserve must be a number"):
        update(home, lambda old: Settings(subscriptions={"codex": Subscription(reserve=200.0)}))
    assert home.state_file.read_text() == '{"limits": {"mode": "wait"}}'


def test_an_update_that_changes_nothing_leaves_the_file_as_written(tmp_path: Path) -> None:
    text = '{"limits":   {"mode": "wait"}}'
    home = home_with(tmp_path, text)
    update(home, lambda old: old)
    assert home.state_file.read_text() == text


def test_a_lock_that_is_never_given_up_ends_in_an_error(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(BullswarmError, match="another process has held"), locked(path, 0.05):
            pass
    with locked(path, 0.05):
        pass
