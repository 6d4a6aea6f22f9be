"""The language model: llama.cpp in its own process, asked over HTTP on a loopback port with a random key.

Owns the slots, the prompts saved from them, and the request format. When a caller goes away, its connection is closed, and the engine stops
after the current token or batch: it is asked to tell its progress, because it notices a closed connection when it writes, and otherwise
looks once a second. A crash of the engine fails the answers in progress; the engine is started again.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec

from voxbridge.services.models.core.chatml import Prompt
from voxbridge.services.models.engines import llama
from voxbridge.services.models.engines.prompt_cache import Prompts, digest
from voxbridge.services.models.engines.slots import Slots
from voxbridge.services.models.processes.engine_process import Child, Launch, fingerprint, free_port
from voxbridge.services.models.processes.home import Home
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError

SLOTS: Final = 3
CONTEXT_TOKENS: Final = 4_096
"""Tokens of one slot: prompt and answer together."""
FIRST_TOKEN_TIMEOUT_S: Final = 60.0
READ_TIMEOUT_S: Final = 300.0
"""Seconds to read the beginning of a prompt; a thousand tokens take a small machine 20 to 60."""

TALKED_S: Final = 60.0
"""Seconds after an answer for which its conversation is not driven out of its slot by one that nobody waits for."""

SLOT_TIMEOUT_S: Final = 10.0
"""Seconds to write a slot to disk or to read it back; a file has 17 MB for 600 tokens."""

_log = logging.getLogger(__name__)


class Sampling(msgspec.Struct, frozen=True):
    """Sampling parameters of an answer. `grammar` is GBNF; `max_tokens` limits the answer."""

    grammar: str = ""
    max_tokens: int = 512
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = -1
    stop: tuple[str, ...] = ()
    favour: tuple[tuple[str, float], ...] = ()
    """Texts whose tokens are made more likely, and the amount added to their logits."""


class Step(msgspec.Struct, frozen=True):
    """A further piece of an answer. The last piece has `reason` (`stop` or `length`) and the token counts."""

    text: str
    reason: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0


class _Timings(msgspec.Struct, frozen=True):
    cache_n: int = 0
    prompt_n: int = 0


class _Line(msgspec.Struct, frozen=True):
    content: str = ""
    stop: bool = False
    stop_type: str = ""
    tokens_predicted: int = 0
    tokens_evaluated: int = 0
    timings: _Timings = _Timings()
    error: dict[str, Any] | None = None
    prompt_progress: dict[str, Any] | None = None
    """Given in a line that says only how much of the prompt was read."""


_LINE: Final = msgspec.json.Decoder(_Line)


class _Noted(msgspec.Struct, frozen=True):
    """The families in the slots of the engine at `url`."""

    url: str
    families: tuple[str | None, ...]


class Llm(Child):
    """A llama.cpp process with one model. `start` returns when it serves, which takes seconds."""

    name = "llama.cpp"
    start_timeout_s = 120.0

    def __init__(self, home: Home, weights: Path, threads: int, *, sha256: str = "") -> None:
        """Prepare the engine. `sha256` is the digest of the weights: prompts on disk are used only with the same weights."""
        super().__init__(home)
        self._weights = weights
        self._threads = threads
        self.prompts = Prompts(home.prompts, (version("xllamacpp"), sha256 or fingerprint(weights), CONTEXT_TOKENS))
        self._keeps = self.prompts.open()
        self._at_first: dict[int, bool] = {}
        self._read: dict[int, str] = {}
        """The family that each slot has read whole, by its digest."""

        self._talked: dict[int, tuple[str, float]] = {}
        """The last prompt that a slot answered, and when, seconds of the loop."""

        self.slots = Slots(SLOTS)
        # The engine closes idle connections without notice, so each request has its own.
        self._client = httpx.AsyncClient(
            limits=httpx.Limits(max_keepalive_connections=0),
            timeout=httpx.Timeout(FIRST_TOKEN_TIMEOUT_S, connect=5.0),
            trust_env=False,
            verify=False,  # noqa: S501 - there is no TLS on loopback, and its certificates take time to load
        )

    def identity(self) -> tuple[object, ...]:
        """Return the weights, the settings, and the version of the code that runs them."""
        code = fingerprint(Path(llama.__file__))
        return (version("xllamacpp"), code, fingerprint(self._weights), self._threads, SLOTS, CONTEXT_TOKENS, self._saved_to())

    def launch(self) -> Launch:
        """Return the command of a Python process that runs the engine."""
        port, key = free_port(), secrets.token_urlsafe(32)
        settings = llama.Settings(str(self._weights), key, port, self._threads, SLOTS, CONTEXT_TOKENS, self._saved_to())
        return Launch(
            command=(sys.executable, "-m", "voxbridge.services.models.engines.llama"),
            url=f"http://127.0.0.1:{port}",
            key=key,
            input=msgspec.json.encode(settings) + b"\n",
        )

    async def serves(self) -> bool:
        """Ask the engine whether it serves, and restore the slots' families."""
        answer = await self._client.get(f"{self.url}/slots", headers=self._door())
        if answer.status_code != httpx.codes.OK:
            return False
        try:
            noted = msgspec.json.decode(self._home.noted(self.name), type=_Noted)
        except msgspec.DecodeError:
            noted = _Noted("", ())
        self.slots = Slots(SLOTS, noted.families if noted.url == self.url else (), self._note)
        self._read.clear()
        self._talked.clear()
        return True

    @property
    def reading(self) -> bool:
        """True while a prompt is being read for the first time."""
        return any(first and self.slots.is_busy(index) for index, first in self._at_first.items())

    def knows(self, family: str) -> bool:
        """Tell whether a prompt that begins with `family` is answered without reading that beginning: it is in a slot, or on disk."""
        return digest(family) in self._read.values() or (self._keeps and self.prompts.has(family))

    def _note(self, families: Sequence[str | None]) -> None:
        self._home.note(self.name, msgspec.json.encode(_Noted(self.url, tuple(families))))

    def _saved_to(self) -> str:
        return str(self.prompts.folder) if self._keeps else ""

    def _door(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    async def generate(self, prompt: Prompt, sampling: Sampling, *, keep: bool = False) -> AsyncGenerator[Step]:
        """Generate an answer; close the iterator to stop. With `keep`, the beginning that the prompt shares with others of its family is
        saved to disk. Raises `TOO_LARGE`, `INVALID_ARGUMENT`, `TIMED_OUT`, `UNAVAILABLE`."""
        await self.up()
        async with self._slot_for(prompt.family, prompt) as slot:
            if keep and self._keeps and not self.prompts.has(prompt.family):
                await self._read_family(slot, prompt.family, keep=True)
            body = {
                "prompt": prompt.text,
                "id_slot": slot,
                "cache_prompt": True,
                "stream": True,
                "return_progress": True,
                "n_predict": sampling.max_tokens,
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "seed": sampling.seed,
                "stop": ["<|im_end|>", *sampling.stop],
            }
            if sampling.favour:
                body["logit_bias"] = sampling.favour
            if sampling.grammar:
                body["grammar"] = sampling.grammar
            until = asyncio.get_running_loop().time() + FIRST_TOKEN_TIMEOUT_S
            try:
                async with self._client.stream("POST", f"{self.url}/completion", json=body, headers=self._door()) as answer:
                    if answer.status_code != httpx.codes.OK:
                        raise _refusal(await answer.aread())
                    async for line in answer.aiter_lines():
                        if line.startswith("data: "):
                            step = _step(line[6:])
                            if step is None:
                                if asyncio.get_running_loop().time() > until:
                                    raise _late()
                                continue
                            self._at_first.pop(slot, None)
                            self._read[slot] = digest(prompt.family)
                            self._talked[slot] = (prompt.text, asyncio.get_running_loop().time())
                            yield step
                        elif line.startswith("error: "):
                            raise _refusal(line[7:].encode())
            except httpx.TimeoutException as error:
                raise _late() from error
            except httpx.HTTPError as error:
                raise Unavailable(f"The language model's engine does not answer: {error or type(error).__name__}.") from error

    async def read_on(self, prompt: Prompt) -> None:
        """Read a conversation up to its end, if its beginning was read before and no other one is held in its slot. Cancelled, it stops
        after the current batch of tokens, and the next request for the conversation goes on from there. Raises `UNAVAILABLE`."""
        await self.up()
        if not self.knows(prompt.family):
            return
        async with self._slot_for(prompt.family) as slot:
            mine = self._read.get(slot) == digest(prompt.family) and not self._is_anothers(slot, prompt)
            if mine and not await self._process(slot, prompt.text):
                raise Unavailable("The language model's engine could not read a prompt.")

    def _is_anothers(self, slot: int, prompt: Prompt | None = None) -> bool:
        """Tell whether a slot holds a conversation that went on a moment ago, and of which a prompt, if one is given, has not even half."""
        said, at = self._talked.get(slot, ("", float("-inf")))
        if asyncio.get_running_loop().time() - at >= TALKED_S:
            return False
        return prompt is None or 2 * (_common(said, prompt.text) - len(prompt.family)) < len(said) - len(prompt.family)

    async def read(self, family: str, *, keep: bool = False) -> None:
        """Read the beginning of prompts, unless that was done: a conversation that was read behind it stays. With `keep`, save it to disk.
        Cancelled, it stops after the current batch of tokens, and the next request for this family goes on from there. Raises
        `UNAVAILABLE`."""
        await self.up()
        async with self._slot_for(family) as slot:
            if not self.knows(family) and not await self._read_family(slot, family, keep=keep and self._keeps):
                raise Unavailable("The language model's engine could not read a prompt.")

    @asynccontextmanager
    async def _slot_for(self, family: str, live: Prompt | None = None) -> AsyncIterator[int]:
        """Hold a slot of a family for the block, restored from disk where it was saved. A `live` conversation takes a further slot rather
        than that of another one, if the family can be had from the disk and nobody talks in the slot."""

        def suits(slot: int) -> bool:
            return live is None or not self._is_anothers(slot, live)

        def spare(slot: int) -> bool:
            return live is not None and self._keeps and self.prompts.has(family) and not self._is_anothers(slot)

        async with self.slots.hold(digest(family), suits, spare) as held:
            if held.fresh:
                self._read.pop(held.index, None)
                self._talked.pop(held.index, None)
                await self._begin(held.index, family)
            self._at_first[held.index] = held.fresh and held.index not in self._read
            yield held.index

    async def _begin(self, slot: int, family: str) -> None:
        """Fill a slot from the disk, if there is such a file."""
        try:
            if self._keeps and await self._restore(slot, family):
                self._read[slot] = digest(family)
        except BaseException:  # a live request stopped the one for which it was restored: the next one restores it again
            self.slots.forget(slot)
            raise

    async def _read_family(self, slot: int, family: str, *, keep: bool) -> bool:
        """Have a slot read only the family, before any word of the conversation. Return whether it did; if not, the family is read as part
        of the request. With `keep` it is saved to disk: the file then holds nothing that a user said."""
        if not await self._process(slot, family):
            return False
        self._read[slot] = digest(family)
        if keep:
            await self._save(slot, family)
        return True

    async def _process(self, slot: int, text: str) -> bool:
        """Have a slot read a text, and write nothing. Return whether it did."""
        body = {"prompt": text, "id_slot": slot, "cache_prompt": True, "n_predict": 0, "temperature": 0.0}
        body |= {"stream": True, "return_progress": True}
        read = False
        try:
            async with (
                asyncio.timeout(READ_TIMEOUT_S),
                self._client.stream("POST", f"{self.url}/completion", json=body, headers=self._door(), timeout=READ_TIMEOUT_S) as answer,
            ):
                async for line in answer.aiter_lines():
                    read = read or (line.startswith("data: ") and _LINE.decode(line[6:]).stop)
        except (httpx.HTTPError, TimeoutError) as error:
            _log.debug("a prompt was not read: %s", error or type(error).__name__)
            return False
        return read

    async def _restore(self, slot: int, family: str) -> bool:
        name = await asyncio.to_thread(self.prompts.find, family)
        if name is None:
            return False
        if await self._slot(slot, "restore", name):
            return True
        self.prompts.drop(name)
        return False

    async def _save(self, slot: int, family: str) -> None:
        name = self.prompts.unfinished()
        try:
            if await self._slot(slot, "save", name):
                await asyncio.to_thread(self.prompts.keep, family, name)
        finally:  # also when the caller has gone away
            self.prompts.drop(name)

    async def _slot(self, slot: int, action: str, name: str) -> bool:
        """Save a slot to a file in the folder of prompts, or restore it from there. Return whether that worked."""
        url = f"{self.url}/slots/{slot}?action={action}"
        try:
            answer = await self._client.post(url, json={"filename": name}, headers=self._door(), timeout=SLOT_TIMEOUT_S)
        except httpx.HTTPError as error:
            _log.warning("A prompt could not be %sd: %s", action, error or type(error).__name__)
            return False
        if answer.status_code != httpx.codes.OK:
            _log.warning("A prompt could not be %sd: %s", action, answer.text[:200])
        return answer.status_code == httpx.codes.OK

    async def close(self) -> None:
        """Stop the process."""
        await super().close()
        await self._client.aclose()


def _common(one: str, other: str) -> int:
    """Return the length of the beginning that two texts have in common."""
    return next((place for place, (mine, its) in enumerate(zip(one, other, strict=False)) if mine != its), min(len(one), len(other)))


def _late() -> VoxbridgeError:
    return VoxbridgeError(Code.TIMED_OUT, f"The language model gave no token within {FIRST_TOKEN_TIMEOUT_S:.0f} s.")


def _step(text: str) -> Step | None:
    """Return a piece of an answer; None for a line that tells how much of the prompt was read."""
    line = _LINE.decode(text)
    if line.error is not None:
        raise _refusal(msgspec.json.encode({"error": line.error}))
    if line.prompt_progress is not None:
        return None
    if not line.stop:
        return Step(line.content)
    return Step(
        line.content,
        reason="length" if line.stop_type == "limit" else "stop",
        prompt_tokens=line.tokens_evaluated,
        cached_tokens=line.timings.cache_n,
        answer_tokens=line.tokens_predicted,
    )


def _refusal(body: bytes) -> VoxbridgeError:
    try:
        error = msgspec.json.decode(body)["error"]
        message, kind = str(error["message"]), str(error.get("type", ""))
    except (msgspec.DecodeError, KeyError, TypeError):
        message, kind = body[:200].decode(errors="replace"), ""
    if kind == "exceed_context_size_error":
        return VoxbridgeError(
            Code.TOO_LARGE,
            f"The conversation is longer than the {CONTEXT_TOKENS:,} tokens of the local model.",
            field="messages",
            limit=CONTEXT_TOKENS,
        )
    if kind == "invalid_request_error":
        return VoxbridgeError(Code.INVALID_ARGUMENT, f"The language model's engine refused the request: {message}")
    return Unavailable(f"The language model's engine failed: {message}")
