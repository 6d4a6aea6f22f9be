"""Definitions of programs that terminals run: built-in rows, and those that people add, in a file.

Owns the rows and the file. A row names a program, the manifest of its questions (`core.screen_questions`), and which integration it is
started with.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

import msgspec

from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.terminals.model import Definition, Offer, Submit

LIMIT: Final = 64
"""Definitions that may be added."""

VARIABLES: Final = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "PATH", "EDITOR", "VISUAL", "PAGER")
"""Variables that every terminal is given. Keys and tokens reach a program only by the row that names them."""

BUILT_IN: Final = (
    Definition(id="bash", title="Bash", kind="shell", command=("bash",), integration="bash", get="apt install bash", built_in=True,
               submit=Submit(proof_ms=5_000)),  # its mark comes for certain, unless the line is not whole yet
    Definition(id="zsh", title="Zsh", kind="shell", command=("zsh", "-i"), integration="zsh", get="apt install zsh", built_in=True,
               submit=Submit(proof_ms=5_000)),
    Definition(id="fish", title="Fish", kind="shell", command=("fish", "-i"), integration="fish", get="apt install fish", built_in=True,
               submit=Submit(proof_ms=5_000)),
    Definition(id="sh", title="Shell", kind="shell", command=("sh", "-i"), get="apt install dash", built_in=True),
    Definition(id="python", title="Python", kind="repl", command=("python3", "-q"), get="apt install python3", built_in=True),
    Definition(id="claude", title="Claude Code", kind="agent", command=("claude",), resume=("claude", "--continue"), built_in=True,
               approve="1", get="npm install -g @anthropic-ai/claude-code"),
    Definition(id="codex", title="Codex", kind="agent", command=("codex",), resume=("codex", "resume", "--last"), built_in=True,
               get="npm install -g @openai/codex"),
    Definition(id="gemini", title="Gemini CLI", kind="agent", command=("gemini",), built_in=True, approve="enter",
               get="npm install -g @google/gemini-cli"),
    Definition(id="cursor", title="Cursor CLI", kind="agent", command=("cursor-agent",), resume=("cursor-agent", "resume"), built_in=True,
               get="curl https://cursor.com/install -fsS | bash"),
    Definition(id="opencode", title="OpenCode", kind="agent", command=("opencode",), resume=("opencode", "--continue"), built_in=True,
               approve="enter", get="npm install -g opencode-ai"),
    Definition(id="aider", title="Aider", kind="agent", command=("aider",), get="pipx install aider-chat", approve="enter", built_in=True),
)  # fmt: skip


class Definitions:
    """The rows of a host."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._added: dict[str, Definition] = {}
        try:
            self._added = msgspec.json.decode(path.read_bytes(), type=dict[str, Definition])
        except FileNotFoundError:
            pass
        except msgspec.MsgspecError as error:
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{path} cannot be read: {error}. Mend it, or remove it.") from error

    def get(self, name: str) -> Definition:
        """Return a definition. Raises `NOT_FOUND` naming those that are there."""
        for one in BUILT_IN:
            if one.id == name:
                return one
        if name in self._added:
            return self._added[name]
        known = ", ".join([*(one.id for one in BUILT_IN), *self._added])
        raise VoxbridgeError(Code.NOT_FOUND, f"There is no definition {name}. There are {known}.", field="definition")

    def offers(self) -> tuple[Offer, ...]:
        """Return every definition with the place of its program."""
        return tuple(offer(one) for one in (*BUILT_IN, *self._added.values()))

    def add(self, definition: Definition) -> None:
        """Add a definition, or change one that was added. Raises `PERMISSION_DENIED` for the name of a built-in one, and `TOO_LARGE`."""
        if any(one.id == definition.id for one in BUILT_IN):
            raise VoxbridgeError(Code.PERMISSION_DENIED, f"{definition.id} is built in; choose another id.", field="definition.id")
        if len(self._added) >= LIMIT and definition.id not in self._added:
            raise VoxbridgeError(Code.TOO_LARGE, f"{LIMIT} definitions may be added; remove one.", limit=LIMIT)
        self._write({**self._added, definition.id: msgspec.structs.replace(definition, built_in=False)})

    def remove(self, name: str) -> None:
        """Remove a definition that was added. Raises `NOT_FOUND`."""
        if name not in self._added:
            raise VoxbridgeError(Code.NOT_FOUND, f"No definition {name} was added.", field="definition")
        self._write({one: row for one, row in self._added.items() if one != name})

    def _write(self, rows: dict[str, Definition]) -> None:
        fresh = self._path.with_suffix(".new")
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(rows)))
        fresh.replace(self._path)
        self._added = rows


def offer(definition: Definition) -> Offer:
    """Return a definition with the place of its program."""
    found = shutil.which(definition.command[0], path=search_path())
    missing = "" if found else f"{definition.title} is not installed here. {f'Get it: {definition.get}' if definition.get else ''}".strip()
    return Offer(definition=definition, program=found or "", missing=missing)


def search_path() -> str:
    """Return where programs are looked for: this process's own path, and where people install theirs."""
    home = Path.home()
    own = [str(home / one) for one in (".local/bin", "bin", ".npm-global/bin")]
    return os.pathsep.join([os.environ.get("PATH", os.defpath), *(one for one in own if Path(one).is_dir())])


def environment(definition: Definition) -> dict[str, str]:
    """Return the environment of a program: the allow-list, what its row names, and nothing of ours."""
    env = {name: os.environ[name] for name in (*VARIABLES, *definition.variables) if name in os.environ}
    env |= {"PATH": search_path(), "TERM": "xterm-256color", "COLORTERM": "truecolor", "TERM_PROGRAM": "voxbridge"}
    env.setdefault("LANG", "C.UTF-8")
    return env | definition.set
