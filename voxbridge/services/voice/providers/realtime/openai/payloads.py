"""Payloads that set up a session with OpenAI Realtime, in the shapes of its GA protocol, and the meaning of its refusals. Pure.

Owns the mapping from `Setup` to `session.update` and to conversation items, and the judgement whether a refusal may pass. Codes of the
provider's errors are passed on. Its messages never are: they may quote a key or what was said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from openai.types.realtime import ConversationItemParam, RealtimeFunctionToolParam, RealtimeSessionCreateRequestParam
from openai.types.realtime.audio_transcription_param import AudioTranscriptionParam
from openai.types.realtime.realtime_audio_config_output_param import RealtimeAudioConfigOutputParam
from openai.types.realtime.realtime_audio_input_turn_detection_param import ServerVad

from voxbridge.services.voice.providers.realtime.base import ConnectionLost, Setup
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.language import dialects
from voxbridge.shared.language.conversation import Message

TRANSCRIPTION: Final = "gpt-transcribe"
"""Model that transcribes the user for the log; the realtime model itself hears the audio."""

SILENCE_MS: Final = 500
"""Milliseconds of silence after which the vendor's detector takes the user to have finished."""

NO_KEY: Final = "There is no key for OpenAI. Set OPENAI_API_KEY, or give one with POST /api/config/keys."
BAD_KEY: Final = "OpenAI refused the key. Check OPENAI_API_KEY, or give another with POST /api/config/keys."
EXPIRED: Final = "session_expired"
_KEY_CODES: Final = frozenset({"invalid_api_key", "invalid_authentication", "account_deactivated", "insufficient_permissions"})
_FINAL_CODES: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached", "model_not_found", "invalid_model"})
_PASSING_CODES: Final = frozenset({EXPIRED, "rate_limit_exceeded", "server_error", "internal_error", "overloaded"})
_PASSING_CLOSES: Final = frozenset({1000, 1001, 1005, 1006, 1011, 1012, 1013, 1014})
_FORMAT: Final = "audio/pcm"


def session(setup: Setup) -> RealtimeSessionCreateRequestParam:
    """Return the session of a `session.update`. Both directions are PCM16 at 24 kHz, the only rate the API has."""
    transcription: AudioTranscriptionParam = {"model": TRANSCRIPTION}
    instructions = setup.instructions
    if setup.language:
        transcription["language"] = setup.language.split("-")[0].lower()
        instructions = f"{instructions}\n\nSpeak the language `{setup.language}` unless the user asks for another.".lstrip()
    detection: ServerVad = {"type": "server_vad", "silence_duration_ms": SILENCE_MS, "create_response": True, "interrupt_response": True}
    output: RealtimeAudioConfigOutputParam = {"format": {"type": _FORMAT, "rate": 24_000}}
    if setup.voice:
        output["voice"] = setup.voice
    return {
        "type": "realtime",
        "output_modalities": ["audio"],
        "instructions": instructions,
        "audio": {
            "input": {
                "format": {"type": _FORMAT, "rate": 24_000},
                "transcription": transcription,
                "turn_detection": None if setup.manual_activity else detection,
            },
            "output": output,
        },
        "tools": [_tool(function) for function in setup.functions],
        "tool_choice": "auto",
    }


def said(role: str, text: str) -> ConversationItemParam:
    """Return a message of `user`, `assistant` or `system`, as text."""
    if role == "assistant":
        return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    if role == "system":
        return {"type": "message", "role": "system", "content": [{"type": "input_text", "text": text}]}
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def result(call_id: str, content: dict[str, Any]) -> ConversationItemParam:
    """Return the result of a call as an item."""
    return {"type": "function_call_output", "call_id": call_id, "output": msgspec.json.encode(content).decode()}


def history(messages: Sequence[Message]) -> list[ConversationItemParam]:
    """Return the conversation so far as items, in order. Calls get short ids of their own, since the API takes no long ones. A result
    whose call is missing becomes a text, since the API would refuse it."""
    items: list[ConversationItemParam] = []
    known: dict[str, str] = {}
    for message in messages:
        if message.role == "tool":
            if message.call_id in known:
                items.append({"type": "function_call_output", "call_id": known[message.call_id], "output": message.text})
            else:
                items.append(said("system", f"The result of an earlier call: {message.text}"))
            continue
        if message.text:
            items.append(said(message.role, message.text))
        for use in message.uses:
            known[use.call_id] = call_id = f"past_{len(known)}"
            arguments = msgspec.json.encode(use.arguments).decode()
            items.append({"type": "function_call", "call_id": call_id, "name": use.name, "arguments": arguments})
    return items


def refused(status: int, body: bytes) -> ConnectionLost:
    """Return the error for an HTTP status that came in place of a socket."""
    code = _code(body)
    if status in (401, 403) or code in _KEY_CODES:
        return ConnectionLost(BAD_KEY, retryable=False)
    if status == 429 and code not in _FINAL_CODES:
        return ConnectionLost("OpenAI takes no more sessions at the moment (429).")
    if status >= 500:
        return ConnectionLost(f"OpenAI cannot open a session at the moment ({status}).")
    return ConnectionLost(f"OpenAI refused the connection ({status}{f', {code}' if code else ''}).", retryable=False)


def closed(code: int, reason: str) -> ConnectionLost:
    """Return the error for a closed socket. The vendor's own close codes, from 3000 on, name the error in their reason."""
    kind = reason.rpartition(".")[2]
    if code == 3_000 or kind in _KEY_CODES:
        return ConnectionLost(BAD_KEY, close_code=code, retryable=False)
    retryable = code in _PASSING_CLOSES or kind in _PASSING_CODES
    return ConnectionLost(f"OpenAI closed the connection ({code}).", close_code=code, retryable=retryable)


def fatal(kind: str, code: str) -> ConnectionLost | None:
    """Return the error that an `error` event means for an open connection; None if the connection outlives it."""
    if kind == "authentication_error" or code in _KEY_CODES:
        return ConnectionLost(BAD_KEY, retryable=False)
    if code == EXPIRED:
        return ConnectionLost("The session with OpenAI reached its longest duration.")
    if code in _FINAL_CODES:
        return ConnectionLost(f"OpenAI refuses to go on ({code}).", retryable=False)
    return None


def unset(kind: str, code: str, param: str) -> ConnectionLost:
    """Return the error for an `error` event while a session is set up: a session starts whole or not at all."""
    passing = code in _PASSING_CODES or kind in _PASSING_CODES
    where = f" at {param}" if param else ""
    return fatal(kind, code) or ConnectionLost(f"OpenAI refused the session ({code or kind}{where}).", retryable=passing)


def _tool(function: Function) -> RealtimeFunctionToolParam:
    return {
        "type": "function",
        "name": function.name,
        "description": function.description,
        "parameters": dialects.openai(function.parameters),
    }


class _Error(msgspec.Struct):
    code: str | None = None


class _Refusal(msgspec.Struct):
    error: _Error


def _code(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Refusal).error.code or ""
    except msgspec.DecodeError:
        return ""
