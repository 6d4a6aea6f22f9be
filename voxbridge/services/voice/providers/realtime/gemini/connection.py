"""Gemini Live behind the interface of realtime models, through the google-genai SDK.

The SDK opens the connection, sets it up and sends rare events. Microphone audio is written and all messages are read directly on the
SDK's socket: the SDK spends about 100 µs on a frame there and back, more than everything else together, and its `receive` ends at
every turn. A crash loses the connection; Google keeps the conversation for the handle.

Close codes of Google, in the order of how often others reported them: 1006 and 1001 for cuts, 1011 for its own errors, quota and the
end of a session, 1007 for data that it cannot take, 1008 for requests that it does not allow (docs/providers.md).
"""

from __future__ import annotations

import asyncio
import logging
import time
from binascii import a2b_base64, b2a_base64
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, Final

import msgspec
from google import genai
from google.genai import errors, types
from websockets.exceptions import ConnectionClosed, InvalidHandshake, WebSocketException

from voxbridge.services.voice.core import capabilities
from voxbridge.services.voice.core import provider_events as said
from voxbridge.services.voice.core.capabilities import Capabilities
from voxbridge.services.voice.providers.realtime.base import Answer, ConnectionLost, Listener, Setup
from voxbridge.services.voice.providers.realtime.gemini import messages
from voxbridge.services.voice.providers.realtime.gemini.setup import build, config, seeded
from voxbridge.services.voice.providers.realtime.websocket import PONG_S, Behind, ProviderSocket, proxied, silent_until
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.log.storable import storable

PROVIDER: Final = "gemini"
API_VERSION: Final = "v1beta"
"""Version of the API, set explicitly: the SDK's default has changed between versions."""

SETUP_S: Final = 8.0
CLOSE_S: Final = 1.0
RESULT_LIMIT: Final = 16_000
"""Characters of a function's result: beyond 16,384, connections were reported to be closed."""

REFUSALS: Final = frozenset({1007, 1008})
"""Close codes after which the same setup is refused again."""

UNRESUMABLE: Final = 1008
"""Close code with which a model was reported to refuse a conversation that is to be resumable and has no handle yet."""

UNRESUMABLE_S: Final = 3_600
"""Seconds for which such a model is not asked for handles. After that it is tried again: the refusal may have been a passing fault."""

UNRESUMABLE_LIMIT: Final = 16
"""Number of models of which this is remembered."""

NO_KEY: Final = "There is no key for Gemini. Set GEMINI_API_KEY, or give the key to POST /api/config/keys."
_AUDIO_HEAD: Final = b'{"realtime_input":{"audio":{"mimeType":"audio/pcm;rate=16000","data":"'
_AUDIO_TAIL: Final = b'"}}}'
_SOCKET: Final = {"create_connection": ProviderSocket, "compression": None, "ping_timeout": PONG_S}
"""Options of the socket. No compression: base64 of speech hardly shrinks, and compressing costs more than all other work on a frame."""

_log = logging.getLogger(__name__)


