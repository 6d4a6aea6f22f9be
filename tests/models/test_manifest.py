"""The manifest of models."""

from __future__ import annotations

import re

import pytest

from voxbridge.services.models.weights import manifest
from voxbridge.services.models.weights.manifest import Model
from voxbridge.shared.errors import Code, VoxbridgeError

ROLES = {"stt", "llm", "tts", "vad", "turn"}


@pytest.mark.parametrize("name", ["default", "small"])
def test_every_set_has_one_model_for_each_role(name: str) -> None:
    chosen = manifest.load().chosen(name)
    assert sorted(model.role for model in chosen) == sorted(ROLES)


@pytest.mark.parametrize("model", manifest.load().models, ids=lambda model: model.id)
def test_every_file_has_a_digest_a_licence_a_publisher_and_two_sources(model: Model) -> None:
    assert model.licence
    assert model.publisher
    assert model.hub.startswith("https://")
    assert model.revision in model.hub
    for file in model.files:
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        assert file.bytes > 0
        assert file.parts
        for part in file.parts:
            pin = manifest.load().packages[part.package]
            assert re.fullmatch(r"[0-9a-f]{64}", pin.sha256)
            assert pin.bytes > 0


def test_a_model_that_speaks_has_voices_and_the_first_of_them_is_the_speaker_as_recorded() -> None:
    speaking = [model for model in manifest.load().models if model.voices]
    assert speaking == [model for model in manifest.load().models if model.role == "tts"]
    for model in speaking:
        assert model.voices[0].pitch == 1.0
        assert len({voice.id for voice in model.voices}) == len(model.voices)
        assert all(0.8 <= voice.pitch <= 1.25 for voice in model.voices), "what was listened to"


def test_an_unknown_set_is_refused_with_the_sets_there_are() -> None:
    with pytest.raises(VoxbridgeError, match=r"'tiny'; the sets are default, small") as refused:
        manifest.load().chosen("tiny")
    assert refused.value.code is Code.INVALID_ARGUMENT
    assert refused.value.field == "VOXBRIDGE_MODELS_SET"


def test_an_unknown_model_is_refused_with_the_models_there_are() -> None:
    with pytest.raises(VoxbridgeError, match="whisper-base") as refused:
        manifest.load().model("nothing")
    assert refused.value.code is Code.NOT_FOUND


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"sets = 1", "cannot be read"),
        (b"models = []\n[packages]\n[sets]\ndefault = ['x']", "no model 'x'"),
        (
            b"""sets = {}
            packages = {}
            [[models]]
            id = 'x'
            role = 'stt'
            title = 'X'
            licence = 'MIT'
            publisher = 'p'
            revision = '1'
            hub = 'h'
            files = [{name = 'f', bytes = 1, sha256 = 's', parts = [{package = 'none', member = 'm'}]}]""",
            "no version of 'none'",
        ),
    ],
)
def test_a_broken_manifest_is_refused_with_what_is_wrong(text: bytes, message: str) -> None:
    with pytest.raises(VoxbridgeError, match=message):
        manifest.decode(text)
