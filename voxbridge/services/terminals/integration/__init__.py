"""Integrations: how a shell is started so that it says itself when a command begins and ends."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from voxbridge.shared.terminals.model import Definition

NONCE: Final = "VOXBRIDGE_NONCE"
"""Variable of the nonce with which a shell signs its marks. The integrations of bash and zsh unset it before anything runs, that of fish
behind the user's own files: fish reads nothing before them."""

_HERE: Final = Path(__file__).parent


def started(definition: Definition, command: tuple[str, ...], nonce: str) -> tuple[list[str], dict[str, str]]:
    """Return a command with the integration of its definition, and the variables for it. A user's files that turn it off, as a system's
    /etc/zsh/zshenv does that names another ZDOTDIR, leave a shell whose state is read from silence."""
    if not definition.integration or command != definition.command:
        return list(command), {}
    match definition.integration:
        case "bash":
            return [*command, "--rcfile", str(_HERE / "bash.sh"), "-i"], {NONCE: nonce}
        case "zsh":
            return [*command], {NONCE: nonce, "ZDOTDIR": str(_HERE / "zsh")}
        case "fish":
            return [*command, "--init-command", 'source "$VOXBRIDGE_INTEGRATION"'], {
                NONCE: nonce,
                "VOXBRIDGE_INTEGRATION": str(_HERE / "fish.fish"),
            }
        case _:
            return list(command), {}