class Gemini:
    """Google's Live API. One SDK client is kept, for the key in use."""

    def __init__(self, keys: Callable[[str], Awaitable[str]], *, now: Callable[[], float] = time.monotonic) -> None:
        """Create the provider. `keys` returns the key of a provider; it is called at each connection, so that a new key counts at once.
        `now` is in s."""
        self._keys = keys
        self._now = now
        self._key = ""
        self._client: genai.Client | None = None
        self._unresumable: dict[str, float] = {}
        """Models that begin no resumable conversation, the newest finding last, with its time."""

    async def connect(self, setup: Setup) -> GeminiConnection:
        """Open a connection; returns when Google says that the setup is complete. If the model begins no resumable conversation, the
        connection cannot be resumed."""
        key = await self._keys(PROVIDER)
        if not key:
            raise ConnectionLost(NO_KEY, close_code=0, retryable=False)
        client, until = self._of(key), asyncio.get_running_loop().time() + SETUP_S
        can = self._able(setup.model)
        try:
            return await _open(client, setup, can, until)
        except ConnectionLost as refusal:
            if setup.handle or not can.resumes or refusal.close_code != UNRESUMABLE:
                raise
        connection = await _open(client, setup, msgspec.structs.replace(can, resumes=False), until)
        self._remember(setup.model)
        return connection

    def _able(self, model: str) -> Capabilities:
        """Return what a model can do, as far as it is known by now."""
        can, found_at = capabilities.of(PROVIDER, model), self._unresumable.get(model)
        if found_at is not None and self._now() - found_at < UNRESUMABLE_S:
            return msgspec.structs.replace(can, resumes=False)
        return can

    def _remember(self, model: str) -> None:
        """Remember that a model begins no resumable conversation."""
        self._unresumable.pop(model, None)
        self._unresumable[model] = self._now()
        while len(self._unresumable) > UNRESUMABLE_LIMIT:
            del self._unresumable[next(iter(self._unresumable))]
        _log.warning("%s refuses to begin a conversation that can be resumed: it goes on without handles", model)

    async def prepare(self) -> None:
        """Create the SDK's client, which takes 100 ms, and the validators of the messages of a connection."""
        await asyncio.to_thread(build)
        with suppress(VoxbridgeError):
            key = await self._keys(PROVIDER)
            if key:
                self._of(key)

    async def close(self) -> None:
        """Close the SDK's client."""
        client, self._client, self._key = self._client, None, ""
        if client is not None:
            await client.aio.aclose()

    def _of(self, key: str) -> genai.Client:
        if self._client is None or self._key != key:
            # Open connections keep what they need of the previous client.
            self._client = genai.Client(
                api_key=key, http_options=types.HttpOptions(api_version=API_VERSION, async_client_args={**_SOCKET, "proxy": proxied()})
            )
            self._key = key
        return self._client


async def _open(client: genai.Client, setup: Setup, can: Capabilities, until: float) -> GeminiConnection:
    """Open a connection, set it up and tell it the history, by the event loop time `until`. Raises `ConnectionLost`."""
    stack = AsyncExitStack()
    try:
        async with asyncio.timeout_at(until):
            with silent_until(setup.closed if setup.handle else None):
                session = await stack.enter_async_context(client.aio.live.connect(model=setup.model, config=config(setup, can)))
            connection = GeminiConnection(session, stack, setup, can)
            await connection.seed(seeded(setup, can))
    except TimeoutError:
        await _leave(stack)
        raise ConnectionLost(f"Gemini did not complete the setup within {SETUP_S:.0f} s.") from None
    except errors.APIError as error:
        await _leave(stack)
        raise _refused(error.code, str(error.message or ""), setup) from None
    except ConnectionClosed as error:
        await _leave(stack)
        code, reason = (error.rcvd.code, error.rcvd.reason) if error.rcvd is not None else (1006, "")
        raise _refused(code, reason, setup) from None
    except InvalidHandshake as error:
        await _leave(stack)
        status = getattr(getattr(error, "response", None), "status_code", 0)
        retryable = not 400 <= status < 500 or status == 429
        raise ConnectionLost(f"Gemini refused the connection with {status or 'no'} status.", retryable=retryable) from None
    except (OSError, WebSocketException, ValueError) as error:
        await _leave(stack)
        raise ConnectionLost(f"Gemini cannot be reached: {type(error).__name__}.") from None
    except BaseException:
        await _leave(stack)
        raise
    return connection


