"""The baseline of a handoff: one process that relays a browser's WebSocket to the vendor's SDK. On the model's tool call it continues with
a second agent in a new session, by the handle where the service allows it and else by sending the history.

    python -m bench.clients.relay_handoff 18432

Does only what an application needs to keep the history: no log, no bus, no limits. The SDK finds the service by its own variables. A crash
loses the calls of one measurement.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack, suppress
from typing import Final

import uvicorn
from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from google import genai
from google.genai import types
from google.genai.live import AsyncSession

from bench.peers.adapters.wire import FIRST, INPUT_RATE, RESUMABLE_MODEL, SECOND
from voxbridge.shared.audio import frames
from voxbridge.shared.clock import wall_ms32

GREET: Final = "You are on the line now. Go on."
_TOOL: Final = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="hand_over",
            description="Hands the caller over.",
            parameters_json_schema={
                "type": "object",
                "properties": {"target": {"type": "string", "enum": ["second"]}, "reason": {"type": "string"}},
                "required": ["target", "reason"],
            },
        )
    ]
)
app = FastAPI()
client = genai.Client(api_key="bench", http_options=types.HttpOptions(api_version="v1beta"))


def config(instruction: str, voice: str, tools: list[types.Tool], handle: str | None = None) -> types.LiveConnectConfig:
    """Return the setup of an agent; with a handle it resumes that session."""
    return types.LiveConnectConfig(
        response_modalities=[types.Modality.AUDIO],
        system_instruction=instruction,
        tools=[*tools],
        speech_config=types.SpeechConfig(voice_config=types.VoiceConfig(prebuilt_voice_config=types.PrebuiltVoiceConfig(voice_name=voice))),
        session_resumption=types.SessionResumptionConfig(handle=handle),
        input_audio_transcription=types.AudioTranscriptionConfig(),
        output_audio_transcription=types.AudioTranscriptionConfig(),
    )


class Call:
    """A caller: the current session, the newest handle, and the history."""

    def __init__(self, socket: WebSocket, sessions: AsyncExitStack) -> None:
        self._socket = socket
        self._sessions = sessions
        self._session: AsyncSession
        self._handle: str | None = None
        self._history: list[types.Content] = []
        self._sequence = 0

    async def begin(self) -> None:
        """Open the first agent's session."""
        self._session = await self._open(config(FIRST, "Aoede", [_TOOL]))

    async def up(self, frame: bytes) -> None:
        """Send the caller's audio to the current session."""
        blob = types.Blob(data=frame[frames.PREFIX_SIZE :], mime_type=f"audio/pcm;rate={INPUT_RATE}")
        await self._session.send_realtime_input(audio=blob)

    async def down(self) -> None:
        """Send the model's audio to the caller until cancelled, over any number of sessions."""
        while True:
            async for message in self._session.receive():
                if await self._take(message):
                    break

    async def _take(self, message: types.LiveServerMessage) -> bool:
        """Handle a message. Return True when it replaced the session."""
        update = message.session_resumption_update
        if update is not None:
            self._handle = update.new_handle if update.resumable else None
        content = message.server_content
        if content is not None:
            for role, said in (("user", content.input_transcription), ("model", content.output_transcription)):
                if said is not None and said.text:
                    self._history.append(types.Content(role=role, parts=[types.Part(text=said.text)]))
            for part in content.model_turn.parts or () if content.model_turn is not None else ():
                if part.inline_data is not None and part.inline_data.data:
                    await self._socket.send_bytes(frames.pack(frames.PCM16, 1, self._sequence, wall_ms32(), part.inline_data.data))
                    self._sequence += 1
        if message.tool_call is not None:
            await self._hand_over()
            return True
        return False

    async def _hand_over(self) -> None:
        handle = self._handle
        self._session = await self._open(config(SECOND, "Charon", [], handle))
        greeting = types.Content(role="user", parts=[types.Part(text=GREET)])
        told = [greeting] if handle else [*self._history, greeting]
        await self._session.send_client_content(turns=list(told), turn_complete=True)

    async def _open(self, setup: types.LiveConnectConfig) -> AsyncSession:
        return await self._sessions.enter_async_context(client.aio.live.connect(model=RESUMABLE_MODEL, config=setup))


@app.websocket("/echo")
async def relay(socket: WebSocket) -> None:
    """Relay one call until its caller leaves."""
    await socket.accept()
    async with AsyncExitStack() as sessions:
        call = Call(socket, sessions)
        await call.begin()
        receiving = asyncio.create_task(call.down())
        try:
            while True:
                await call.up(await socket.receive_bytes())
        except WebSocketDisconnect:
            pass
        finally:
            receiving.cancel()
            with suppress(asyncio.CancelledError):
                await receiving


if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        log_level="error",
    )
