"""Pipecat: its FastAPI WebSocket transport, its context aggregators and its `GeminiLiveLLMService`, a pipeline for each call.

python -m bench.peers.adapters.pipecat 18434

Output in chunks of 40 ms, the framework's default; no speech detector and no turn model of its own.
"""

from __future__ import annotations

import sys

import uvicorn
from fastapi import FastAPI, WebSocket
from loguru import logger
from pipecat.frames.frames import Frame, InputAudioRawFrame, LLMRunFrame, OutputAudioRawFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.serializers.base_serializer import FrameSerializer
from pipecat.services.google.gemini_live.llm import GeminiLiveLLMService
from pipecat.transports.base_transport import BaseTransport
from pipecat.transports.websocket.fastapi import FastAPIWebsocketParams, FastAPIWebsocketTransport
from pipecat.workers.runner import WorkerRunner

from bench.peers.adapters.wire import INPUT_RATE, KEY, MODEL, OUTPUT_RATE, PREFIX_SIZE, framed

app = FastAPI()


class Bare(FrameSerializer):
    """Serializer of the load client's protocol; frames without audio are not sent."""

    async def serialize(self, frame: Frame) -> str | bytes | None:
        """Return the bytes of an audio frame; None for any other frame."""
        return framed(frame.audio) if isinstance(frame, OutputAudioRawFrame) else None

    async def deserialize(self, data: str | bytes) -> Frame | None:
        """Return the audio frame of a message; None for text."""
        if isinstance(data, str):
            return None
        return InputAudioRawFrame(audio=data[PREFIX_SIZE:], sample_rate=INPUT_RATE, num_channels=1)


@app.websocket("/echo")
async def call(socket: WebSocket) -> None:
    """Run one call."""
    await socket.accept()
    transport = FastAPIWebsocketTransport(socket, FastAPIWebsocketParams(audio_in_enabled=True, audio_out_enabled=True, serializer=Bare()))
    model = GeminiLiveLLMService(api_key=KEY, settings=GeminiLiveLLMService.Settings(model=f"models/{MODEL}"))
    aggregators = LLMContextAggregatorPair(LLMContext())
    worker = PipelineWorker(
        Pipeline([transport.input(), aggregators.user(), model, transport.output(), aggregators.assistant()]),
        params=PipelineParams(audio_in_sample_rate=INPUT_RATE, audio_out_sample_rate=OUTPUT_RATE),
    )

    @transport.event_handler("on_client_connected")
    async def connected(_: BaseTransport, __: WebSocket) -> None:
        await worker.queue_frames([LLMRunFrame()])

    @transport.event_handler("on_client_disconnected")
    async def disconnected(_: BaseTransport, __: WebSocket) -> None:
        await worker.cancel()

    runner = WorkerRunner(handle_sigint=False)
    await runner.add_workers(worker)
    await runner.run()


if __name__ == "__main__":
    logger.remove()
    logger.add(sys.stderr, level="ERROR")
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        log_level="error",
    )
