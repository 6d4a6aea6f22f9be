"""The web's objects in the sandbox against those of Node.js: the same values and the same kinds of errors, or a refusal that names them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest

from tests.draws import dice
from tests.npm import environment
from tests.tools.sandbox.conftest import Room

HERE: Final = Path(__file__).parent
PARTS: Final = (
    "https:",
    "http:",
    "//",
    "/",
    "\\",
    "?",
    "#",
    ":",
    "@",
    "[::1]",
    "a",
    "ä",
    "%41",
    "%",
    " ",
    ".",
    "..",
    "1",
    "0x7f",
    "80",
    "\t",
    "&=",
    "+",
)
"""Pieces of random URLs."""

TEXTS: Final = ("", "a", "ä€😀", "\ud800", "a\udc00b", "\u0000", "𝒳", "Zürich", "\u202ex", "e\u0301")
BYTES: Final = ("", "61", "c3a4", "ff", "f09f9880", "efbbbf61", "eda080", "c3", "e282", "6100ff62", "80", "f4908080")
SHOWN: Final = "[u.href, u.origin, u.protocol, u.username, u.password, u.host, u.port, u.pathname, u.search, u.hash, [...u.searchParams]]"
ABSENT: Final = {
    "toLocaleString": "(1234.5).toLocaleString('de')",
    "toLocaleDateString": "new Date(0).toLocaleDateString()",
    "toLocaleTimeString": "new Date(0).toLocaleTimeString('en')",
    "localeCompare": "'a'.localeCompare('b')",
    "toLocaleUpperCase": "'i'.toLocaleUpperCase('tr')",
    "Intl": "new Intl.NumberFormat('de').format(1)",
}
"""Names that a handler is told are not there, each with a use: the sandbox has no data of languages and regions."""

AT_ONCE: Final = 30
RANDOM_URLS: Final = 200


def lines(name: str) -> list[str]:
    """Return the lines of a file beside this one, without its comment."""
    return [line for line in (HERE / name).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


def expressions() -> list[str]:
    """Return the expressions whose values are compared."""
    random = dice("like node")
    urls = lines("urls.txt") + [json.dumps("".join(random.choices(PARTS, k=random.randint(1, 9)))) for _ in range(RANDOM_URLS)]
    found = [f"(() => {{ const u = new URL({url}); return {SHOWN}; }})()" for url in urls]
    found += [f"new URL({url}, 'https://base.example/a/b?c').href" for url in urls]
    for text in TEXTS:
        found += [f"[...new TextEncoder().encode({json.dumps(text)})]", f"encodeURIComponent({json.dumps(text)})"]
    for data in BYTES:
        bytes_ = f"new Uint8Array({list(bytes.fromhex(data))})"
        found += [f"new TextDecoder('utf-8', {{ fatal: {fatal} }}).decode({bytes_})" for fatal in ("false", "true")]
    return found + lines("like_node.txt")


def handler(some: list[str]) -> str:
    """Return a handler that gives for each expression its value, or the name of its error."""
    tries = ", ".join(f"() => ({one})" for one in some)
    return (
        f"async () => {{ const found = []; for (const one of [{tries}]) {{ "
        "try { found.push({ value: (await one()) ?? null }); } catch (error) { found.push({ error: error.name }); } } return found; }"
    )


async def in_node(handlers: list[str]) -> list[Any]:
    """Return what handlers give in Node.js, one after the other."""
    script = f"(async () => {{ const found = []; for (const one of [{', '.join(handlers)}]) found.push(...await one()); return found; }})()"
    script += ".then((found) => process.stdout.write(JSON.stringify(found)))"
    process = await asyncio.create_subprocess_exec(
        "node", "-", env=environment(), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate(script.encode())
    found: list[Any] = json.loads(out)
    return found


async def test_what_is_there_does_as_in_node(room: Room) -> None:
    every = expressions()
    handlers = [handler(every[at : at + AT_ONCE]) for at in range(0, len(every), AT_ONCE)]
    theirs = await in_node(handlers)
    ours = [value for one in handlers for value in await room.value(one)]
    different = [f"{one}: {own}, in Node {other}" for one, own, other in zip(every, ours, theirs, strict=True) if own != other]
    assert not different, "\n".join(different)


@pytest.mark.parametrize("name", ABSENT)
async def test_what_is_not_there_is_named(name: str, room: Room) -> None:
    assert name in await room.failure(f"async () => {ABSENT[name]}")
