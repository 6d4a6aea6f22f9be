"""Checks of the functions: the packs, folders and programs that they need here, and by what the executors say, sensors and differences.

Owns the requests to the executors and the findings. Changes nothing.
"""

from __future__ import annotations

import json
import shutil
from typing import Any, Final

from nats.aio.client import Client
from nats.errors import Error as NatsError

from voxbridge.doctor.finding import Finding, fail, ok, warn
from voxbridge.shared.agents.functions import MCP_FIGURE, PACKS_FIGURE
from voxbridge.shared.config import Config

AREA: Final = "functions"
ANSWER_S: Final = 2.0
NODE: Final = "Node.js"
CHECKSUMS: Final = (PACKS_FIGURE, MCP_FIGURE)
"""Figures that say nothing to people but whether they are the same."""

_THERMAL: Final = "vx.svc.tools.thermal"
_ERROR: Final = "Nats-Service-Error"


def look(config: Config) -> list[Finding]:
    """Return the findings about this machine. Blocks; loads the packs that are named."""
    return [_packs(config), _node(), *_folders(config)]


async def on_the_bus(nc: Client) -> list[Finding]:
    """Return the finding about the sensors of the machine that functions run on; none when no executor answers."""
    try:
        answer = await nc.request(_THERMAL, b"", timeout=ANSWER_S)
        told = json.loads(answer.data)
    except (NatsError, TimeoutError, ValueError):  # the services' own findings report a lost executor
        return []
    if _ERROR in (answer.headers or {}):
        return [ok(AREA, "sensors", str((answer.headers or {})[_ERROR])[:300])]
    return [ok(AREA, "sensors", str(told.get("spoken", ""))[:300])]


def differences(stats: list[dict[str, Any]]) -> list[Finding]:
    """Return a finding where executors were given different packs, and one where they were given different MCP servers, by the figures
    that each tells; none where they have the same."""
    found = []
    if _differ(stats, PACKS_FIGURE):
        counts = _counts(stats, "functions")
        says = f"{len(stats)} executors have different packs (functions: {counts}): a call is refused by one that has no such function."
        found.append(warn(AREA, "packs", says, "Give all of them the same VOXBRIDGE_TOOL_PACKS and release, and restart them."))
    if _differ(stats, MCP_FIGURE):
        counts = _counts(stats, "mcp_servers")
        who = f"{len(stats)} executors were given different MCP servers (servers: {counts})"
        says = f"{who}: what a tool may do, or whether it is there, depends on the one that takes the call."
        do = "Give all of them the same VOXBRIDGE_MCP_FILE, and the variables that it names, and restart them."
        found.append(warn(AREA, "MCP servers", says, do))
    return found


def _differ(stats: list[dict[str, Any]], figure: str) -> bool:
    return len({one[figure] for one in stats if figure in one}) > 1


def _counts(stats: list[dict[str, Any]], figure: str) -> str:
    return ", ".join(sorted(f"{one.get(figure, 0):g}" for one in stats))


def _packs(config: Config) -> Finding:
    if not config.tool_packs:
        return ok(AREA, "packs", "built-in")
    # Where functions run: a container of the commands has nothing of what the packs import.
    from voxbridge.services.tools.loading import usable
    from voxbridge.services.tools.registry import named

    loaded = usable(named(config.tool_packs), timeout_s=config.tool_timeout_s)
    if loaded.left_out:
        do = "The others serve. Install or mend the pack, or correct VOXBRIDGE_TOOL_PACKS, and restart the executors."
        return fail(AREA, "packs", " ".join(loaded.left_out.values()), do)
    return ok(AREA, "packs", f"{len(loaded.tools)} functions of {config.tool_packs}")


def _node() -> Finding:
    if shutil.which("node") is None:
        return ok(AREA, NODE, "is not installed; MCP servers from npm need version 20 or later (https://nodejs.org), nothing else does.")
    return ok(AREA, NODE, "is installed, for MCP servers from npm")


def _folders(config: Config) -> list[Finding]:
    """Return a finding for each folder that was named and is not there; where none was named, none is needed."""
    usual = Config()
    named_ones = (
        ("playbooks", config.playbooks_dir, usual.playbooks_dir, "search_playbooks finds nothing", "VOXBRIDGE_PLAYBOOKS_DIR"),
        ("tours", config.tours_dir, usual.tours_dir, "there are no guided tours", "VOXBRIDGE_TOURS_DIR"),
        ("workflows", config.workflows_dir, usual.workflows_dir, "there are no workflows", "VOXBRIDGE_WORKFLOWS_DIR"),
    )
    return [
        warn(AREA, name, f"{folder.absolute()} is not a folder: {lost}.", f"Make it, or correct {variable}.")
        for name, folder, default, lost, variable in named_ones
        if folder != default and not folder.is_dir()
    ]
