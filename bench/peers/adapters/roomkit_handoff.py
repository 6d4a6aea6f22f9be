"""RoomKit: two agents behind one call, by its `ConversationPipeline` with a greeting on handoff.

python -m bench.peers.adapters.roomkit_handoff 18436
"""

from __future__ import annotations

import logging

from roomkit import RealtimeVoiceChannel, RoomKit
from roomkit.channels.agent import Agent
from roomkit.orchestration import ConversationPipeline, PipelineStage
from roomkit.providers.gemini import GeminiLiveProvider
from roomkit.voice.realtime import WebSocketRealtimeTransport
from websockets.asyncio.server import ServerConnection

from bench.peers.adapters.wire import FIRST, INPUT_RATE, KEY, OUTPUT_RATE, RESUMABLE_MODEL, SECOND, BareSocket, run

kit = RoomKit()
channel = RealtimeVoiceChannel(
    "voice",
    provider=GeminiLiveProvider(api_key=KEY, model=RESUMABLE_MODEL),
    transport=WebSocketRealtimeTransport(),
    input_sample_rate=INPUT_RATE,
    output_sample_rate=OUTPUT_RATE,
)
kit.register_channel(channel)
agents = [
    Agent("first", role="First", description="Takes calls.", system_prompt=FIRST, voice="Aoede"),
    Agent("second", role="Second", description="Helps.", system_prompt=SECOND, voice="Charon"),
]
for agent in agents:
    kit.register_channel(agent)
ConversationPipeline(
    stages=[PipelineStage(phase="intake", agent_id="first", next="handling"), PipelineStage(phase="handling", agent_id="second")]
).install(kit, agents, voice_channel_id="voice", greet_on_handoff=True)


async def call(socket: ServerConnection) -> None:
    """Run one call."""
    room = await kit.create_room()
    for one in ("voice", "first", "second"):
        await kit.attach_channel(room.id, one)
    await channel.start_session(room.id, "caller", BareSocket(socket))
    await socket.wait_closed()


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    run(call)
