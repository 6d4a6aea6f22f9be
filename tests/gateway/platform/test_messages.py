"""The messages of `/session`: a golden conversation in both directions, against the types and the published schemas; and their bounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from deploy import session_messages
from voxbridge.services.gateway.platform import messages
from voxbridge.services.gateway.platform.dialect import Dialect
from voxbridge.shared.audio.frames import FLUSH, LAST, PCM16, pack
from voxbridge.shared.errors import VoxbridgeError

GOLDEN: list[tuple[str, dict[str, Any]]] = [tuple(one) for one in json.loads((Path(__file__).parent / "golden.json").read_text())]
DIRECTIONS: dict[str, tuple[str, Any]] = {
    "page": ("ClientMessage", messages.ClientMessage),
    "platform": ("ServerMessage", messages.ServerMessage),
}


def published(name: str) -> dict[str, Any]:
    """Return a schema of docs/session.schema.json."""
    whole: dict[str, Any] = json.loads(session_messages.SCHEMAS.read_text(encoding="utf-8"))
    return whole | {"$ref": f"#/$defs/{name}"}


@pytest.mark.parametrize(("sender", "message"), GOLDEN)
def test_a_golden_message_is_one_of_its_direction_and_reads_back_as_it_was(sender: str, message: dict[str, Any]) -> None:
    name, kind = DIRECTIONS[sender]
    jsonschema.validate(message, published(name))
    meant = msgspec.json.decode(json.dumps(message), type=kind)
    again = json.loads(msgspec.json.encode(meant))
    assert {key: again[key] for key in message if key != "tools"} == {key: value for key, value in message.items() if key != "tools"}


def test_every_message_of_the_protocol_is_in_the_golden_conversation() -> None:
    known = json.loads(session_messages.schemas())["$defs"]
    for sender, (name, _) in DIRECTIONS.items():
        assert {message["type"] for one, message in GOLDEN if one == sender} == set(known[name]["discriminator"]["mapping"])


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("speed", [0.5, 2.0], [0.49, 2.01]),
        ("bargeInWords", [0, 10], [-1, 11]),
        ("language", ["en", "pt-BR", ""], ["e", "EN", "en_US", "en-" + "x" * 9]),
        (
            "timeZone",
            ["Europe/Lisbon", "America/Argentina/Buenos_Aires", "Etc/GMT+3", "UTC", ""],
            ["../x", "/etc", "x" * 65, "Europe/Lisbon "],
        ),
        ("voice", ["v" * 256], ["v" * 257]),
    ],
)
def test_a_choice_is_taken_at_its_bound_and_refused_beyond_it(field: str, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert isinstance(messages.read(json.dumps({"type": "configure", field: value}).encode()), messages.Configure)
    for value in bad:
        with pytest.raises(VoxbridgeError) as refusal:
            messages.read(json.dumps({"type": "configure", field: value}).encode())
        assert refusal.value.field == field


def test_a_message_has_at_most_256_kib_and_no_deep_nesting() -> None:
    fits = json.dumps({"type": "configure", "x": ""})
    assert messages.read((fits[:-2] + "y" * (messages.CONFIGURE_LIMIT - len(fits)) + fits[-2:]).encode())
    with pytest.raises(VoxbridgeError, match="at most 262144 bytes"):
        messages.read((fits[:-2] + "y" * (messages.CONFIGURE_LIMIT - len(fits) + 1) + fits[-2:]).encode())
    with pytest.raises(VoxbridgeError, match="within one another"):
        messages.read(b'{"type":"configure","x":' + b"[" * 2_000 + b"]" * 2_000 + b"}")


def test_the_text_of_an_answer_waits_for_the_words_that_it_answers_until_its_sound_ends() -> None:
    words = Dialect(framed=False, hears=True)
    chat = {"type": "chat", "text": "Noon.", "steps": [], "turn": 1, "generation": 1}
    heard = {"type": "transcript", "role": "user", "final": True, "text": "What time is it?", "turn": 1}
    assert [one["type"] for one in words.told({"type": "state", "state": "thinking"})] == ["thinking"]
    assert list(words.told(chat)) == []
    assert [one["type"] for one in words.told(heard)] == ["turn", "chat"]
    later = Dialect(framed=False, hears=True)
    assert list(later.told(chat)) == []
    assert list(later.ended(pack(PCM16, 1, 0, 0, b"\0\0"))) == []
    assert [one["type"] for one in later.ended(pack(PCM16, 1, 1, 0, b"", LAST))] == ["chat", "tts_done"]
    assert [one["type"] for one in later.told(heard)] == ["turn"], "it was answered: nobody thinks any more"
    assert [one["type"] for one in later.ended(pack(FLUSH, 2, 2, 0))] == ["cancelled"]
