"""Names of terminals in spoken orders, with the installation's own models: is the terminal meant that was named?

    python -m bench --only spoken_names

Sixty of the orders of `bench/officer`, those that name a terminal, are spoken by the product's voice, a third of them 15 % slower and a
third 15 % faster; once as they are, and once in white noise 10 dB below the voice. They are transcribed as the voice service asks for it,
with the vocabulary of a session of the officer, and the words are typed into a session each. An order is right if the calls that come of it
mean the terminals that were named. The detail has what was understood of the others.
"""

from __future__ import annotations

import io
import re
import wave
from collections.abc import Sequence
from typing import Any, Final

import httpx
import msgspec
import numpy as np
import soxr

from bench.areas import officer
from bench.areas.audio import Found, Say
from bench.areas.speech import Pcm, voiced
from bench.report import Figure
from bench.stack import ROOT, Stack
from voxbridge.services.tools.packs.terminals.named import find
from voxbridge.services.tools.session.names import AGENTS
from voxbridge.services.voice.core.agents import VOCABULARY
from voxbridge.shared.agents.reading import load
from voxbridge.shared.audio.frames import INPUT_RATE
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.terminals.model import Card

COUNT: Final = 60
PACES: Final = (1.0, 0.85, 1.15)
NOISE_DB: Final = -10.0
TARGETS: Final = {"clean": 95, "noisy": 90}
_ARGUMENTS: Final = ("terminal", "source")


class Missed(msgspec.Struct, frozen=True):
    """An order whose terminals were not those that were named."""

    say: str
    understood: str
    named: tuple[str, ...]
    meant: tuple[str, ...]


async def spoken_names(quick: bool, say: Say) -> Found:
    """Speak every order once as it is and once in noise."""
    every = [(words, named) for name in officer.SETS for words, calls in officer.orders(name) if (named := _named(words, calls))]
    chosen = every[:: max(1, len(every) // COUNT)][: 6 if quick else COUNT]
    noise = np.random.default_rng(7)
    missed: dict[str, list[Missed]] = {"clean": [], "noisy": []}
    async with officer.bridge() as product, officer.manned(product, say) as fleet:
        cards = msgspec.convert((await fleet.terminals.ask("GET"))["terminals"], tuple[Card, ...])
        prompt = _prompt([card.name for card in cards])
        for number, (words, named) in enumerate(chosen):
            say(f"spoken_names: order {number + 1} of {len(chosen)}")
            sound = _paced(await voiced(product, words), PACES[number % len(PACES)])
            for how, heard in (("clean", sound), ("noisy", _in_noise(sound, noise))):
                understood = await _transcribed(product, heard, prompt)
                called, _ = await officer.ordered(product, fleet, understood)
                meant = _meant(cards, called)
                if set(named) - set(meant):
                    missed[how].append(Missed(words, understood, named, meant))
    what = f"{len(chosen)} spoken orders: the terminal that was named is meant"
    rows = [
        Figure(
            area="spoken_names",
            what=f"{what}, {'as they are' if how == 'clean' else 'in white noise 10 dB below the voice'}",
            key=f"spoken_names.{how}",
            unit="%",
            value=round(100 * (1 - len(missed[how]) / len(chosen)), 1),
            target=target,
            aim="at least",
            note=f"misses: {len(missed[how])}, each in the run's detail",
        )
        for how, target in TARGETS.items()
    ]
    return rows, {"misses": missed}, []


def _named(words: str, calls: officer.Calls) -> tuple[str, ...]:
    """Return the terminals that an order names and that are to be meant."""
    wanted = {str(arguments[part]) for _, arguments in calls for part in _ARGUMENTS if part in arguments}
    return tuple(sorted(name for name in wanted if re.search(rf"\b{re.escape(name)}\b", words, re.IGNORECASE)))


def _meant(cards: Sequence[Card], called: officer.Calls) -> tuple[str, ...]:
    found = set()
    for _, arguments in called:
        for part in _ARGUMENTS:
            if part in arguments:
                try:
                    found.add(find(cards, str(arguments[part])).name)
                except VoxbridgeError:
                    continue
    return tuple(sorted(found))


def _prompt(names: Sequence[str]) -> str:
    own = load(ROOT / "agents").team("officer").agents[0].vocabulary
    return f"{', '.join((*own, *(f'in {name}' for name in dict.fromkeys((*names, *AGENTS))))[:VOCABULARY])}."


def _paced(sound: Pcm, pace: float) -> Pcm:
    """Return a voice that is quicker by a factor, and higher by it."""
    quicker: Pcm = np.clip(soxr.resample(sound.astype(np.float32), INPUT_RATE * pace, INPUT_RATE), -32_768, 32_767).astype(np.int16)
    return quicker


def _in_noise(sound: Pcm, chance: np.random.Generator) -> Pcm:
    loudness = float(np.sqrt(np.mean(sound.astype(np.float64) ** 2)))
    noise = chance.standard_normal(len(sound)) * loudness * 10 ** (NOISE_DB / 20)
    return np.clip(sound + noise, -32_768, 32_767).astype(np.int16)


async def _transcribed(product: Stack, sound: Pcm, prompt: str) -> str:
    file = io.BytesIO()
    with wave.open(file, "wb") as recording:
        recording.setnchannels(1)
        recording.setsampwidth(2)
        recording.setframerate(INPUT_RATE)
        recording.writeframes(sound.tobytes())
    form: dict[str, Any] = {"model": "whisper", "language": "en", "prompt": prompt}
    async with httpx.AsyncClient(base_url=product.config.models_base_url, timeout=60, trust_env=False) as client:
        answer = await client.post("/audio/transcriptions", data=form, files={"file": ("order.wav", file.getvalue(), "audio/wav")})
    return str(answer.raise_for_status().json()["text"]).strip()
