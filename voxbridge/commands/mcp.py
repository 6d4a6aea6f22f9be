"""`voxbridge mcp`: sessions, replays and functions for a coding assistant. Owns the words of this command."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from voxbridge.shared.errors import Code, VoxbridgeError

INSTRUCTIONS = (
    "Voice sessions of a Voxbridge installation, from its event log. Begin with list_sessions; `last` names the newest one. "
    "For a silence, or a call that went wrong, ask explain_silence."
)
_NO_KEY = (
    "voxbridge mcp asks the gateway with a token, and there is none: set VOXBRIDGE_TOKEN to what `voxbridge token` prints, "
    "or give --token-file."
)


@click.command("mcp")
@click.option("--url", envvar="VOXBRIDGE_URL", default="http://127.0.0.1:8420", show_default=True, help="Address of the gateway.")
@click.option("--token-file", type=click.Path(path_type=Path, dir_okay=False), help="File with the token; else VOXBRIDGE_TOKEN holds it.")
@click.option("--token", envvar="VOXBRIDGE_TOKEN", default="", hidden=True)
def mcp(url: str, token_file: Path | None, token: str) -> None:
    """Serve sessions, replays and functions to a coding assistant over the Model Context Protocol.

    \b
    Examples:
      claude mcp add voxbridge --env VOXBRIDGE_TOKEN=… -- voxbridge mcp
      voxbridge mcp --url https://voice.example --token-file ~/.voxbridge-token

    It speaks on standard input and output, and is started by the assistant. It may do what the token may do over REST:
    an access token reads the sessions of its account, the administrators' token everything (docs/mcp.md).
    """
    from importlib.metadata import version

    from voxbridge.assistant.rest import Rest
    from voxbridge.assistant.stdio import Server
    from voxbridge.assistant.tools import tools

    key = _key(token_file, token)
    server = Server(tools(Rest(url, key)), version=version("voxbridge"), instructions=INSTRUCTIONS, output=sys.stdout.buffer)
    server.serve(sys.stdin.buffer)


def _key(token_file: Path | None, token: str) -> str:
    if token_file is not None:
        try:
            token = token_file.expanduser().read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise VoxbridgeError(
                Code.INVALID_ARGUMENT, f"The token in {token_file} cannot be read: {error}.", field="token-file"
            ) from error
    if not token.strip().isprintable() or not token.strip():
        raise VoxbridgeError(Code.INVALID_ARGUMENT, _NO_KEY, field="token")
    return token.strip()
