"""The table of the package `wordllama`, for those who accept the licence that binds it.

The package says MIT; its table is distilled of LLaMA 2 70B and others, and the LLaMA 2 Community License binds what is made of that model.
So it is never the default, is not shipped, and is used only where `VOXBRIDGE_EMBEDDINGS_TABLE` names the licence. The package is installed
by the operator (`pip install wordllama==0.4.0.post1`) and never imported: its two files are read, if they have the digests below.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

import numpy as np
from tokenizers import Tokenizer

from voxbridge.services.models.embedding import static
from voxbridge.shared.errors import Code, VoxbridgeError

SETTING: Final = "VOXBRIDGE_EMBEDDINGS_TABLE"
CHOSEN: Final = "wordllama:llama2-community"
NAME: Final = "wordllama-256"
VECTORS: Final = ("wordllama/weights/l2_supercat_256.safetensors", "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5")
TOKENIZER: Final = (
    "wordllama/tokenizers/l2_supercat_tokenizer_config.json",
    "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
)


def chosen(setting: str) -> static.StaticVectors:
    """Return the table of a setting. Raises `INVALID_ARGUMENT` for another one, `UNAVAILABLE` where the files are not those named here."""
    if not setting:
        return static.table()
    if setting != CHOSEN:
        message = f"{SETTING} is {setting!r}; it is empty, or `{CHOSEN}`, by which you accept the licence of that table."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=SETTING)
    return _table()


@cache
def _table() -> static.StaticVectors:
    data = _bytes(*VECTORS)
    size = int.from_bytes(data[:8], "little")
    entry = json.loads(data[8 : 8 + size])["embedding.weight"]
    vectors = np.frombuffer(data[8 + size :], np.float16).reshape(entry["shape"]).astype(np.float32)
    tokenizer = Tokenizer.from_str(_bytes(*TOKENIZER).decode())
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return static.StaticVectors(NAME, VECTORS[1], vectors, tokenizer)


def _bytes(member: str, digest: str) -> bytes:
    try:
        data = Path(str(distribution("wordllama").locate_file(member))).read_bytes()
    except (PackageNotFoundError, OSError) as error:
        message = f"{SETTING} asks for wordllama, which is not installed here: pip install wordllama==0.4.0.post1."
        raise VoxbridgeError(Code.UNAVAILABLE, message, field=SETTING, retryable=False) from error
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        message = f"{member} of wordllama has SHA-256 {found}, not {digest}: install wordllama==0.4.0.post1."
        raise VoxbridgeError(Code.UNAVAILABLE, message, field=SETTING, retryable=False)
    return data
