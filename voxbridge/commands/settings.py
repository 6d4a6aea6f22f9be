"""Display of the settings: as the page of the documentation, and as a table with the current values.

Owns the words around them. The settings themselves are in `voxbridge.shared.config`. Secrets are never printed.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from rich.table import Table
from rich.text import Text

from voxbridge.shared.config import Config
from voxbridge.shared.setting import env_name, shown

_HEAD: Final = """# Configuration

Every setting is an environment variable, read once when a process starts. A value that cannot be read ends the process with
one line that names the variable and what was expected. `voxbridge config` shows the values in force.
This page is printed by `voxbridge config --markdown`.

"""
_TAIL: Final = """
## Keys of providers

`GEMINI_API_KEY` (or `GOOGLE_API_KEY`), `ANTHROPIC_API_KEY`, `OPENAI_API_KEY`, `ASSEMBLYAI_API_KEY` and `ELEVENLABS_API_KEY`, and
`VOXBRIDGE_KEY_<NAME>` for an endpoint of `VOXBRIDGE_ENDPOINTS` (`VOXBRIDGE_KEY_MY_OWN` for `my-own`). A key that is stored with
`voxbridge keys set` goes before them ([operations.md](operations.md), "Keys").

## Setting up

`deploy/bootstrap.py` and the tools it calls also honour:

| variable | meaning |
|---|---|
| `UV_DEFAULT_INDEX`, `UV_INDEX_URL` or `PIP_INDEX_URL` | The Python package index that uv is fetched from when it is not installed. |
| `HTTPS_PROXY`, `NO_PROXY` | The proxy to the package indexes and the models' hub. |
| `SSL_CERT_FILE` | The certificates to trust, where the system's do not do. |

## Examples

```sh
VOXBRIDGE_PORT=9000 make up                      # another port
VOXBRIDGE_DATA_DIR=/var/lib/voxbridge make up    # another folder for the log
VOXBRIDGE_MODELS_SET=small make up               # for machines with little memory
VOXBRIDGE_LLM_URL=http://127.0.0.1:11434/v1 VOXBRIDGE_LLM_MODEL=qwen2.5:7b make up
```
"""


def document(settings: str) -> str:
    """Return the whole of `docs/configuration.md`, with the table of settings in the middle."""
    return f"{_HEAD}{settings}{_TAIL}"


def table(config: Config) -> Table:
    """Return a table of all settings with their current values; changed values are bold."""
    grid = Table("variable", "value", "meaning", show_lines=False)
    for setting in fields(Config):
        value, default = getattr(config, setting.name), setting.default
        text = "set" if setting.metadata["secret"] and value else shown(str(value))
        grid.add_row(Text(env_name(setting)), Text(text, style="bold" if value != default else ""), Text(setting.metadata["help"]))
    return grid
