"""The OpenAI-compatible API of the local models: its routes.

Owns the wiring of requests to engines: the queue of each model, the timeouts, and clients that disconnect. A crash here loses the requests
in progress; clients try again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from fastapi import FastAPI, File, Form, Request, Response, UploadFile
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.exceptions import HTTPException

from voxbridge.services.models import metrics
from voxbridge.services.models.api import chat, embeddings, errors
from voxbridge.services.models.api.bodies import ChatRequest, SpeechRequest
from voxbridge.services.models.api.guard import HostGuard
from voxbridge.services.models.api.router_files import RouterFiles
from voxbridge.services.models.api.routers import Routers
from voxbridge.services.models.engines import audio
from voxbridge.services.models.engines.engines import Engines
from voxbridge.services.models.processes.home import Home
from voxbridge.shared.cancellation import ended
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError

TIMEOUT_S: Final = {"stt": 30.0, "turn": 10.0, "tts": 60.0, "llm": 120.0}

_Result = TypeVar("_Result")


async def _unless_gone(request: Request, role: str, work: Coroutine[Any, Any, _Result]) -> _Result:
    """Return the result of `work`. Cancel it when the client disconnects or the time limit of the role is over."""
    task = asyncio.create_task(work)
    watcher = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait((task, watcher), timeout=TIMEOUT_S[role], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        if watcher.done():
            raise VoxbridgeError(Code.CANCELLED, "The caller went away.")
        raise VoxbridgeError(Code.TIMED_OUT, f"This took more than {TIMEOUT_S[role]:.0f} s.", limit=TIMEOUT_S[role])
    finally:
        for each in (task, watcher):
            each.cancel()
        with suppress(asyncio.CancelledError, VoxbridgeError):
            await task


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def create(config: Config, home: Home) -> FastAPI:
    """Build the application. Its models are started in the background of its lifespan. `home` must be taken already."""
    engines = Engines(config, home)
    meters = metrics.Meters(engines)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        bringing_up = asyncio.create_task(engines.run(), name="bring-up")
        reading = asyncio.create_task(engines.readings.run(), name="readings")
        phrasing = asyncio.create_task(engines.phrasings.run(), name="phrasings")
        try:
            yield
        finally:
            await ended(bringing_up, reading, phrasing)
            await engines.close()

    app = FastAPI(title="Voxbridge models", version="1", lifespan=lifespan, description=__doc__)
    app.add_middleware(HostGuard, hosts=[host.strip() for host in config.allowed_hosts.split(",") if host.strip()])
    app.add_exception_handler(VoxbridgeError, errors.on_voxbridge)
    app.add_exception_handler(RequestValidationError, errors.on_validation)
    app.add_exception_handler(HTTPException, errors.on_http)
    app.state.engines = engines
    _add_health(app, engines, meters)
    _add_ears(app, engines, meters)
    _add_mouth(app, engines, meters)
    _add_chat(app, engines, meters, Routers(RouterFiles(home.routers), engines.phrasings))
    embeddings.add_to(app, engines.lines["embedding"], config.embeddings_table)
    return app


def _add_health(app: FastAPI, engines: Engines, meters: metrics.Meters) -> None:
    @app.get("/healthz", tags=["health"])
    async def healthz() -> dict[str, str]:
        """The process answers. `late` says why an answer of a model may be: others take the processors, or a model is not there yet."""
        return {"status": "ok", "late": engines.late()}

    @app.get("/readyz", tags=["health"])
    async def readyz() -> JSONResponse:
        """Each model by name and how far it is; 503 until all are ready."""
        states = {
            model.id: {"role": model.role, "phase": engines.phases[model.id], "state": engines.state(model)} for model in engines.models
        }
        return JSONResponse({"ready": engines.ready, "models": states}, 200 if engines.ready else 503)

    @app.get("/metrics", tags=["health"], response_class=PlainTextResponse)
    async def prometheus() -> Response:
        """Figures for Prometheus."""
        return Response(meters.text(), media_type=metrics.CONTENT_TYPE)

    @app.get("/v1/models", tags=["models"])
    async def models() -> dict[str, Any]:
        """The models that can be named in requests, and the voices of the one that speaks."""
        data = [
            {"id": m.id, "object": "model", "created": 0, "owned_by": m.publisher, "role": m.role}
            | ({"voices": [{"id": v.id, "name": v.name, "gender": v.gender, "style": v.style} for v in m.voices]} if m.voices else {})
            for m in engines.models
            if m.role != "vad"
        ]
        return {"object": "list", "data": data}


def _add_ears(app: FastAPI, engines: Engines, meters: metrics.Meters) -> None:
    @app.post("/v1/audio/transcriptions", tags=["audio"])
    async def transcriptions(
        request: Request,
        file: Annotated[UploadFile, File(description="A recording of at most 60 s and 8 MiB")],
        model: Annotated[str, Form(max_length=128)] = "whisper",
        language: Annotated[str, Form(max_length=16)] = "en",
        prompt: Annotated[str, Form(max_length=4_096)] = "",
        response_format: Annotated[Literal["json", "text", "verbose_json"], Form()] = "json",
        temperature: Annotated[float, Form(ge=0, le=1)] = 0.0,
    ) -> Response:
        """The words of a recording; empty for silence and noise."""
        engines.named("stt", model)
        whisper = engines.stt
        data = await file.read(audio.MAX_BYTES + 1)

        async def work() -> Any:
            async with engines.lines["stt"].enter(), meters.measure("stt"):
                samples = await engines.in_thread("stt", partial(audio.decode, data))
                return await engines.in_thread("stt", partial(whisper.transcribe, samples, language, prompt, temperature))

        said = await _unless_gone(request, "stt", work())
        if response_format == "text":
            return PlainTextResponse(said.text + "\n")
        if response_format == "json":
            return JSONResponse({"text": said.text})
        whole = {"task": "transcribe", "language": said.language, "duration": said.seconds, "text": said.text}
        whole |= {"avg_logprob": said.avg_logprob, "no_speech_prob": said.no_speech_prob, "frames": said.frames}
        return JSONResponse(whole)

    @app.post("/v1/audio/turns", tags=["audio"])
    async def turns(request: Request, file: Annotated[UploadFile, File(description="The turn so far, WAV")]) -> JSONResponse:
        """Return the probability that the speaker has finished (an extension to OpenAI's API). Ask after a pause in speech."""
        detector = engines.turn
        data = await file.read(audio.MAX_BYTES + 1)

        async def work() -> Any:
            async with engines.lines["turn"].enter(), meters.measure("turn"):
                return await engines.in_thread("turn", lambda: detector.predict(audio.decode(data)))

        return JSONResponse(msgspec.to_builtins(await _unless_gone(request, "turn", work())))


def _add_mouth(app: FastAPI, engines: Engines, meters: metrics.Meters) -> None:
    @app.post("/v1/audio/speech", tags=["audio"], response_class=Response)
    async def speech(request: Request, body: SpeechRequest) -> Response:
        """A text spoken: `pcm` is 24 kHz mono PCM16, streamed as it is made; `wav` is the same in one piece."""
        engines.named("tts", body.model)
        voice, stack = engines.voice(body.voice), AsyncExitStack()
        sound = engines.tts.speak(body.input, body.speed, voice.pitch)

        async def begin() -> bytes:
            await stack.enter_async_context(engines.lines["tts"].enter())
            await stack.enter_async_context(meters.measure("tts"))
            first = await anext(sound, b"")
            if body.response_format == "wav":
                first = audio.wav_of(first + b"".join([chunk async for chunk in sound]))
            return first

        try:
            first = await _unless_gone(request, "tts", begin())
        except BaseException:
            await stack.aclose()
            raise
        if body.response_format == "wav":
            await stack.aclose()
            return Response(first, media_type="audio/wav")

        async def rest() -> AsyncIterator[bytes]:
            async with stack:
                yield first
                async for chunk in sound:
                    yield chunk

        return StreamingResponse(rest(), media_type="audio/pcm", headers={"X-Sample-Rate": str(audio.SPEECH_RATE)})


def _add_chat(app: FastAPI, engines: Engines, meters: metrics.Meters, known: Routers) -> None:
    @app.post("/v1/chat/completions", tags=["chat"], response_class=JSONResponse)
    async def completions(request: Request, body: ChatRequest) -> Response:
        """The next message of a conversation: words, one tool call, or JSON that fits a schema."""
        engines.named("llm", body.model)
        router = await known.of(body.offered())
        made, stack = chat.plan(body, engines.by_role("llm").call_bias, router), AsyncExitStack()
        answer = chat.Answer(engines.llm, body, made, engines.readings)
        deadline = time.monotonic() + TIMEOUT_S["llm"]

        async def begin() -> dict[str, Any] | None:
            line = engines.background.line if body.background else engines.lines["llm"]
            await stack.enter_async_context(line.enter(waits=body.background or not body.ahead))
            await stack.enter_async_context(meters.measure("background" if body.background or body.ahead else "llm"))
            stack.push_async_callback(answer.close)
            await answer.begin()
            return None if body.stream else await answer.whole()

        try:
            whole = await _unless_gone(request, "llm", begin())
        except BaseException:
            await stack.aclose()
            raise
        if whole is not None:
            await stack.aclose()
            return JSONResponse(whole)

        async def events() -> AsyncIterator[bytes]:
            async with stack:
                try:
                    async with asyncio.timeout(deadline - time.monotonic()):
                        async for chunk in answer.chunks():
                            yield b"data: " + msgspec.json.encode(chunk) + b"\n\n"
                except TimeoutError:
                    late = VoxbridgeError(Code.TIMED_OUT, f"The answer took more than {TIMEOUT_S['llm']:.0f} s.", limit=TIMEOUT_S["llm"])
                    yield b"data: " + msgspec.json.encode(errors.body(late)) + b"\n\n"
                except VoxbridgeError as error:
                    yield b"data: " + msgspec.json.encode(errors.body(error)) + b"\n\n"
                else:
                    yield b"data: [DONE]\n\n"

        return StreamingResponse(events(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})