class GeminiConnection:
    """An open connection to Gemini Live."""

    def __init__(self, session: Any, stack: AsyncExitStack, setup: Setup, can: Capabilities) -> None:
        self.resumed = bool(setup.handle)
        self._session = session
        self._socket: ProviderSocket = session._ws  # noqa: SLF001 - pinned; tests/deploy/test_internals.py
        self._stack = stack
        self._can = can
        self._manual = setup.manual_activity
        self._tasks = {function.name for function in setup.functions if function.kind == "async"}
        self._spoken = False
        """True once the model has had a turn: some models take no more content from then on."""
        self._making = False
        """True while the model is in a turn."""

        self._half = b""
        """Half a sample, whose other half is in the next piece of audio."""

        self._counted = messages.Usage()

    async def seed(self, turns: list[types.Content]) -> None:
        """Tell a new conversation its history. If the history was declared in the setup, its end is marked too: the model waits for
        that, and hears nothing until then."""
        if turns:
            await self._session.send_client_content(turns=turns, turn_complete=self._can.history == "declared")

    async def run(self, listener: Listener) -> None:
        """Report until cancelled. Raises `ConnectionLost`."""
        decode = messages.decode

        def take(raw: bytes) -> None:
            try:
                message = decode(raw)
            except msgspec.MsgspecError as error:
                _log.warning("a message of Gemini cannot be read and is left out: %s", str(error)[:200])
            else:
                self._report(message, listener)

        try:
            await self._socket.listen(take)
        except ConnectionClosed as error:
            raise _closed(error) from None

    def _report(self, message: messages.ServerMessage, listener: Listener) -> None:
        effect, content = listener.effect, message.server_content
        if message.usage_metadata is not None:
            self._counted = message.usage_metadata
        if content is not None:
            self._content(content, listener)
        if message.usage_metadata is not None and content is None and message.tool_call is None and not self._making:
            counted, self._counted = self._counted, messages.Usage()  # reported after its turn ended
            listener.take(said.TokensCounted(effect=effect, input_tokens=counted.input_tokens, output_tokens=counted.output_tokens))
        if message.tool_call is not None:
            for call in message.tool_call.function_calls:
                listener.take(said.CallRequested(effect=effect, ref=call.id, name=call.name, arguments=storable(call.args or {})))
        if message.tool_call_cancellation is not None:
            listener.take(said.CallsCancelled(effect=effect, refs=tuple(message.tool_call_cancellation.ids)))
        update = message.session_resumption_update
        if update is not None:
            if update.resumable and update.new_handle:
                listener.take(said.HandleUpdated(effect=effect, handle=listener.keep_handle(update.new_handle)))
            else:
                listener.take(said.HandleUpdated(effect=effect, resumable=False))
        if message.go_away is not None:
            listener.take(said.GoingAway(effect=effect, left_ms=messages.duration_ms(message.go_away.time_left)))

    def _content(self, content: messages.ServerContent, listener: Listener) -> None:
        effect = listener.effect
        if content.interrupted:
            self._half = b""
            listener.take(said.Interrupted(effect=effect, audio_ms=listener.audio_ms))
        if content.input_transcription is not None and content.input_transcription.text:
            listener.take(said.UserWords(effect=effect, text=content.input_transcription.text, audio_ms=listener.audio_ms))
        if content.model_turn is not None:
            self._making = True
            for part in content.model_turn.parts:
                if part.inline_data is not None and part.inline_data.data:
                    self._spoken = True
                    pcm = _pcm(part.inline_data.data)
                    if self._half or len(pcm) % 2:
                        pcm = self._whole_samples(pcm)
                    listener.play(pcm)
                elif part.text and not part.thought:
                    self._spoken = True
                    listener.take(said.AgentText(effect=effect, text=part.text))
        if content.output_transcription is not None and content.output_transcription.text:
            listener.take(said.AgentWords(effect=effect, text=content.output_transcription.text))
        if content.generation_complete:
            listener.take(said.GenerationDone(effect=effect))
        if content.turn_complete:
            self._making, self._half = False, b""
            counted, self._counted = self._counted, messages.Usage()
            listener.take(
                said.ModelTurnDone(
                    effect=effect,
                    reason=content.turn_complete_reason or "",
                    waiting=content.waiting_for_input,
                    input_tokens=counted.input_tokens,
                    output_tokens=counted.output_tokens,
                )
            )

    def send_audio(self, pcm: bytes | memoryview) -> None:
        """Send microphone audio: PCM16 at 16 kHz."""
        try:
            self._socket.send_now(b"".join((_AUDIO_HEAD, b2a_base64(pcm, newline=False), _AUDIO_TAIL)))
        except ConnectionClosed as error:
            raise _closed(error) from None
        except Behind as error:
            raise ConnectionLost(str(error)) from None

    async def say(self, text: str, *, respond: bool = True) -> None:
        """Add text. Models that take no content after their first turn then get it as realtime input, which they always answer. Models
        that take content in a declared history only get realtime input from the beginning."""
        turn = types.Content(role="user", parts=[types.Part(text=text)])
        if self._can.late_content or (self._can.history == "plain" and not (self._spoken or self.resumed)):
            await self._sent(self._session.send_client_content(turns=turn, turn_complete=respond))
        else:
            await self._sent(self._session.send_realtime_input(text=text))

    async def answer(self, answers: Sequence[Answer]) -> None:
        """Send the results of calls."""
        responses = [types.FunctionResponse(id=one.ref, name=one.name, response=self._result(one)) for one in answers]
        if self._can.nonblocking_calls == "default":
            for response in responses:
                response.scheduling = types.FunctionResponseScheduling.WHEN_IDLE
        elif self._can.nonblocking_calls == "opt_in":
            for response in responses:
                if response.name in self._tasks:
                    response.scheduling = types.FunctionResponseScheduling.WHEN_IDLE
        await self._sent(self._session.send_tool_response(function_responses=responses))

    async def activity(self, *, speaking: bool) -> None:
        """Report that the user began or stopped speaking."""
        if speaking:
            await self._sent(self._session.send_realtime_input(activity_start=types.ActivityStart()))
        else:
            await self._sent(self._session.send_realtime_input(activity_end=types.ActivityEnd()))

    async def end_audio(self) -> None:
        """Report that the microphone was paused."""
        if self._manual:
            return  # with reported activity the stream has no end
        await self._sent(self._session.send_realtime_input(audio_stream_end=True))

    async def cut_short(self, heard_ms: int) -> None:
        """Do nothing: Google trims an interrupted response by itself."""

    async def interrupt(self) -> None:
        """Do nothing: only speech or text stops a response. The rest of the response is not played."""

    async def close(self) -> None:
        """Close the socket."""
        await _leave(self._stack)

    def _whole_samples(self, pcm: bytes) -> bytes:
        pcm = self._half + pcm
        whole = len(pcm) & ~1
        self._half = pcm[whole:]
        return pcm[:whole]

    def _result(self, answer: Answer) -> dict[str, Any]:
        text = msgspec.json.encode(answer.result).decode()
        return answer.result if len(text) <= RESULT_LIMIT else {"result": _cut(text), "cut": True}

    async def _sent(self, sending: Awaitable[None]) -> None:
        try:
            await sending
        except ConnectionClosed as error:
            raise _closed(error) from None


