from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.shared.config import Config, as_markdown, unknown
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.setting import env_name

HINTS = get_type_hints(Config)
BOUNDED = [f for f in fields(Config) if HINTS[f.name] is int]


def test_an_empty_environment_gives_the_defaults() -> None:
    assert Config.from_env({}) == Config()
    assert Config.from_env({env_name(f): "" for f in fields(Config) if f.name != "greeting"}) == Config()
    assert Config().as_env() == {}
    assert (Config().host, Config().port) == ("127.0.0.1", 8420)


def test_an_empty_greeting_means_no_greeting() -> None:
    silent = Config.from_env({"VOXBRIDGE_GREETING": ""})
    assert silent.greeting == ""
    assert Config.from_env(silent.as_env()) == silent


def test_a_variable_that_is_not_a_setting_is_named_with_the_one_that_was_meant() -> None:
    env = {"VOXBRIDGE_PROT": "9000", "VOXBRIDGE_LLM_URI": "x", "VOXBRIDGE_SPEED_OF_LIGHT": "1", "PATH": "x", "VOXBRIDGE_PORT": "1"}
    assert unknown(env) == {
        "VOXBRIDGE_LLM_URI": "Did you mean VOXBRIDGE_LLM_URL?",
        "VOXBRIDGE_PROT": "Did you mean VOXBRIDGE_PORT?",
        "VOXBRIDGE_SPEED_OF_LIGHT": "`voxbridge config` lists all settings.",
    }
    elsewhere = ("KEY_GROQ", "TAG", "TOKEN", "TERMINAL_SECRET", "TEST_SEED")
    assert unknown({f"VOXBRIDGE_{name}": "x" for name in elsewhere} | {env_name(f): "" for f in fields(Config)}) == {}


def test_folders_begin_at_the_home_that_they_name() -> None:
    assert Config().models_dir == Path.home() / ".cache/voxbridge/models"
    assert Config.from_env({"VOXBRIDGE_DATA_DIR": "~/data"}).data_dir == Path.home() / "data"


@pytest.mark.parametrize("field", BOUNDED, ids=lambda f: f.name)
def test_a_number_is_taken_within_its_bounds_and_refused_by_name_outside(field: object) -> None:
    [f] = [one for one in fields(Config) if one is field]
    low, high = f.metadata["low"], f.metadata["high"]
    for value in (low, high):
        taken = getattr(Config.from_env({env_name(f): str(value)}), f.name)
        assert taken == (Config().models_port if (f.name, value) == ("models_port", 0) else value)
    for text in (str(low - 1), str(high + 1), "many", "1.5", "0x10", "-"):
        with pytest.raises(VoxbridgeError) as caught:
            Config.from_env({env_name(f): text})
        assert (caught.value.code, caught.value.field, caught.value.limit) == (Code.INVALID_ARGUMENT, env_name(f), f"{low}..{high}")
        assert env_name(f) in caught.value.message
        assert text in caught.value.message


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("LOG_LEVEL", "debug", "loud"),
        ("MODELS_SET", "small", "huge"),
        ("SYNC_INTERVAL", "100ms", "always }\nport: 1"),
        ("SYNC_INTERVAL", "always", "often"),
        ("STT_URL", "https://stt.example/v1", "stt.example"),
        ("LLM_URL", "http://127.0.0.1:1/v1", "ftp://x"),
        ("TTS_URL", "http://x", "http://"),
        ("MODELS_URL", "http://x", "/v1"),
        ("REDIS_URL", "unix:///run/valkey.sock?db=0", "http://x"),
        ("ENDPOINTS", "groq=https://g/v1, my-own=http://127.0.0.1:1/v1", "https://g/v1"),
        ("ENDPOINTS", "a=http://x", "a=http://x,"),
        ("ENDPOINTS", "a=http://x", "openai=http://x"),
        ("ENDPOINTS", "a" * 32 + "=http://x", "a" * 33 + "=http://x"),
        ("PRICES", "claude-sonnet-5=3/15, m:8b=0.5/2.25", "claude-sonnet-5=3"),
        ("PRICES", "a=999999/1", "a=1000000/1"),
        ("PRICES", "a=3/15", "a=3/15;b=1/2"),
        ("PRICES", "a=3/15", "a=-3/15"),
    ],
)
def test_a_value_of_the_wrong_form_is_refused_by_name(name: str, good: str, bad: str) -> None:
    variable = f"VOXBRIDGE_{name}"
    assert getattr(Config.from_env({variable: good}), name.lower()) == good
    with pytest.raises(VoxbridgeError) as caught:
        Config.from_env({variable: bad})
    assert (caught.value.code, caught.value.field) == (Code.INVALID_ARGUMENT, variable)
    assert variable in caught.value.message


