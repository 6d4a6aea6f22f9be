"""The baseline of calls on Gemini Live: one process that only relays a browser's WebSocket to the vendor's SDK and back.

python -m bench.clients.relay 18431

Binary messages are Voxbridge's frames; the answer carries the same prefix. The SDK finds the service by its own variables.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

import uvicorn
from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from google import genai
from google.genai import types

from voxbridge.shared.audio import frames
from voxbridge.shared.clock import wall_ms32

MODEL = "gemini-3.8-live"
app = FastAPI()
client = genai.Client(api_key="bench", http_options=types.HttpOptions(api_version="v1beta"))
config = types.LiveConnectConfig(response_modalities=[types.Modality.AUDIO])


@app.websocket("/echo")
async def relay(socket: WebSocket) -> None:
    """Relay one session until its client leaves."""
    await socket.accept()
    async with client.aio.live.connect(model=MODEL, config=config) as session:

        async def down() -> None:
            sequence = 0
            while True:
                async for message in session.receive():
                    content = message.server_content
                    for part in content.model_turn.parts or () if content is not None and content.model_turn is not None else ():
                        if part.inline_data is not None and part.inline_data.data:
                            await socket.send_bytes(frames.pack(frames.PCM16, 1, sequence, wall_ms32(), part.inline_data.data))
                            sequence += 1

        receiving = asyncio.create_task(down())
        try:
            while True:
                frame = await socket.receive_bytes()
                blob = types.Blob(data=frame[frames.PREFIX_SIZE :], mime_type="audio/pcm;rate=16000")
                await session.send_realtime_input(audio=blob)
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
