"""Requests that the fake Gemini accepts, and the close codes with which it refuses others.

From the SDK's types and Google's pages: the fields, the enumerations, the formats of audio. From reports of others, never seen live: 1007
for an unknown field and for a wrong key (after the upgrade, not 403 before it), 1008 for a missing key and an unknown model, 1007 for text
from a model that only speaks, and from 3.1 for content outside a declared history. Assumed: the answer to a handle that is refused, and
1007 for half a sample. `Options.close_codes` changes each.

Passing of history, by generation: a setup may declare it (`historyConfig`). Then no other input is processed until content with
`turnComplete` ends the history, which starts no turn (the SDK's types). 3.1 accepts content only in that way (Google's pages, and reports),
3.8 and 2.5 at any time (Google's pages). 2.5 ignores the declaration, and when it is spoken to it uses pending content only where that ends
with a turn of the user (reports).
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import Any, Final

_VOICES: Final = (
    "Achernar Achird Algenib Algieba Alnilam Aoede Autonoe Callirrhoe Charon Despina Enceladus Erinome Fenrir Gacrux Iapetus Kore "
    "Laomedeia Leda Orus Puck Pulcherrima Rasalgethi Sadachbia Sadaltager Schedar Sulafat Umbriel Vindemiatrix Zephyr "
    "Zubenelgenubi"
)
VOICES: Final = frozenset(_VOICES.split())
INPUT_MIME: Final = "audio/pcm;rate=16000"
RESULT_LIMIT: Final = 16_384
"""Most characters of a function's result; longer ones are reported to end connections."""

CLOSE_CODES: Final[dict[str, tuple[int, str]]] = {
    "key": (1007, "API key not valid. Please pass a valid API key."),
    "no_key": (1008, "Method doesn't allow unregistered callers (callers without established identity)."),
    "model": (1008, "is not found for API version v1beta, or is not supported for bidiGenerateContent."),
    "invalid": (1007, "Request contains an invalid argument."),
    "content": (1007, "Request contains an invalid argument."),
    "unknown_handle": (1008, "BidiGenerateContent session not found"),
    "expired_handle": (1008, "BidiGenerateContent session expired"),
    "changed_model": (1007, "Session resumption is not possible with another model."),
    "poisoned": (1007, "Request contains an invalid argument."),
    "resume_while_open": (1011, "Internal error encountered."),
}


@dataclass
class Options:
    """Behaviour of a server. Changes while it runs apply to what comes after."""

    keys: set[str] | None = None
    """API keys that it accepts; None: any that is not empty."""

    models: set[str] | None = None
    """Models that it has, without `models/`; None: all."""

    echo: bool = False
    """Each audio message is answered at once with the same bytes, and not processed otherwise."""

    keep_audio: bool = True
    silence_ms: int = 500
    """Milliseconds of silence that end the user's turn, unless the setup sets them."""

    speech_rms: int = 500
    pace: float = 0.0
    """Speed at which audio is made, as a multiple of real time; 0: without delay."""

    playback: bool = False
    """`turnComplete` waits until the audio would have been played; until then the user can interrupt."""

    interaction_status: bool = False
    """Sends `interactionStatus` beside each `turnComplete`."""

    history_only: set[str] = field(default_factory=lambda: {"gemini-3.1-flash-live-preview"})
    """Models that accept content only in a declared history."""

    reject_resume_while_open: bool = False
    reject_empty_resumption: set[str] = field(default_factory=set)
    """Models that refuse to start a resumable conversation, as was reported of one."""

    sticky_instruction: set[str] = field(default_factory=set)
    """Models that keep the instruction of the conversation's start when it is resumed."""

    handle_at_setup: bool = False
    """A handle is issued right after `setupComplete`, not only at the end of a turn."""

    bare_unresumable: bool = False
    """`resumable: false` is omitted, as protobuf's JSON omits defaults: the update is an empty object."""

    pong_delay_s: float = 0.0
    close_codes: dict[str, tuple[int, str]] = field(default_factory=lambda: dict(CLOSE_CODES))


class Refused(Exception):
    """Input that ends the connection. `kind` is one of `CLOSE_CODES`."""

    def __init__(self, kind: str, reason: str = "") -> None:
        super().__init__(kind, reason)
        self.kind = kind
        self.reason = reason


