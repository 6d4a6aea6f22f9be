"""Integrations: how a program is started so that it says itself when a command begins and ends."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from voxbridge.shared.terminals.model import Definition

NONCE: Final = "VOXBRIDGE_NONCE"
"""Variable of the nonce with which a shell signs its marks; the shell's integration unsets it before anything runs."""

_BASH: Final = Path(__file__).with_name("bash.sh")


def started(definition: Definition, command: tuple[str, ...], nonce: str) -> tuple[list[str], dict[str, str]]:
    """Return a command with the integration of its definition, and the variables for it. zsh and fish have none yet: their state is read
    from the marks that they or their users' files write, and from silence."""
    if definition.integration == "bash" and command == definition.command:
        return [*command, "--rcfile", str(_BASH), "-i"], {NONCE: nonce}
    return list(command), {}
