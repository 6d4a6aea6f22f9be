"""Settings of Voxbridge: for each its environment variable, its default and its meaning.

`docs/configuration.md` is printed from this module (`voxbridge config --markdown`), so the two cannot differ. A value that cannot be read
is refused at start with its name and what was expected.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple, get_type_hints

from voxbridge.shared.setting import ENDPOINTS, HOSTS, NETWORKS, PREFIX, PRICES, TIME_ZONE, URL, env_name, read, setting

_LAST_PORT: Final = 65_535
_NO_SETTINGS: Final = re.compile(
    PREFIX + r"(KEY_\w+|TEST_\w+|BENCH_\w+|BIND|CHROMIUM|MODELS_MEMORY|NATS_IMAGE|SEED|TAG|TERMINAL_SECRET|TOKEN|URL|VALKEY_IMAGE)"
)
"""Variables that begin like settings and are read elsewhere: by named endpoints, commands, terminals, compose and tests."""


_ALIKE: Final = 0.85
"""Likeness of two names from which one may be a slip of the other."""


class Recording(NamedTuple):
    """Limits of the recorded audio that is kept: its age in hours, and bytes."""

    hours: int
    max_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings. The environment variable of a field is `VOXBRIDGE_` and its name in capitals."""

    host: str = setting("127.0.0.1", "Address the gateway listens on. Loopback until you say otherwise.")
    port: int = setting(8420, "Port the gateway listens on.", low=1, high=_LAST_PORT)
    data_dir: Path = setting(Path(".voxbridge"), "Folder of the event log, Valkey's file, process logs and the supervisor's lock.")
    models_dir: Path = setting(Path("~/.cache/voxbridge/models"), "Folder of model weights, shared by checkouts.")
    models_source: str = setting("auto", "Where weights come from: `auto`, `package`, `hub`, or a folder that holds the files.")
    models_set: str = setting(
        "default",
        "Which models: `default`, or `small` for machines with little memory or few cores.",
        form=("default|small", "`default` or `small`"),
    )
    allowed_origins: str = setting("", "Origins that may open sockets, separated by commas, beside the gateway's own loopback ones.")
    allowed_hosts: str = setting("", "Host names the gateway answers to, separated by commas, beside loopback ones.")
    trusted_proxies: str = setting(
        "",
        "Addresses or networks of proxies, separated by commas, whose `X-Forwarded-For` says where a socket came from.",
        form=NETWORKS,
    )
    sockets_per_address: int = setting(
        200,
        "Connections that one address may hold at a time; this machine's own and those of trusted proxies are not counted.",
        low=1,
        high=65_536,
    )
    log_level: str = setting(
        "info", "`debug`, `info`, `warning` or `error`.", form=("debug|info|warning|error", "`debug`, `info`, `warning` or `error`")
    )

    nats_url: str = setting(
        "", "NATS server, or several of one cluster separated by commas. Empty: the embedded one, on a free loopback port."
    )
    redis_url: str = setting(
        "",
        "Valkey or Redis server. Empty: the embedded one, on a socket in the data folder.",
        secret=True,
        form=(r"(?:(?:redis|rediss|unix)://\S+)?", "a redis://, rediss:// or unix:// URL"),
    )
    nats_seed_file: str = setting("", "File with the nkey seed that this process signs in to NATS with. Empty: the URL says who it is.")
    redis_password_file: str = setting("", "File with the password for `VOXBRIDGE_REDIS_URL`, where the URL has none.")
    sync_interval: str = setting(
        "always",
        "When the embedded NATS server syncs events to disk: `always`, or a duration such as `100ms`.",
        form=(r"always|\d+(?:ms|s|m)", "`always` or a duration such as `100ms`"),
    )
    event_retention_days: int = setting(
        0, "Days that events are kept. Unset: 30 in a new log, and what an existing one has.", low=1, high=3_650
    )
    replicas: str = setting(
        "",
        "Servers that hold each event: `1`, or `3` where `VOXBRIDGE_NATS_URL` names a cluster. Unset: 1 in a new log, and what an existing "
        "one has.",
        form=("1|3", "`1` or `3`"),
    )

    agents_dir: Path = setting(Path("agents"), "Folder of agents and pipelines.")
    workspace_dirs: str = setting(
        "",
        f"Folders that functions may read files from and write files into, separated by `{os.pathsep}`; what is new goes into the first. "
        "Empty: `workspace` in the data folder, made when it is needed.",
    )
    playbooks_dir: Path = setting(Path("playbooks"), "Folder of playbooks: Markdown files that `search_playbooks` searches.")
    tours_dir: Path = setting(Path("tours"), "Folder of guided tours: JSON files, one for each page (docs/tours.md).")
    workflows_dir: Path = setting(Path("workflows"), "Folder of workflows: JSON files, each a document of steps (docs/macros.md).")
    knowledge_dir: str = setting("", "Folder of the knowledge graphs. Empty: `knowledge` in the data folder.")
    knowledge_reading: int = setting(
        200, "Passages of a knowledge graph that the language model reads while no call is live; 0: none.", low=0, high=200_000
    )
    terminals_dir: str = setting("", "Folder of the terminals, this user's alone. Empty: `terminals` in the data folder.")
    terminal_screens_hours: int = setting(
        24, "Hours for which what terminals show is kept, for the timeline of calls. 0: it is not kept.", low=0, high=8_760
    )
    terminal_screens_mb: int = setting(256, "Megabytes of what terminals show that are kept; the oldest goes first.", low=8, high=1_000_000)
    endpoints: str = setting("", "OpenAI-compatible endpoints that agents may name, `name=url` separated by commas.", form=ENDPOINTS)
    prices: str = setting(
        "",
        "What models cost, `model=in/out` separated by commas, US$ for a million tokens in and out: Studio shows about what calls cost.",
        form=PRICES,
    )
    vault_key_file: str = setting(
        "",
        "File with the key that opens the keys of providers and of recordings; made if it is missing. Only the voice service needs it. "
        "Empty: `vault.key` in the data folder.",
    )
    vault_public_key_file: str = setting(
        "",
        "File with the public half of the vault key, which only seals: all that the gateway has. Empty: `vault.pub` in the data folder.",
    )
    secrets_key_file: str = setting(
        "",
        "File with the key that opens the secrets of handlers; made if it is missing. Only the tools service needs it. Empty: "
        "`secrets.key` in the data folder.",
    )
    secrets_public_key_file: str = setting(
        "",
        "File with the public half of the key of secrets, which only seals: all that the gateway has. Empty: `secrets.pub` in the data "
        "folder.",
    )
    admin_token_file: str = setting(
        "",
        "File with the token of administrators, asked for where others than this machine may reach the gateway; made if it is missing. "
        "Empty: `admin.token` in the data folder.",
    )

    recording: str = setting(
        "off",
        "`off`: no audio is kept. `allow`: that of sessions whose agent or client asks for it. `on`: that of every session where neither "
        "refuses. Encrypted, both voices; only with the consent of those who are heard.",
        form=("off|allow|on", "`off`, `allow` or `on`"),
    )
    recording_hours: int = setting(24, "Hours that recorded audio is kept.", low=1, high=8_760)
    recording_mb: int = setting(2_048, "Megabytes of recorded audio that are kept; the oldest goes first.", low=16, high=1_000_000)

    stt_url: str = setting("", "OpenAI-compatible base URL for transcription. Empty: the models service.", form=URL)
    stt_key: str = setting("", "Key for `VOXBRIDGE_STT_URL`.", secret=True)
    language: str = setting("en", "Language that is spoken, as an ISO 639-1 code.")
    time_zone: str = setting("", "Time zone of callers that tell none, such as `Europe/Lisbon`. Empty: this machine's.", form=TIME_ZONE)
    stt_model: str = setting("whisper", "Model name sent to the transcription endpoint.")
    llm_url: str = setting("", "OpenAI-compatible base URL for chat completions. Empty: the models service.", form=URL)
    llm_key: str = setting("", "Key for `VOXBRIDGE_LLM_URL`.", secret=True)
    llm_model: str = setting("local", "Model name sent to the chat endpoint when a session names none.")
    tts_url: str = setting("", "OpenAI-compatible base URL for speech. Empty: the models service.", form=URL)
    tts_key: str = setting("", "Key for `VOXBRIDGE_TTS_URL`.", secret=True)
    tts_model: str = setting("piper", "Model name sent to the speech endpoint.")
    embeddings_url: str = setting("", "OpenAI-compatible base URL for embeddings. Empty: the models service.", form=URL)
    embeddings_key: str = setting("", "Key for `VOXBRIDGE_EMBEDDINGS_URL`.", secret=True)
    embeddings_model: str = setting("embeddings", "Model name sent there; `off`: knowledge graphs are searched by words alone.")
    embeddings_table: str = setting("", "Table of the models service: empty, its own; `wordllama:llama2-community`, see docs/models.md.")
    models_url: str = setting("", "Base URL of the models service. Empty: the port below on loopback.", form=URL)
    llm_threads: int = setting(
        0,
        "Threads of the local language model. 0: one for each core, up to four; they sleep where they wait for each other.",
        low=0,
        high=64,
    )
    models_host: str = setting("127.0.0.1", "Address the models service listens on. Loopback until you say otherwise.")
    models_port: int = setting(
        0, "Port of the models service. 0: the port after the gateway's, 8421 where that is not set.", low=0, high=_LAST_PORT
    )

    gateway_url: str = setting(
        "",
        "Where this machine finds the gateway, for the commands that ask it. Empty: at the address and port that it listens on.",
        form=URL,
    )

    greeting: str = setting("Hi, I'm listening.", "What the agent says when a session opens. Empty: nothing.", blank=True)
    filler: str = setting(
        "on",
        "`on`: a wait for a model or a function of more than 1.2 s is covered by a few words, where neither the agent nor the session "
        "says otherwise.",
        form=("on|off", "`on` or `off`"),
    )
    voice_workers: int = setting(
        2, "Voice workers that `voxbridge up` keeps. With two, one that is killed is followed within a second by the other.", low=1, high=16
    )
    session_hours: int = setting(12, "Hours after which a call is ended.", low=1, high=168)
    session_events: int = setting(500_000, "Events that the workers of a call may write before it is ended.", low=1_000, high=100_000_000)
    session_mb: int = setting(64, "Megabytes that a client may write into the log over one connection.", low=1, high=10_000)
    session_events_per_s: int = setting(
        50, "Events a second that a client may write into the log, and four times as many at once.", low=5, high=10_000
    )
    session_kb_per_s: int = setting(
        64, "Kilobytes a second that a client may write into the log, and a megabyte at once.", low=8, high=100_000
    )
    account_events_per_s: int = setting(
        4_000, "Events a second that all clients of an account may write through one gateway.", low=5, high=1_000_000
    )
    account_kb_per_s: int = setting(
        4_000, "Kilobytes a second that all clients of an account may write through one gateway.", low=8, high=1_000_000
    )
    starts_per_s: int = setting(50, "Calls that may begin in a second on one gateway, and four times as many at once.", low=1, high=100_000)
    log_mb: int = setting(
        10_000,
        "Megabytes that the events may have. From 80 % on it is said, from 95 % on no call begins; less than the server's "
        "`max_file_store` (16 GB).",
        low=16,
        high=100_000_000,
    )
    max_sessions: int = setting(400, "Sessions one voice process takes at a time.", low=1, high=10_000)
    idle_timeout_s: int = setting(600, "Seconds without speech, text or an answer after which a session ends.", low=5, high=86_400)
    turn_timeout_s: int = setting(30, "Seconds a model may stay silent in a turn before the agent says so.", low=2, high=600)
    model_patience_s: int = setting(
        8,
        "Seconds a model may be away in a turn, and is asked again, before the agent says that it cannot answer; speech recognition twice "
        "as long, as the user would have to say everything again.",
        low=0,
        high=60,
    )
    resume_window_s: int = setting(
        120, "Seconds a session waits for a client whose connection was lost and that can resume it.", low=1, high=86_400
    )
    tool_timeout_s: int = setting(30, "Seconds a function may take unless it declares its own limit.", low=1, high=3_600)
    mcp_file: str = setting("", "File (YAML) of the MCP servers whose tools agents can use; docs/mcp.md has its form. Empty: none.")
    tool_rounds: int = setting(
        5, "Rounds of function calls in a turn, after which the model has to answer with what it has.", low=1, high=20
    )
    tool_keys: str = setting(
        "",
        "Variables with keys of providers that functions use, separated by commas: `voxbridge up` gives the tools service no other key.",
    )
    fetch_hosts: str = setting(
        "",
        "Hosts, `name` or `name:port` separated by commas, that functions may fetch from although their addresses are private; a port "
        "beside 80, 443, 8000, 8080 and 8443 must be named.",
        form=HOSTS,
    )
    tool_packs: str = setting(
        "",
        "Packs of functions that agents may call: modules, or names that installed packages give them, separated by commas; "
        "`built-in` stands for those of Voxbridge. Empty: `built-in`.",
    )

    def __post_init__(self) -> None:
        if self.models_port == 0:  # so that two installations with ports of their own do not meet at this one
            object.__setattr__(self, "models_port", self.port + 1 if self.port < _LAST_PORT else self.port - 1)
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
            f.name: read(name, f, hints[f.name], source[name])
            for name, f in known.items()
            if source.get(name) or (f.metadata["blank"] and name in source)
        }
        return cls(**values)

    def as_env(self) -> dict[str, str]:
        """Return the environment that gives this configuration again, for child processes."""
        # A port of the models service that was named stays that one, whatever the gateway's port is.
        usual = replace(Config(port=self.port), port=Config().port)
        return {env_name(f): str(getattr(self, f.name)) for f in fields(self) if getattr(self, f.name) != getattr(usual, f.name)}

    @property
    def workspace_paths(self) -> tuple[Path, ...]:
        """Folders that functions may read files from and write files into."""
        named = tuple(Path(part).expanduser() for part in self.workspace_dirs.split(os.pathsep) if part.strip())
        return named or (self.data_dir / "workspace",)

    @property
    def knowledge_path(self) -> Path:
        """Folder of the knowledge graphs."""
        return Path(self.knowledge_dir).expanduser() if self.knowledge_dir else self.data_dir / "knowledge"

    @property
    def terminals_path(self) -> Path:
        """Folder of the terminals: their records and last bytes, and the socket of the process that holds them."""
        return Path(self.terminals_dir).expanduser() if self.terminals_dir else self.data_dir / "terminals"

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
    def secrets_key_path(self) -> Path:
        """Path of the key that opens secrets."""
        return Path(self.secrets_key_file).expanduser() if self.secrets_key_file else self.data_dir / "secrets.key"

    @property
    def secrets_public_key_path(self) -> Path:
        """Path of the public half of the key of secrets."""
        return Path(self.secrets_public_key_file).expanduser() if self.secrets_public_key_file else self.data_dir / "secrets.pub"

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


def unknown(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that look like settings and are not, each with what to do about it."""
    known = [env_name(f) for f in fields(Config)]
    found = {}
    for name in sorted(env):
        if name.startswith(PREFIX) and name not in known and not _NO_SETTINGS.fullmatch(name):
            meant = get_close_matches(name, known, 1, _ALIKE)
            found[name] = f"Did you mean {meant[0]}?" if meant else "`voxbridge config` lists all settings."
    return found


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