def _cut(text: str) -> str:
    """Return the beginning of a text that has at most `RESULT_LIMIT` bytes as JSON, where quotes count twice."""
    kept = text[:RESULT_LIMIT]
    while (over := len(msgspec.json.encode(kept)) - RESULT_LIMIT) > 0:
        kept = kept[: -(over // 6 + 1)]  # no character takes more than 6 bytes
    return kept


def _pcm(data: str) -> bytes:
    if "-" in data or "_" in data:
        data = data.replace("-", "+").replace("_", "/")
    return a2b_base64(data)


def _closed(error: ConnectionClosed) -> ConnectionLost:
    # Google's reason is left out: it may quote the key or the handle.
    code = error.rcvd.code if error.rcvd is not None else 1006
    return ConnectionLost(f"Gemini closed the connection with {code}.", close_code=code, retryable=code not in REFUSALS)


def _refused(code: int, reason: str, setup: Setup) -> ConnectionLost:
    message = f"Gemini refused the setup with {code}. {reason}".strip().replace(setup.handle or "\0", "(handle)")
    return ConnectionLost(message, close_code=code, retryable=code not in REFUSALS, handle_refused=bool(setup.handle))


async def _leave(stack: AsyncExitStack) -> None:
    with suppress(Exception):
        async with asyncio.timeout(CLOSE_S):
            await stack.aclose()
