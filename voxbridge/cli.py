"""The `voxbridge` command: its groups, and how an error ends it.

Owns the command line interface. Groups with heavy imports are loaded when they are called.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Final

import click

from voxbridge.shared.config import Config, as_markdown, unknown
from voxbridge.shared.errors import Code, VoxbridgeError

_LATER: Final = {
    "awareness": ("voxbridge.commands.awareness", "awareness"),
    "bot-chat": ("voxbridge.commands.bot_chat", "bot_chat"),
    "admin": ("voxbridge.commands.admin", "admin"),
    "agents": ("voxbridge.commands.agents", "agents"),
    "doctor": ("voxbridge.doctor.command", "doctor"),
    "erase": ("voxbridge.commands.erase", "erase"),
    "functions": ("voxbridge.commands.functions", "functions"),
    "health": ("voxbridge.commands.health", "health"),
    "ingest": ("voxbridge.commands.ingest", "ingest"),
    "keys": ("voxbridge.commands.keys", "keys"),
    "knowledge": ("voxbridge.commands.knowledge", "knowledge"),
    "mcp": ("voxbridge.commands.mcp", "mcp"),
    "models": ("voxbridge.commands.models", "models"),
    "new-pack": ("voxbridge.commands.functions", "new_pack"),
    "platform": ("voxbridge.commands.platform", "platform"),
    "secrets": ("voxbridge.commands.secrets", "secrets"),
    "sessions": ("voxbridge.commands.sessions", "group"),
    "terminals": ("voxbridge.commands.terminals", "terminals"),
    "token": ("voxbridge.commands.token", "token"),
    "export": ("voxbridge.commands.export", "export_session"),
    "import": ("voxbridge.commands.export", "import_session"),
    "replay": ("voxbridge.commands.replay", "replay_session"),
}


class Commands(click.Group):
    """The top command with its groups; those in `_LATER` are imported when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, sorted."""
        return sorted({*super().list_commands(ctx), *_LATER})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; one whose packages are missing says what to install."""
        if cmd_name in _LATER:
            module, name = _LATER[cmd_name]
            try:
                command = getattr(import_module(module), name)
            except ModuleNotFoundError as error:
                return _Missing(cmd_name, error)
            return command if isinstance(command, click.Command) else None
        return super().get_command(ctx, cmd_name)


class _Missing(click.Command):
    """Command whose libraries are not installed: the package alone has those that every service needs."""

    def __init__(self, name: str, error: ModuleNotFoundError) -> None:
        if (error.name or "voxbridge").partition(".")[0] == "voxbridge":
            raise error
        self._message = f"`voxbridge {name}` needs {error.name}, which is not installed. Run: pip install 'voxbridge[all]'"
        super().__init__(name, short_help="Needs more libraries: pip install 'voxbridge[all]'.", add_help_option=False)
        self.ignore_unknown_options = True
        self.allow_extra_args = True

    def invoke(self, _ctx: click.Context) -> None:
        """Raise UNAVAILABLE with what to install."""
        raise VoxbridgeError(Code.UNAVAILABLE, self._message, retryable=False)

    def parse_args(self, _ctx: click.Context, args: list[str]) -> list[str]:
        """Take any arguments."""
        return args


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(None, "-V", "--version", package_name="voxbridge", message="voxbridge %(version)s")
def cli() -> None:
    """Voice agents on an event log.

    \b
    Examples:
      voxbridge up                       start everything on this machine, on 127.0.0.1:8420
      VOXBRIDGE_PORT=9000 voxbridge up   on another port
      voxbridge config                   every setting, its value and its meaning
      voxbridge models ls                the models, and whether they are here
      voxbridge agents ls                the agents and pipelines, and their models
      voxbridge functions                what agents can do here
      voxbridge ingest docs              put a folder of documents into a knowledge graph
      voxbridge keys set gemini          give it the key of a provider, read from standard input
      voxbridge token --link             let somebody else in, for an hour
      voxbridge doctor                   what is wrong here, and how to mend it
      voxbridge sessions ls              the calls in the log
      voxbridge mcp                      the calls, for a coding assistant
      voxbridge replay SID               take a recorded call again, and see what differs

    Settings are environment variables; docs/configuration.md lists them.
    """


@cli.command()
def up() -> None:
    """Start everything on this machine and keep it running; Ctrl-C stops it.

    \b
    Starts a nats-server and a Valkey on loopback (unless VOXBRIDGE_NATS_URL and VOXBRIDGE_REDIS_URL name others)
    and one process per service, restarts what dies, and says when everything is ready. Each process writes to
    its own file in the folder `logs` of VOXBRIDGE_DATA_DIR.
    """
    try:
        from voxbridge.supervisor.console import Board
        from voxbridge.supervisor.up import up as run
    except ModuleNotFoundError as error:
        _Missing("up", error).invoke(click.get_current_context())
        raise

    for name, do in unknown(os.environ).items():
        click.echo(f"{name} is not a setting. {do}", err=True)
    sys.exit(run(Config.from_env(), Board()))


@cli.command()
@click.option("--markdown", is_flag=True, help="Print docs/configuration.md.")
def config(markdown: bool) -> None:
    """Print every setting, its value here and its meaning.

    \b
    Examples:
      voxbridge config
      voxbridge config --markdown > docs/configuration.md
    """
    from voxbridge.commands.settings import document, table

    if markdown:
        click.echo(document(as_markdown()), nl=False)
    else:
        from rich.console import Console

        Console().print(table(Config.from_env()))


def main() -> None:
    """Run the command. A `VoxbridgeError` ends it with one line on standard error and exit code 1, or 2 for `INVALID_ARGUMENT`."""
    try:
        cli()
    except VoxbridgeError as error:
        click.echo(error.message, err=True)
        sys.exit(2 if error.code == "INVALID_ARGUMENT" else 1)
