"""The two functions by which a model has its user go on by voice, or in text; the page of the session answers both. Pure.

Owns what models are told of them, and what people say to want them. Does not own the switch: the page opens its microphone and sends
`output`, and the voice core follows (`voxbridge.services.voice.core.text_mode`).
"""

from __future__ import annotations

from typing import Final

from voxbridge.shared.agents.functions import Function

PENDING_LIMIT: Final = 200
"""Characters of a request that is left for the voice conversation."""

TIMEOUT_S: Final = 5.0

ABOUT: Final = (
    "voice", "vocal", "speak", "speaking", "spoken", "speech", "talk", "talking", "mic", "mike", "micro", "microphone", "aloud", "loud",
    "listen", "listening", "text", "texting", "type", "typing", "typed", "write", "writing", "written", "chat", "chatting", "keyboard",
)  # fmt: skip
"""Words of which a request has one if it wants either function. To a router that knows few other functions "I want to hear a joke" and
"I would rather have tea" look like requests for them."""

START: Final = Function(
    name="start_voice_session",
    description="Go on by voice: have the user's page open the microphone.",
    parameters={
        "type": "object",
        "properties": {
            "pending_request": {
                "type": "string",
                "maxLength": PENDING_LIMIT,
                "description": "What the user wants besides, in their words; it is answered first, by voice. Leave it out without one.",
            }
        },
        "required": [],
    },
    kind="browser",
    timeout_s=TIMEOUT_S,
    effect="read",
    utterances=(
        "start voice mode",
        "switch to voice",
        "let's talk instead of typing",
        "can we go on by voice",
        "turn the microphone on",
        "I would rather speak",
        "I'd sooner speak than write",
        "mic on",
        "speaking mode please",
        "I want to talk aloud",
        "open a voice session",
        "voice please",
        "let me use my microphone",
        "begin the voice conversation",
        "change to speaking",
        "start a voice session and tell me a joke",
        "switch to voice and read me the news",
    ),
)

END: Final = Function(
    name="end_voice_session",
    description="Go on in text: have the user's page close the microphone. The conversation goes on.",
    parameters={"type": "object", "properties": {}, "required": []},
    kind="browser",
    timeout_s=TIMEOUT_S,
    effect="read",
    utterances=(
        "end voice mode",
        "switch to text",
        "let's type instead",
        "turn the microphone off",
        "close the microphone",
        "I would rather write",
        "I'd sooner write than speak",
        "mic off",
        "stop listening to me",
        "writing mode please",
        "continue in writing",
        "go back to the text chat",
        "stop the voice session",
        "back to typing",
        "end the voice conversation",
        "leave voice mode",
        "no more talking, I will type",
    ),
)