_ANY: Final = None
_CONTENT: Final = {"parts": _ANY, "role": _ANY}
_SETUP: Final[dict[str, Any]] = {
    "model": _ANY,
    "generationConfig": {
        **dict.fromkeys(("candidateCount", "maxOutputTokens", "temperature", "topP", "topK", "presencePenalty", "frequencyPenalty")),
        **dict.fromkeys(("responseModalities", "mediaResolution", "seed", "enableAffectiveDialog", "translationConfig")),
        "speechConfig": {
            "voiceConfig": {"prebuiltVoiceConfig": {"voiceName": _ANY}, "replicatedVoiceConfig": _ANY},
            "languageCode": _ANY,
            "multiSpeakerVoiceConfig": _ANY,
        },
        "thinkingConfig": {"includeThoughts": _ANY, "thinkingBudget": _ANY, "thinkingLevel": _ANY},
    },
    "systemInstruction": _CONTENT,
    "tools": {
        "functionDeclarations": dict.fromkeys(
            ("name", "description", "parameters", "parametersJsonSchema", "behavior", "response", "responseJsonSchema")
        ),
        **dict.fromkeys(("googleSearch", "googleSearchRetrieval", "codeExecution", "urlContext", "googleMaps", "fileSearch")),
    },
    "realtimeInputConfig": {
        "automaticActivityDetection": dict.fromkeys(
            ("disabled", "startOfSpeechSensitivity", "endOfSpeechSensitivity", "prefixPaddingMs", "silenceDurationMs")
        ),
        "activityHandling": _ANY,
        "turnCoverage": _ANY,
    },
    "sessionResumption": {"handle": _ANY},
    "contextWindowCompression": {"triggerTokens": _ANY, "slidingWindow": {"targetTokens": _ANY}},
    "inputAudioTranscription": _ANY,
    "outputAudioTranscription": _ANY,
    "proactivity": {"proactiveAudio": _ANY},
    "historyConfig": {"initialHistoryInClientContent": _ANY},
    **dict.fromkeys(("avatarConfig", "safetySettings", "labels")),
}
_MESSAGES: Final[dict[str, dict[str, Any]]] = {
    "clientContent": {"turns": _CONTENT, "turnComplete": _ANY},
    "realtimeInput": dict.fromkeys(("audio", "text", "video", "mediaChunks", "activityStart", "activityEnd", "audioStreamEnd")),
    "toolResponse": {"functionResponses": dict.fromkeys(("id", "name", "response", "scheduling", "willContinue", "parts"))},
    "contextUpdate": {"systemInstruction": _CONTENT, "tools": {"tools": _SETUP["tools"]}},
}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
_SNAKE: Final = re.compile(r"_([a-z0-9])")
_OPAQUE: Final = frozenset({"parameters", "parametersJsonSchema", "response", "responseJsonSchema", "args", "labels"})
_SCHEDULING: Final = frozenset({"SILENT", "WHEN_IDLE", "INTERRUPT"})


def camel(value: Any) -> Any:
    """Return a message with all fields in camel case: the service accepts both `turn_complete` and `turnComplete`.

    Data of the user (schemas, arguments, results) stays unchanged."""
    if isinstance(value, list):
        return [camel(one) for one in value]
    if not isinstance(value, dict):
        return value
    renamed = {_SNAKE.sub(lambda found: found[1].upper(), key): one for key, one in value.items()}
    return {key: one if key in _OPAQUE else camel(one) for key, one in renamed.items()}


def invalid(reason: str) -> Refused:
    """Return the refusal of an invalid message."""
    return Refused("invalid", reason)


def check_setup(setup: dict[str, Any], options: Options) -> None:
    """Raise `Refused` for a setup that the service refuses."""
    _known(setup, _SETUP, "setup")
    model = setup.get("model")
    if not isinstance(model, str) or not model.startswith("models/") or model == "models/":
        raise invalid("BidiGenerateContentRequest.setup.model: unexpected model name format")
    if options.models is not None and model.removeprefix("models/") not in options.models:
        raise Refused("model", f"{model} {options.close_codes['model'][1]}")
    _check_generation(model.removeprefix("models/"), setup)
    check_tools(setup.get("tools", []))


def declares_history(setup: dict[str, Any]) -> bool:
    """Return whether a setup declares that history follows, to a model that supports it."""
    declared = setup.get("historyConfig", {}).get("initialHistoryInClientContent") is True
    return declared and not forgets_what_is_pending(str(setup["model"]).removeprefix("models/"))


def forgets_what_is_pending(model: str) -> bool:
    """Return whether a spoken turn ignores pending content, unless that ends with a turn of the user."""
    return model.startswith("gemini-2")


def check_fields(kind: str, fields: dict[str, Any]) -> None:
    """Raise `Refused` for a field of a message that the service does not know."""
    if kind in _MESSAGES:
        _known(fields, _MESSAGES[kind], kind)


