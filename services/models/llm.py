"""The language model: llama.cpp in this process, asked through its own HTTP server on a loopback port behind a random key.

Owns the engine, its slots and its request format. A request whose caller goes away closes its connection, and the engine
drops the work after the token it is at. A crash of the engine takes this process with it; the supervisor starts it again.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
import xllamacpp

from services.models.core import Prompt
from services.models.slots import Slots
from shared.errors import Code, Unavailable, VoxbridgeError

SLOTS: Final = 3
CONTEXT_TOKENS: Final = 4_096
"""Tokens of one slot: prompt and answer together."""
FIRST_TOKEN_TIMEOUT_S: Final = 60.0


class Sampling(msgspec.Struct, frozen=True):
    """How an answer is drawn. `grammar` is GBNF; `max_tokens` bounds the answer."""

    grammar: str = ""
    max_tokens: int = 512
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = -1
    stop: tuple[str, ...] = ()
    favour: tuple[tuple[str, float], ...] = ()
    """Texts whose tokens are made likelier, and by how much (added to their logits)."""


class Step(msgspec.Struct, frozen=True):
    """Further text of an answer; the last one has `reason` (`stop` or `length`) and the counts of tokens."""

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


_LINE: Final = msgspec.json.Decoder(_Line)


class Llm:
    """A loaded model. Make it with `load`, from a thread: it takes seconds."""

    def __init__(self, server: Any, key: str) -> None:
        self._server = server
        self._headers = {"Authorization": f"Bearer {key}"}
        self.slots = Slots(SLOTS)
        # The engine closes kept connections without a word, so each request has its own.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        timeout = httpx.Timeout(FIRST_TOKEN_TIMEOUT_S, connect=5.0)
        self._client = httpx.AsyncClient(base_url=server.listening_address, limits=limits, timeout=timeout, trust_env=False)

    @classmethod
    def load(cls, weights: Path, threads: int) -> Llm:
        """Load the weights; blocks for seconds. Raises `UNAVAILABLE`."""
        key = secrets.token_urlsafe(32)
        params = xllamacpp.CommonParams()
        params.model.path = str(weights)
        params.n_ctx, params.n_parallel = CONTEXT_TOKENS * SLOTS, SLOTS
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
        params.api_keys = [key]
        params.ui, params.endpoint_slots, params.offline = False, True, True
        # Slots are chosen here, so the engine's own store of idle prompts would only take memory.
        params.cache_ram_mib, params.cache_idle_slots = 0, False
        params.verbosity = -1
        try:
            server = xllamacpp.Server(params)
        except RuntimeError as error:
            raise Unavailable(f"llama.cpp cannot load {weights.name}: {error}") from error
        return cls(server, key)

    async def generate(self, prompt: Prompt, sampling: Sampling) -> AsyncGenerator[Step]:
        """Write an answer; close the iterator to stop. Raises `TOO_LARGE`, `INVALID_ARGUMENT`, `TIMED_OUT`, `UNAVAILABLE`."""
        async with self.slots.hold(prompt.family) as slot:
            body = {
                "prompt": prompt.text,
                "id_slot": slot,
                "cache_prompt": True,
                "stream": True,
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
            try:
                async with self._client.stream("POST", "/completion", json=body, headers=self._headers) as answer:
                    if answer.status_code != httpx.codes.OK:
                        raise _refusal(await answer.aread())
                    async for line in answer.aiter_lines():
                        if line.startswith("data: "):
                            yield _step(line[6:])
                        elif line.startswith("error: "):
                            raise _refusal(line[7:].encode())
            except httpx.TimeoutException as error:
                raise VoxbridgeError(Code.TIMED_OUT, f"The language model gave no token within {FIRST_TOKEN_TIMEOUT_S:.0f} s.") from error
            except httpx.HTTPError as error:
                raise Unavailable(f"The language model's engine does not answer: {error or type(error).__name__}.") from error

    async def busy_slots(self) -> int:
        """Slots that the engine itself says are at work."""
        answer = await self._client.get("/slots", headers=self._headers)
        states: Sequence[dict[str, Any]] = answer.raise_for_status().json()
        return sum(bool(state["is_processing"]) for state in states)

    async def close(self) -> None:
        """Close the connections; the engine ends with the process."""
        await self._client.aclose()


def _step(text: str) -> Step:
    line = _LINE.decode(text)
    if line.error is not None:
        raise _refusal(msgspec.json.encode({"error": line.error}))
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
