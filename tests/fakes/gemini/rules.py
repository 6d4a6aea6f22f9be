"""What the fake Gemini accepts, and with which close code it refuses the rest.

From the SDK's types and Google's pages: the fields, the enumerations, the formats of audio. From reports of others, never seen live:
1007 for an unknown field and for a wrong key (after the upgrade, not 403 before it), 1008 for a missing key and an unknown model, 1007
for text from a model that only speaks, and from 3.1 for content that is no declared history. Assumed: what a handle that is not taken is
answered, 1007 for a sample cut in half. `Options.close_codes` changes each.

How history is told, by generation: a setup may declare it (`historyConfig`), then nothing else is taken up until content with
`turnComplete` ended it, which makes no turn (the SDK's types). 3.1 takes content in that way only (Google's pages, and reports), 3.8 and
2.5 at any time (Google's pages). 2.5 does not heed the declaration, and goes by what is pending when it is asked aloud only where that
ends with a turn of the user's (reports).
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
"""Characters of a function's result; more of it is reported to end connections."""

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
    """What a server does; may be changed while it runs, for what comes after."""

    keys: set[str] | None = None
    """The API keys it takes; nothing: any that is not empty."""

    models: set[str] | None = None
    """The models it has, without `models/`; nothing: every one."""

    echo: bool = False
    """Each message of audio is answered at once with the same bytes, and nothing else is done with it."""

    keep_audio: bool = True
    silence_ms: int = 500
    """Ends the user's turn, unless the setup says how much."""

    speech_rms: int = 500
    pace: float = 0.0
    """How many times faster than real time audio is made; 0: at once."""

    playback: bool = False
    """`turnComplete` waits until the audio would have been played; till then the user can interrupt."""

    interaction_status: bool = False
    """Sends `interactionStatus` beside each `turnComplete`."""

    history_only: set[str] = field(default_factory=lambda: {"gemini-3.1-flash-live-preview"})
    """Models that take content in a declared history and at no other time."""

    reject_resume_while_open: bool = False
    reject_empty_resumption: set[str] = field(default_factory=set)
    """Models that refuse to begin a conversation that is to be resumable, as one was reported to."""

    sticky_instruction: set[str] = field(default_factory=set)
    """Models that resume under the instruction with which the conversation began."""

    handle_at_setup: bool = False
    """A handle comes right behind `setupComplete`, not only at the end of a turn."""

    bare_unresumable: bool = False
    """`resumable: false` is left out, as protobuf's JSON leaves out defaults: the update is an empty object."""

    pong_delay_s: float = 0.0
    close_codes: dict[str, tuple[int, str]] = field(default_factory=lambda: dict(CLOSE_CODES))


class Refused(Exception):
    """What was sent ends the connection. `kind` is one of `CLOSE_CODES`."""

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
    """A message with its fields named one way: the service takes both `turn_complete` and `turnComplete`. What belongs to the
    user (schemas, arguments, results) stays as it is."""
    if isinstance(value, list):
        return [camel(one) for one in value]
    if not isinstance(value, dict):
        return value
    renamed = {_SNAKE.sub(lambda found: found[1].upper(), key): one for key, one in value.items()}
    return {key: one if key in _OPAQUE else camel(one) for key, one in renamed.items()}


def invalid(reason: str) -> Refused:
    """Something in a message is wrong."""
    return Refused("invalid", reason)


def check_setup(setup: dict[str, Any], options: Options) -> None:
    """Raises `Refused` for a setup that the service would not take."""
    _known(setup, _SETUP, "setup")
    model = setup.get("model")
    if not isinstance(model, str) or not model.startswith("models/") or model == "models/":
        raise invalid("BidiGenerateContentRequest.setup.model: unexpected model name format")
    if options.models is not None and model.removeprefix("models/") not in options.models:
        raise Refused("model", f"{model} {options.close_codes['model'][1]}")
    _check_generation(model.removeprefix("models/"), setup)
    check_tools(setup.get("tools", []))


def declares_history(setup: dict[str, Any]) -> bool:
    """Whether a setup says that history follows, to a model that heeds it."""
    declared = setup.get("historyConfig", {}).get("initialHistoryInClientContent") is True
    return declared and not forgets_what_is_pending(str(setup["model"]).removeprefix("models/"))


def forgets_what_is_pending(model: str) -> bool:
    """Whether content that no turn was asked for counts only where it ends with the user, and the next turn is asked for aloud."""
    return model.startswith("gemini-2")


def check_fields(kind: str, fields: dict[str, Any]) -> None:
    """Raises `Refused` for a field of a message that the service does not know."""
    if kind in _MESSAGES:
        _known(fields, _MESSAGES[kind], kind)


def check_tools(tools: Any) -> None:
    """Raises `Refused` for functions that the service would not take."""
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
    """The functions that are declared among tools."""
    if not isinstance(tools, list):
        raise invalid("Invalid value at 'setup.tools'")
    return [declared for tool in tools for declared in tool.get("functionDeclarations", [])]


def check_answers(answers: Any) -> list[dict[str, Any]]:
    """The function responses of a message; raises `Refused` for any that is malformed."""
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
    """The samples of an audio blob; raises `Refused` for what is not PCM16 at 16 kHz."""
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
    """The names of every field that the service knows at a path; a list is of such values."""
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
