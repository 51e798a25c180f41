"""A machine's worth of throwaway homes and fake keys, and bullswarm run in it as a user would."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rig.api import Rig

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "claude": "claude-code",
    "codex": "codex",
    "opencode": "opencode-ai",
    "gemini": "gemini-cli",
    "qwen": "qwen-code",
}


def cli_folder(cli: str) -> Path:
    """Where a pinned CLI's binary lies."""
    base = Path(os.environ.get("BULLSWARM_TEST_CLIS") or ROOT / ".clis")
    return base / PACKAGES[cli] / "node_modules" / ".bin"


def missing_clis() -> list[str]:
    """The CLIs that are not installed."""
    return [cli for cli in PACKAGES if not (cli_folder(cli) / cli).exists()]


@dataclass
class Ran:
    """How a command came back."""

    code: int
    stdout: str
    stderr: str
    seconds: float

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


@dataclass
class World:
    """Homes below ``root``, keys known to ``rig``. Only CLIs that were asked for are on PATH."""

    root: Path
    rig: Rig
    env: dict[str, str] = field(default_factory=dict)
    homes: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for folder in (self.home, self.work, self.bull):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        node = shutil.which("node")
        path = [str(Path(node).parent)] if node else []
        self.env = {
            "PATH": os.pathsep.join([*path, "/usr/local/bin", "/usr/bin", "/bin"]),
            "HOME": str(self.home),
            "BULLSWARM_HOME": str(self.bull),
            "BULLSWARM_CLAUDE_USAGE_URL": self.rig.url,
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "NO_COLOR": "1",
        }
        self.git("init", "-q")
        self.git("commit", "-q", "--allow-empty", "-m", "start")

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def bull(self) -> Path:
        return self.root / "bull"

    def git(self, *args: str) -> str:
        who = ["-c", "user.name=rig", "-c", "user.email=rig@localhost"]
        done = subprocess.run(
            ["git", *who, *args], cwd=self.work, check=True, capture_output=True, text=True
        )
        return done.stdout

    # logins

    def claude(self, name: str = "", *, key: str, subscription: bool = True) -> str:
        """A Claude login home; its pool's name. The key is an OAuth token, or an API key."""
        folder = self.home / (f".claude-{name}" if name else ".claude")
        folder.mkdir(parents=True, exist_ok=True)
        self._on_path("claude")
        self.env |= {
            "ANTHROPIC_BASE_URL": self.rig.url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        if not subscription:
            self.env["ANTHROPIC_API_KEY"] = key
        else:
            login = {
                "accessToken": key,
                "refreshToken": f"refresh-{key}",
                "expiresAt": int((time.time() + 8 * 3600) * 1000),
                "scopes": ["user:inference", "user:profile"],
                "subscriptionType": "max",
            }
            (folder / ".credentials.json").write_text(json.dumps({"claudeAiOauth": login}))
        account = {"accountUuid": f"uuid-{key}", "emailAddress": f"{name or 'me'}@example.org"}
        settings = {"hasCompletedOnboarding": True, "oauthAccount": account}
        (folder / ".claude.json").write_text(json.dumps(settings))
        if not name:
            (self.home / ".claude.json").write_text(json.dumps(settings))
        return f"claude-code:{name}" if name else "claude-code"

    def codex(self, name: str = "", *, key: str, retries: bool = True) -> str:
        """A Codex home; its pool's name."""
        folder = self.home / (f".codex-{name}" if name else ".codex")
        folder.mkdir(parents=True, exist_ok=True)
        self._on_path("codex")
        self.env["RIG_KEY"] = "sk-rig"
        lines = [
            'model = "gpt-5.5"',
            'model_provider = "rig"',
            "[model_providers.rig]",
            'name = "rig"',
            f'base_url = "{self.rig.url}/v1"',
            'wire_api = "responses"',
            'env_key = "RIG_KEY"',
            f'http_headers = {{ "x-rig-key" = "{key}" }}',
        ]
        (folder / "config.toml").write_text("\n".join(lines) + "\n")
        return f"codex:{name}" if name else "codex"

    def opencode(self, *, key: str) -> str:
        self._on_path("opencode")
        folder = self.home / ".config" / "opencode"
        folder.mkdir(parents=True, exist_ok=True)
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "rig",
            "options": {"baseURL": f"{self.rig.url}/v1", "apiKey": key},
            "models": {"stand-in": {"name": "stand-in"}},
        }
        config = {
            "autoupdate": False,
            "share": "disabled",
            "model": "rig/stand-in",
            "provider": {"rig": provider},
        }
        (folder / "opencode.json").write_text(json.dumps(config))
        return "opencode"

    def qwen(self, *, key: str) -> str:
        self._on_path("qwen")
        self.env |= {
            "OPENAI_API_KEY": key,
            "OPENAI_BASE_URL": f"{self.rig.url}/v1",
            "OPENAI_MODEL": "stand-in",
        }
        return "qwen"

    def gemini(self, *, key: str) -> str:
        self._on_path("gemini")
        folder = self.home / ".gemini"
        folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
        }
        (folder / "settings.json").write_text(json.dumps(settings))
        self.env |= {"GEMINI_API_KEY": key, "GOOGLE_GEMINI_BASE_URL": self.rig.url}
        return "gemini"

    def echo(self, *names: str) -> list[str]:
        """Fixture pools that obey ``echo:`` lines in the prompt; their names."""
        homes = {}
        for name in names:
            folder = self.root / "echo" / name
            folder.mkdir(parents=True, exist_ok=True)
            homes[name] = str(folder)
        state = self.bull / "state.json"
        known = json.loads(state.read_text()) if state.exists() else {}
        echo = known.setdefault("providers", {}).setdefault("echo", {})
        echo["enabled"] = True
        echo["homes"] = list(dict.fromkeys([*echo.get("homes", []), *homes.values()]))
        known.setdefault("config", {}).setdefault("workerCap", 64)
        known.setdefault("admission", {}).setdefault("capPerPool", 100)
        state.write_text(json.dumps(known))
        return [f"echo:{name}" for name in names]

    def meter(self, name: str, *windows: dict[str, Any]) -> None:
        """What an echo pool's meter reads."""
        path = self.root / "echo" / name / "meter.json"
        path.write_text(json.dumps({"windows": list(windows)}))

    def _on_path(self, cli: str) -> None:
        folder = str(cli_folder(cli))
        if folder not in self.env["PATH"].split(os.pathsep):
            self.env["PATH"] = folder + os.pathsep + self.env["PATH"]

    # bullswarm

    def bullswarm(self, *args: str, timeout: float = 150.0, stdin: str | None = None) -> Ran:
        """Run bullswarm in the working folder."""
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "bullswarm", *args],
            cwd=self.work,
            env=self.env,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        return Ran(done.returncode, done.stdout, done.stderr, time.monotonic() - began)

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Start bullswarm and let it run."""
        return subprocess.Popen(
            [sys.executable, "-m", "bullswarm", *args],
            cwd=self.work,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def alive(self) -> list[str]:
        """Command lines of processes that still run for an attempt of this world's runs."""
        found = []
        mark = f"BULLSWARM_HOME={self.bull}".encode()
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                block = (folder / "environ").read_bytes().split(b"\0")
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                line = (
                    (folder / "cmdline")
                    .read_bytes()
                    .replace(b"\0", b" ")
                    .decode(errors="replace")
                    .strip()
                )
            except OSError:
                continue
            attempt = any(entry.startswith(b"BULLSWARM_ATTEMPT=") for entry in block)
            if state != "Z" and mark in block and attempt:
                found.append(line)
        return found
