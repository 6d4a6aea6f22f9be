"""LiveKit Agents: an `AgentSession` on its Google realtime model, with the audio on a WebSocket instead of in a room.

python -m bench.peers.adapters.livekit 18432

No WebRTC, no server, no process per job: less than a deployment of it does. Audio is passed on as it comes, with no playout clock.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator

from livekit import rtc
from livekit.agents import Agent, AgentSession
from livekit.agents.voice import io
from livekit.plugins.google.realtime import RealtimeModel
from websockets.asyncio.server import ServerConnection

from bench.peers.adapters.wire import INPUT_RATE, KEY, MODEL, OUTPUT_RATE, BareSocket, run


class SpeechBuffer(io.AudioInput):
    """The caller's audio."""

    def __init__(self, socket: BareSocket) -> None:
        super().__init__(label="socket")
        self._frames: AsyncIterator[bytes] = aiter(socket)

    async def __anext__(self) -> rtc.AudioFrame:
        pcm = await anext(self._frames)
        return rtc.AudioFrame(data=pcm, sample_rate=INPUT_RATE, num_channels=1, samples_per_channel=len(pcm) // 2)


class Mouth(io.AudioOutput):
    """The audio for the caller: captured audio counts as played."""

    def __init__(self, socket: BareSocket) -> None:
        super().__init__(label="socket", capabilities=io.AudioOutputCapabilities(pause=False), sample_rate=OUTPUT_RATE)
        self._socket = socket
        self._captured_s = 0.0

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        """Send a frame to the caller, and count it as played."""
        await super().capture_frame(frame)
        if not self._captured_s:
            self.on_playback_started(created_at=time.time())
        self._captured_s += frame.duration
        await self._socket.send(bytes(frame.data))

    def flush(self) -> None:
        """Report that the reply was played."""
        super().flush()
        self._finish(interrupted=False)

    def clear_buffer(self) -> None:
        """Report that the reply was cut."""
        self._finish(interrupted=True)

    def _finish(self, *, interrupted: bool) -> None:
        if self._captured_s:
            played, self._captured_s = self._captured_s, 0.0
            self.on_playback_finished(playback_position=played, interrupted=interrupted)


async def converse(socket: ServerConnection, agent: Agent) -> None:
    """Run one call that begins with this agent, until the caller leaves. Only the model detects speech."""
    bare = BareSocket(socket)
    # By default, the first three seconds of the caller's speech would be dropped as the agent's own echo.
    session: AgentSession[None] = AgentSession(vad=None, aec_warmup_duration=None)
    session.input.audio = SpeechBuffer(bare)
    session.output.audio = Mouth(bare)
    await session.start(agent, record=False)
    try:
        await socket.wait_closed()
    finally:
        await session.aclose()


async def call(socket: ServerConnection) -> None:
    """Run one call."""
    await converse(socket, Agent(instructions="", llm=RealtimeModel(model=MODEL, api_key=KEY)))


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    run(call)
