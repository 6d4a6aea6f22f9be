from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from voxbridge.cli import cli
from voxbridge.commands.settings import document
from voxbridge.shared.config import Config, as_markdown
from voxbridge.shared.errors import VoxbridgeError


def test_the_configuration_page_is_printed_as_it_is_kept() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"
    assert CliRunner().invoke(cli, ["config", "--markdown"]).output == page.read_text() == document(as_markdown())


def test_config_shows_what_is_in_force_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOXBRIDGE_PORT", "9123")
    monkeypatch.setenv("VOXBRIDGE_LLM_KEY", "do-not-print")
    output = CliRunner().invoke(cli, ["config"]).output
    assert "9123" in output
    assert "do-not-print" not in output


def test_config_shows_no_password_of_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("VOXBRIDGE_NATS_URL", "nats://voice:do-not,pri@nt@one:4222, nats://do-not-print-a-token@two:4222,three:4222")
    monkeypatch.setenv("VOXBRIDGE_REDIS_URL", "redis://voice:do-not-print@valkey:6379/0")
    monkeypatch.setenv("VOXBRIDGE_LLM_URL", "https://person:do-not-print@models.example:8443/v1?key=do-not-print")
    monkeypatch.setenv("VOXBRIDGE_ENDPOINTS", "groq=https://api.groq.com/openai/v1,own=https://me:do-not-print@own.example/v1")
    monkeypatch.setenv("VOXBRIDGE_GREETING", "Hi, how are you? Well?")
    output = CliRunner().invoke(cli, ["config"]).output
    for kept in ("nats://voice:…@one:4222", "nats://…@two:4222,three:4222", "https://person:…@models.example:8443/v1?…"):
        assert kept in output
    assert "groq=https://api.groq.com/openai/v1,own=https://me:…@own.example/v1" in output
    assert "Hi, how are you? Well?" in output
    assert "print" not in output.replace("printable", "")
    assert "do-not" not in output
    monkeypatch.setenv("VOXBRIDGE_LLM_URL", "ftp://person:do-not-print@models.example")
    with pytest.raises(VoxbridgeError) as refused:
        Config.from_env()
    assert "do-not" not in refused.value.message


def test_help_lists_the_commands_with_examples() -> None:
    output = CliRunner().invoke(cli, ["--help"]).output
    for words in ("Examples:", "voxbridge up", "config", "models"):
        assert words in output


def test_the_version_is_the_distributions() -> None:
    assert CliRunner().invoke(cli, ["--version"]).output == "voxbridge 0.1.0\n"


def test_groups_with_heavy_imports_are_loaded_when_they_are_called() -> None:
    code = "import sys; from voxbridge.cli import cli; print(sorted({'voxbridge.services', 'nats', 'httpx', 'rich'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_what_reads_the_log_alone_does_not_load_the_client_of_valkey() -> None:
    names = "{'redis', 'cryptography', 'numpy', 'httpx', 'fastapi'}"
    commands = ", ".join(f"voxbridge.commands.{name}" for name in ("export", "replay", "sessions"))
    code = f"import sys, {commands}; print(sorted({names} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_settings_survive_the_way_to_a_child_process() -> None:
    config = Config(port=9000, greeting="", nats_url="nats://u:p@127.0.0.1:1", data_dir=Path("/x y"))
    assert Config.from_env(config.as_env()) == config
