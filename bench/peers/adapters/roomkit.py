"""RoomKit: a `RealtimeVoiceChannel` on its `GeminiLiveProvider`, a room for each call.

python -m bench.peers.adapters.roomkit 18433
"""

from __future__ import annotations

import logging

from roomkit import RealtimeVoiceChannel, RoomKit
from roomkit.providers.gemini import GeminiLiveProvider
from roomkit.voice.realtime import WebSocketRealtimeTransport
from websockets.asyncio.server import ServerConnection

from bench.peers.adapters.wire import INPUT_RATE, KEY, MODEL, OUTPUT_RATE, BareSocket, run

kit = RoomKit()
channel = RealtimeVoiceChannel(
    "voice",
    provider=GeminiLiveProvider(api_key=KEY, model=MODEL),
    transport=WebSocketRealtimeTransport(),
    input_sample_rate=INPUT_RATE,
    output_sample_rate=OUTPUT_RATE,
)
kit.register_channel(channel)


async def call(socket: ServerConnection) -> None:
    """Run one call."""
    room = await kit.create_room()
    await kit.attach_channel(room.id, "voice")
    await channel.start_session(room.id, "caller", BareSocket(socket))
    await socket.wait_closed()


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    run(call)
