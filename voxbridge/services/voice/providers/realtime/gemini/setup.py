"""Setup of a Gemini Live session: what the model is told when a connection is opened."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from google.genai import types

from voxbridge.services.voice.core import capabilities
from voxbridge.services.voice.core.capabilities import Capabilities
from voxbridge.services.voice.core.prompt import prompt
from voxbridge.services.voice.providers.realtime.base import Setup
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.language import dialects
from voxbridge.shared.language.conversation import Message

_FIRST_USED: Final = (
    types.LiveConnectParameters,
    types.LiveServerMessage,
    types.LiveServerSetupComplete,
    types.LiveClientContent,
    types.LiveClientToolResponse,
    types.LiveSendRealtimeInputParameters,
    types.HistoryConfig,
    types.Content,
    types.UserContent,
    types.Part,
    types.Tool,
    types.FunctionDeclaration,
    types.FunctionResponse,
    types.GoogleSearch,
    types.ActivityStart,
    types.ActivityEnd,
)


def build() -> None:
    """Have pydantic build now what it would build in the middle of the first session, at 30 ms apiece."""
    for model in _FIRST_USED:
        model.model_rebuild()
    "localhost".encode("idna")
    config(Setup(model="", voice="", language="", instructions=""), capabilities.GEMINI)


def config(setup: Setup, can: Capabilities) -> types.LiveConnectConfig:
    """Return the SDK's configuration of a session."""
    language = setup.language if "-" in setup.language else None
    tools: list[Any] = []
    if setup.functions:
        tools.append(types.Tool(function_declarations=[_declared(function, can) for function in setup.functions]))
    if setup.search:
        tools.append(types.Tool(google_search=types.GoogleSearch()))
    config = types.LiveConnectConfig(
        response_modalities=[types.Modality.AUDIO],
        speech_config=types.SpeechConfig(
            voice_config=types.VoiceConfig(prebuilt_voice_config=types.PrebuiltVoiceConfig(voice_name=setup.voice or None)),
            language_code=language,
        ),
        system_instruction=_instructions(setup, can),
        tools=tools or None,
        context_window_compression=types.ContextWindowCompressionConfig(sliding_window=types.SlidingWindow()),
        input_audio_transcription=types.AudioTranscriptionConfig(),
        output_audio_transcription=types.AudioTranscriptionConfig(),
        session_resumption=types.SessionResumptionConfig(handle=setup.handle or None) if can.resumes or setup.handle else None,
    )
    if can.history == "declared" and seeded(setup, can):
        config.history_config = types.HistoryConfig(initial_history_in_client_content=True)
    if setup.manual_activity:
        config.realtime_input_config = types.RealtimeInputConfig(
            automatic_activity_detection=types.AutomaticActivityDetection(disabled=True)
        )
    return config


def _declared(function: Function, can: Capabilities) -> types.FunctionDeclaration:
    behavior = types.Behavior.NON_BLOCKING if function.kind == "async" and can.nonblocking_calls == "opt_in" else None
    return types.FunctionDeclaration(
        name=function.name, description=function.description, parameters_json_schema=dialects.gemini(function.parameters), behavior=behavior
    )


def _instructions(setup: Setup, can: Capabilities) -> str:
    """Return the agent's instructions. A model whose history is plain was reported not to recall it when asked aloud, so the
    instructions repeat it, shortened."""
    told = prompt.told(setup.history, newest=len(setup.history)) if can.history == "plain" else ""
    return f"{setup.instructions}\n\n## The conversation so far\n{told}" if told else setup.instructions


def seeded(setup: Setup, can: Capabilities) -> list[types.Content]:
    """Return the conversation so far. A plain history has to end with a turn of the user, even an empty one."""
    turns = [_content(one) for one in setup.history if one.role != "system"]
    if turns and can.history == "plain" and turns[-1].role != "user":
        turns.append(types.Content(role="user", parts=[types.Part(text=" ")]))
    return turns


def _content(message: Message) -> types.Content:
    if message.role == "tool":
        return types.Content(role="user", parts=[types.Part(text=f"(Result of a function: {message.text})")])
    if message.uses:
        called = ", ".join(f"{use.name}({msgspec.json.encode(use.arguments).decode()})" for use in message.uses)
        return types.Content(role="model", parts=[types.Part(text=f"{message.text} (Called {called}.)".strip())])
    return types.Content(role="model" if message.role == "assistant" else "user", parts=[types.Part(text=message.text)])