def test_a_secret_that_is_refused_is_not_shown() -> None:
    with pytest.raises(VoxbridgeError) as caught:
        Config.from_env({"VOXBRIDGE_REDIS_URL": "hunter2"})
    assert "hunter2" not in caught.value.message


@given(
    port=st.integers(1, 65_535),
    greeting=st.text(st.characters(codec="utf-8", exclude_characters="\0")),
    origins=st.text(),
    folder=st.text("ab/ ", min_size=1),
    level=st.sampled_from(["debug", "error"]),
)
def test_the_environment_of_a_configuration_gives_it_again(port: int, greeting: str, origins: str, folder: str, level: str) -> None:
    config = Config(port=port, greeting=greeting, allowed_origins=origins, data_dir=Path(folder), log_level=level)
    assert Config.from_env(config.as_env()) == config


def test_the_documentation_names_every_setting_its_default_and_its_bounds() -> None:
    rows = as_markdown().splitlines()[2:]
    assert len(rows) == len(fields(Config))
    for f, row in zip(fields(Config), rows, strict=True):
        assert f"`{env_name(f)}`" in row
        assert f.metadata["help"] in row
        assert str(f.default) in row
        if f in BOUNDED:
            assert f"({f.metadata['low']} to {f.metadata['high']:,})" in row


def test_the_models_service_has_the_port_after_the_gateway_s_unless_it_is_named() -> None:
    assert (Config().models_port, Config(port=9000).models_port, Config(port=65_535).models_port) == (8421, 9001, 65_534)
    named = Config(port=9000, models_port=8421)
    assert Config.from_env(named.as_env()) == named
    assert Config.from_env({"VOXBRIDGE_PORT": "9000"}).models_port == 9001


def test_the_models_base_url_is_the_local_one_unless_set() -> None:
    assert Config(models_port=9).models_base_url == "http://127.0.0.1:9/v1"
    assert Config(models_url="http://m/v1/").models_base_url == "http://m/v1"


def test_endpoints_are_known_by_their_names() -> None:
    named = Config(endpoints="groq=https://g/v1/, my-own=http://127.0.0.1:1/v1?a=b").named_endpoints
    assert named == {"groq": "https://g/v1", "my-own": "http://127.0.0.1:1/v1?a=b"}
    assert Config().named_endpoints == {}


def test_prices_are_known_by_the_names_of_models() -> None:
    assert Config(prices="claude-sonnet-5=3/15, gemini-3.8-live=0.5/2.25").price_list == {
        "claude-sonnet-5": (3.0, 15.0),
        "gemini-3.8-live": (0.5, 2.25),
    }
    assert Config().price_list == {}


def test_the_files_of_secrets_are_in_the_data_folder_unless_named() -> None:
    usual = Config(data_dir=Path("/data"))
    assert (usual.vault_key_path, usual.admin_token_path) == (Path("/data/vault.key"), Path("/data/admin.token"))
    named = Config(vault_key_file="~/k", admin_token_file="/run/t")
    assert (named.vault_key_path, named.admin_token_path) == (Path.home() / "k", Path("/run/t"))