def check_tools(tools: Any) -> None:
    """Raise `Refused` for function declarations that the service refuses."""
    names: set[str] = set()
    for declared in functions(tools):
        name = declared.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise invalid(f"Invalid function name: {name!r}")
        if name in names:
            raise invalid(f"Duplicate function declaration found: {name}")
        if declared.get("behavior", "BLOCKING") not in {"BLOCKING", "NON_BLOCKING", "UNSPECIFIED"}:
            raise invalid(f"Invalid value at 'setup.tools.function_declarations.behavior': {declared['behavior']!r}")
        if "parameters" in declared and "parametersJsonSchema" in declared:
            raise invalid(f"Function {name}: parameters and parameters_json_schema exclude each other")
        names.add(name)


def functions(tools: Any) -> list[dict[str, Any]]:
    """Return the functions that are declared among tools."""
    if not isinstance(tools, list):
        raise invalid("Invalid value at 'setup.tools'")
    return [declared for tool in tools for declared in tool.get("functionDeclarations", [])]


def check_answers(answers: Any) -> list[dict[str, Any]]:
    """Return the function responses of a message; raises `Refused` for any that is malformed."""
    if not isinstance(answers, list) or not answers:
        raise invalid("tool_response without function_responses")
    for answer in answers:
        if not answer.get("id"):
            raise invalid("FunctionResponse without an id")
        if not isinstance(answer.get("response", {}), dict):
            raise invalid("Invalid value at 'tool_response.function_responses.response' (TYPE_MESSAGE)")
        if answer.get("scheduling", "WHEN_IDLE") not in _SCHEDULING:
            raise invalid(f"Invalid value at 'tool_response.function_responses.scheduling': {answer['scheduling']!r}")
        if len(str(answer.get("response", ""))) > RESULT_LIMIT:
            raise invalid("Request contains an invalid argument.")
    return list(answers)


def audio(blob: Any) -> bytes:
    """Return the samples of an audio blob; raises `Refused` unless it is PCM16 at 16 kHz."""
    if not isinstance(blob, dict) or blob.get("mimeType") != INPUT_MIME:
        raise invalid(f"Unsupported audio: {blob.get('mimeType') if isinstance(blob, dict) else blob}")
    try:
        pcm = base64.b64decode(str(blob.get("data", "")).translate(_STANDARD), validate=True)
    except (binascii.Error, ValueError):
        raise invalid("Invalid value at 'realtime_input.audio.data' (TYPE_BYTES), Base64 decoding failed") from None
    if len(pcm) % 2:
        raise invalid("Audio of half a sample")
    return pcm


_STANDARD: Final = {ord("-"): "+", ord("_"): "/"}


def _known(value: Any, fields: dict[str, Any], path: str) -> None:
    """Check that the service knows every field at a path; a list is checked item by item. Raises `Refused`."""
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, dict):
            raise invalid(f"Invalid value at '{path}'")
        for name, inner in one.items():
            if name not in fields:
                raise invalid(f"Invalid JSON payload received. Unknown name \"{name}\" at '{path}': Cannot find field.")
            if fields[name] is not None:
                _known(inner, fields[name], f"{path}.{name}")


def _check_generation(model: str, setup: dict[str, Any]) -> None:
    config = setup.get("generationConfig", {})
    modalities = config.get("responseModalities", ["AUDIO"])
    if modalities not in (["AUDIO"], ["TEXT"]):
        raise invalid(f"Unsupported response modalities: {modalities}")
    if modalities == ["TEXT"] and ("native-audio" in model or model.startswith("gemini-3")):
        raise invalid("Cannot extract voices from a non-audio request.")
    voice = config.get("speechConfig", {}).get("voiceConfig", {}).get("prebuiltVoiceConfig", {}).get("voiceName")
    if voice is not None and voice not in VOICES:
        raise invalid(f"Requested voice api_name '{voice}' is not available for model {setup['model']}")
    if not model.startswith("gemini-3.8"):
        return
    deep = "extended-thinking" in model
    if ("thinkingLevel" in config.get("thinkingConfig", {})) != deep:
        raise invalid("Thinking level is required for this model." if deep else "Thinking level is not supported for this model.")
    if setup.get("proactivity", {}).get("proactiveAudio") is False or "enableAffectiveDialog" in config:
        raise invalid("Proactive audio and affective dialog cannot be set for this model.")
    if deep and any(one.get("behavior") == "BLOCKING" for one in functions(setup.get("tools", []))):
        raise invalid("Blocking functions are not supported for this model.")
