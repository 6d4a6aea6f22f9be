"""Settings of Voxbridge: for each its environment variable, its default and its meaning.

`docs/configuration.md` is printed from this module (`voxbridge config --markdown`), so the two cannot differ. A value that cannot be read
is refused at start with its name and what was expected.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, NamedTuple, get_type_hints

from voxbridge.shared.errors import Code, VoxbridgeError

_URL: Final = (r"(?:https?://[^\s]+)?", "an http:// or https:// URL")
_ENDPOINT: Final = r"\s*(?!(?:gemini|anthropic|openai|local)=)[a-z][a-z0-9-]{0,31}=https?://[^\s,]+\s*"
_ENDPOINTS: Final = (
    rf"(?:{_ENDPOINT}(?:,{_ENDPOINT})*)?",
    "`name=url`, separated by commas, each name of a-z, 0-9 and `-`, and none of gemini, anthropic, openai, local",
)

_PRICE = r"\s*[^\s=,]+=\d{1,6}(?:\.\d{1,6})?/\d{1,6}(?:\.\d{1,6})?\s*"
_PRICES: Final = (rf"(?:{_PRICE}(?:,{_PRICE})*)?", "`model=in/out`, separated by commas, such as `claude-sonnet-5=3/15`")

_HOST = r"\s*[0-9a-zA-Z._-]{1,253}(?::\d{1,5})?\s*"
_HOSTS: Final = (rf"(?:{_HOST}(?:,{_HOST})*)?", "`name` or `name:port`, separated by commas, such as `wiki.example:8090`")

_NETWORK = r"\s*[0-9a-fA-F:.]+(?:/\d{1,3})?\s*"
_NETWORKS: Final = (rf"(?:{_NETWORK}(?:,{_NETWORK})*)?", "addresses or networks, separated by commas, such as `10.0.0.0/8`")


def _setting(
    default: Any,
    text: str,
    *,
    low: float | None = None,
    high: float | None = None,
    secret: bool = False,
    form: tuple[str, str] = ("(?s:.*)", ""),
    blank: bool = False,
) -> Any:
    """Declare a setting. `form` is a pattern and its description; with `blank`, an empty variable means empty and not unset."""
    return field(default=default, metadata={"help": text, "low": low, "high": high, "secret": secret, "form": form, "blank": blank})


class Recording(NamedTuple):
    """Limits of the recorded audio that is kept: its age in hours, and bytes."""

    hours: int
    max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings. The environment variable of a field is `VOXBRIDGE_` and its name in capitals."""

    host: str = _setting("127.0.0.1", "Address the gateway listens on. Loopback until you say otherwise.")
    port: int = _setting(8420, "Port the gateway listens on.", low=1, high=65_535)
    data_dir: Path = _setting(Path(".voxbridge"), "Folder of the event log, Valkey's file, process logs and the supervisor's lock.")
    models_dir: Path = _setting(Path("~/.cache/voxbridge/models"), "Folder of model weights, shared by checkouts.")
    models_source: str = _setting("auto", "Where weights come from: `auto`, `package`, `hub`, or a folder that holds the files.")
    models_set: str = _setting(
        "default",
        "Which models: `default`, or `small` for machines with little memory or few cores.",
        form=("default|small", "`default` or `small`"),
    )
    allowed_origins: str = _setting("", "Origins that may open sockets, separated by commas, beside the gateway's own loopback ones.")
    allowed_hosts: str = _setting("", "Host names the gateway answers to, separated by commas, beside loopback ones.")
    trusted_proxies: str = _setting(
        "",
        "Addresses or networks of proxies, separated by commas, whose `X-Forwarded-For` says where a socket came from.",
        form=_NETWORKS,
    )
    sockets_per_address: int = _setting(
        200,
        "Connections that one address may hold at a time; this machine's own and those of trusted proxies are not counted.",
        low=1,
        high=65_536,
    )
    log_level: str = _setting(
        "info", "`debug`, `info`, `warning` or `error`.", form=("debug|info|warning|error", "`debug`, `info`, `warning` or `error`")
    )

    nats_url: str = _setting(
        "", "NATS server, or several of one cluster separated by commas. Empty: the embedded one, on a free loopback port."
    )
    redis_url: str = _setting(
        "",
        "Valkey or Redis server. Empty: the embedded one, on a socket in the data folder.",
        secret=True,
        form=(r"(?:(?:redis|rediss|unix)://\S+)?", "a redis://, rediss:// or unix:// URL"),
    )
    nats_seed_file: str = _setting("", "File with the nkey seed that this process signs in to NATS with. Empty: the URL says who it is.")
    redis_password_file: str = _setting("", "File with the password for `VOXBRIDGE_REDIS_URL`, where the URL has none.")
    sync_interval: str = _setting(
        "always",
        "When the embedded NATS server syncs events to disk: `always`, or a duration such as `100ms`.",
        form=(r"always|\d+(?:ms|s|m)", "`always` or a duration such as `100ms`"),
    )
    event_retention_days: int = _setting(
        0, "Days that events are kept. Unset: 30 in a new log, and what an existing one has.", low=1, high=3_650
    )
    replicas: str = _setting(
        "",
        "Servers that hold each event: `1`, or `3` where `VOXBRIDGE_NATS_URL` names a cluster. Unset: 1 in a new log, and what an existing "
        "one has.",
        form=("1|3", "`1` or `3`"),
    )

    agents_dir: Path = _setting(Path("agents"), "Folder of agents and pipelines.")
    workspace_dirs: str = _setting(
        "",
        f"Folders that functions may read files from and write files into, separated by `{os.pathsep}`; what is new goes into the first. "
        "Empty: `workspace` in the data folder, made when it is needed.",
    )
    playbooks_dir: Path = _setting(Path("playbooks"), "Folder of playbooks: Markdown files that `search_playbooks` searches.")
    workflows_dir: Path = _setting(Path("workflows"), "Folder of workflows: JSON files, each a document of steps (docs/macros.md).")
    endpoints: str = _setting("", "OpenAI-compatible endpoints that agents may name, `name=url` separated by commas.", form=_ENDPOINTS)
    prices: str = _setting(
        "",
        "What models cost, `model=in/out` separated by commas, US$ for a million tokens in and out: Studio shows about what calls cost.",
        form=_PRICES,
    )
    vault_key_file: str = _setting(
        "",
        "File with the key that opens the keys of providers and of recordings; made if it is missing. Only the voice service needs it. "
        "Empty: `vault.key` in the data folder.",
    )
    vault_public_key_file: str = _setting(
        "",
        "File with the public half of the vault key, which only seals: all that the gateway has. Empty: `vault.pub` in the data folder.",
    )
    admin_token_file: str = _setting(
        "",
        "File with the token of administrators, asked for where others than this machine may reach the gateway; made if it is missing. "
        "Empty: `admin.token` in the data folder.",
    )

    recording: str = _setting(
        "off",
        "`off`: no audio is kept. `allow`: that of sessions whose agent or client asks for it. `on`: that of every session where neither "
        "refuses. Encrypted, both voices; only with the consent of those who are heard.",
        form=("off|allow|on", "`off`, `allow` or `on`"),
    )
    recording_hours: int = _setting(24, "Hours that recorded audio is kept.", low=1, high=8_760)
    recording_mb: int = _setting(2_048, "Megabytes of recorded audio that are kept; the oldest goes first.", low=16, high=1_000_000)

    stt_url: str = _setting("", "OpenAI-compatible base URL for transcription. Empty: the models service.", form=_URL)
    stt_key: str = _setting("", "Key for `VOXBRIDGE_STT_URL`.", secret=True)
    language: str = _setting("en", "Language that is spoken, as an ISO 639-1 code.")
    stt_model: str = _setting("whisper", "Model name sent to the transcription endpoint.")
    llm_url: str = _setting("", "OpenAI-compatible base URL for chat completions. Empty: the models service.", form=_URL)
    llm_key: str = _setting("", "Key for `VOXBRIDGE_LLM_URL`.", secret=True)
    llm_model: str = _setting("local", "Model name sent to the chat endpoint when a session names none.")
    tts_url: str = _setting("", "OpenAI-compatible base URL for speech. Empty: the models service.", form=_URL)
    tts_key: str = _setting("", "Key for `VOXBRIDGE_TTS_URL`.", secret=True)
    tts_model: str = _setting("piper", "Model name sent to the speech endpoint.")
    models_url: str = _setting("", "Base URL of the models service. Empty: the port below on loopback.", form=_URL)
    llm_threads: int = _setting(
        0,
        "Threads of the local language model. 0: one for each core, up to four; they sleep where they wait for each other.",
        low=0,
        high=64,
    )
    models_host: str = _setting("127.0.0.1", "Address the models service listens on. Loopback until you say otherwise.")
    models_port: int = _setting(8421, "Port of the models service.", low=1, high=65_535)

    gateway_url: str = _setting(
        "",
        "Where this machine finds the gateway, for the commands that ask it. Empty: at the address and port that it listens on.",
        form=_URL,
    )

    greeting: str = _setting("Hi, I'm listening.", "What the agent says when a session opens. Empty: nothing.", blank=True)
    filler: str = _setting(
        "on",
        "`on`: a wait for a model or a function of more than 1.2 s is covered by a few words, where neither the agent nor the session "
        "says otherwise.",
        form=("on|off", "`on` or `off`"),
    )
    voice_workers: int = _setting(
        2, "Voice workers that `voxbridge up` keeps. With two, one that is killed is followed within a second by the other.", low=1, high=16
    )
    session_hours: int = _setting(12, "Hours after which a call is ended.", low=1, high=168)
    session_events: int = _setting(500_000, "Events that the workers of a call may write before it is ended.", low=1_000, high=100_000_000)
    session_mb: int = _setting(64, "Megabytes that a client may write into the log over one connection.", low=1, high=10_000)
    session_events_per_s: int = _setting(
        50, "Events a second that a client may write into the log, and four times as many at once.", low=5, high=10_000
    )
    session_kb_per_s: int = _setting(
        64, "Kilobytes a second that a client may write into the log, and a megabyte at once.", low=8, high=100_000
    )
    account_events_per_s: int = _setting(
        4_000, "Events a second that all clients of an account may write through one gateway.", low=5, high=1_000_000
    )
    account_kb_per_s: int = _setting(
        4_000, "Kilobytes a second that all clients of an account may write through one gateway.", low=8, high=1_000_000
    )
    starts_per_s: int = _setting(
        50, "Calls that may begin in a second on one gateway, and four times as many at once.", low=1, high=100_000
    )
    log_mb: int = _setting(
        10_000,
        "Megabytes that the events may have. From 80 % on it is said, from 95 % on no call begins; less than the server's "
        "`max_file_store` (16 GB).",
        low=16,
        high=100_000_000,
    )
    max_sessions: int = _setting(400, "Sessions one voice process takes at a time.", low=1, high=10_000)
    idle_timeout_s: int = _setting(600, "Seconds without speech, text or an answer after which a session ends.", low=5, high=86_400)
    turn_timeout_s: int = _setting(30, "Seconds a model may stay silent in a turn before the agent says so.", low=2, high=600)
    model_patience_s: int = _setting(
        8,
        "Seconds a model may be away in a turn, and is asked again, before the agent says that it cannot answer; speech recognition twice "
        "as long, as the user would have to say everything again.",
        low=0,
        high=60,
    )
    resume_window_s: int = _setting(
        120, "Seconds a session waits for a client whose connection was lost and that can resume it.", low=1, high=86_400
    )
    tool_timeout_s: int = _setting(30, "Seconds a function may take unless it declares its own limit.", low=1, high=3_600)
    mcp_file: str = _setting("", "File (YAML) of the MCP servers whose tools agents can use; docs/mcp.md has its form. Empty: none.")
    tool_rounds: int = _setting(
        5, "Rounds of function calls in a turn, after which the model has to answer with what it has.", low=1, high=20
    )
    tool_keys: str = _setting(
        "",
        "Variables with keys of providers that functions use, separated by commas: `voxbridge up` gives the tools service no other key.",
    )
    fetch_hosts: str = _setting(
        "",
        "Hosts, `name` or `name:port` separated by commas, that functions may fetch from although their addresses are private; a port "
        "beside 80, 443, 8000, 8080 and 8443 must be named.",
        form=_HOSTS,
    )
    tool_packs: str = _setting(
        "",
        "Packs of functions that agents may call: modules, or names that installed packages give them, separated by commas; "
        "`built-in` stands for those of Voxbridge. Empty: `built-in`.",
    )

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, Path):
                object.__setattr__(self, f.name, value.expanduser())

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Config:
        """Read the environment; raises `INVALID_ARGUMENT` that names the variable, the value and the range."""
        source = os.environ if env is None else env
        hints = get_type_hints(cls)
        known = {env_name(f): f for f in fields(cls)}
        values = {
            f.name: _read(name, f, hints[f.name], source[name])
            for name, f in known.items()
            if source.get(name) or (f.metadata["blank"] and name in source)
        }
        return cls(**values)

    def as_env(self) -> dict[str, str]:
        """Return the environment that gives this configuration again, for child processes."""
        usual = Config()
        return {env_name(f): str(getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != getattr(usual, f.name)}

    @property
    def workspace_paths(self) -> tuple[Path, ...]:
        """Folders that functions may read files from and write files into."""
        named = tuple(Path(part).expanduser() for part in self.workspace_dirs.split(os.pathsep) if part.strip())
        return named or (self.data_dir / "workspace",)

    @property
    def record(self) -> Recording | None:
        """Limits of the recorded audio that is kept; None while recording is off."""
        return Recording(hours=self.recording_hours, max_bytes=self.recording_mb * 1_000_000) if self.recording != "off" else None

    @property
    def replica_count(self) -> int:
        """Number of servers that should hold each event; 0 leaves it as it is."""
        return int(self.replicas or 0)

    @property
    def named_endpoints(self) -> dict[str, str]:
        """Base URLs of the endpoints that agents may name, by name, without a trailing slash."""
        pairs = (part.strip().partition("=") for part in self.endpoints.split(",") if part.strip())
        return {name: url.rstrip("/") for name, _, url in pairs}

    @property
    def price_list(self) -> dict[str, tuple[float, float]]:
        """US$ for a million tokens, in and out, by model name."""
        pairs = (part.strip().partition("=") for part in self.prices.split(",") if part.strip())
        return {model: (float(price.partition("/")[0]), float(price.partition("/")[2])) for model, _, price in pairs}

    @property
    def vault_key_path(self) -> Path:
        """Path of the vault key."""
        return Path(self.vault_key_file).expanduser() if self.vault_key_file else self.data_dir / "vault.key"

    @property
    def vault_public_key_path(self) -> Path:
        """Path of the public half of the vault key."""
        return Path(self.vault_public_key_file).expanduser() if self.vault_public_key_file else self.data_dir / "vault.pub"

    @property
    def admin_token_path(self) -> Path:
        """Path of the administrators' token."""
        return Path(self.admin_token_file).expanduser() if self.admin_token_file else self.data_dir / "admin.token"

    @property
    def own_url(self) -> str:
        """URL at which a browser on this machine finds a gateway with these settings; without a trailing slash."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::", "") else self.host  # noqa: S104 - compared, not bound
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def gateway_base_url(self) -> str:
        """URL at which the commands find the gateway, without a trailing slash."""
        return self.gateway_url.rstrip("/") or self.own_url

    @property
    def models_base_url(self) -> str:
        """Base URL of the models service, without a trailing slash and with `/v1`."""
        return self.models_url.rstrip("/") or f"http://127.0.0.1:{self.models_port}/v1"


PREFIX: Final = "VOXBRIDGE_"
_SIGNED_IN: Final = re.compile(r"//(\S*)@")
_QUERY: Final = re.compile(r"\?\S+$")
_BETWEEN: Final = re.compile(r",(?=\s*(?:[\w.-]+=)?\w+://)")
KEY_PREFIX: Final = f"{PREFIX}KEY_"
"""Prefix of the variables that hold the keys of named endpoints; they are no settings, and are never shown."""


def env_name(f: Field[Any]) -> str:
    """Return the environment variable of a field."""
    return PREFIX + f.name.upper()


def shown(text: str) -> str:
    """Return a setting as it may be printed: each URL in it without password, token and query."""
    return ",".join(_QUERY.sub("?…", _SIGNED_IN.sub(_without_password, part)) if "//" in part else part for part in _BETWEEN.split(text))


def _without_password(found: re.Match[str]) -> str:
    user, colon, _ = found[1].partition(":")
    return f"//{user}:…@" if colon else "//…@"


def _read(name: str, f: Field[Any], kind: type, text: str) -> Any:
    if kind is Path:
        return Path(text)
    if kind is not int:
        pattern, expected = f.metadata["form"]
        if re.fullmatch(pattern, text) is None:
            given = "not that" if f.metadata["secret"] else repr(shown(text))
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{name} must be {expected}; it is {given}.", field=name, limit=expected)
        return text
    low, high = f.metadata["low"], f.metadata["high"]
    try:
        value = int(text)
    except ValueError:
        value = None
    if value is None or not low <= value <= high:
        raise VoxbridgeError(
            Code.INVALID_ARGUMENT,
            f"{name} must be a whole number from {low} to {high}; it is {text!r}.",
            field=name,
            limit=f"{low}..{high}",
        )
    return value


def as_markdown() -> str:
    """Build the table of `docs/configuration.md`."""
    hints = get_type_hints(Config)
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for f in fields(Config):
        unset = f.default == "" or (f.default == 0 and (f.metadata["low"] or 0) > 0)
        default = "(empty)" if unset else f"`{f.default}`"
        limits = f" ({f.metadata['low']} to {f.metadata['high']:,})" if hints[f.name] is int else ""
        rows.append(f"| `{env_name(f)}` | {default} | {f.metadata['help']}{limits} |")
    return "\n".join(rows) + "\n"
