"""The voice worker of a call killed with SIGKILL at random moments of its turns, in a default `voxbridge up`: the time until the caller
hears of the call again, and the words lost or repeated.

A turn is typed and answered in spoken sentences whose words are all unique, by a stand-in for the models that takes no time; the rest is
the product. The clock starts at the kill, and ends at the first sound of a later reply or the first message of the successor (`restored`),
whichever comes first. Nothing is subtracted.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import time
from collections import Counter
from typing import Any, Final

import msgspec

from bench import figures
from bench.areas.audio import Found, Say
from bench.clients.live_call import LiveCall
from bench.installed import Installed, busy, installed
from bench.report import Figure
from tests.voice.model_server import ModelServer
from voxbridge.shared.setting import PREFIX

ROUNDS: Final = 60
SENTENCES: Final = 5
WORDS: Final = 5
SENTENCE_MS: Final = 900
MOMENT_S: Final = 5.5
"""Longest time from a typed turn to its kill, in seconds: kills fall into thinking, speaking and idle phases."""

WITHIN_S: Final = 60.0
LOADS: Final = {"quiet": (0, 1_200), "at load 4": (4, 3_000)}
"""Busy loops beside the product, and the target in ms."""


class Kill(msgspec.Struct, frozen=True, kw_only=True):
    """A round. `after_s`: from the question to the kill; `ms`: from the kill to the first sign of the successor."""

    after_s: float
    ms: float
    lost: int
    """Words of the answer that are in no transcript."""

    again: int
    """Words that are in two transcripts."""

    cut: bool
    """The kill fell into a sentence that was being spoken."""


async def kills(quick: bool, say: Say) -> Found:
    """Kill the worker sixty times on a quiet machine, and sixty times beside four busy loops."""
    rounds = 5 if quick else ROUNDS
    seed = int(os.environ.get("VOXBRIDGE_BENCH_SEED", "0")) or random.SystemRandom().randrange(1 << 32)
    found: list[Figure] = []
    detail: dict[str, Any] = {"seed": seed}
    for number, (name, (loops, target)) in enumerate(LOADS.items()):
        chance = random.Random(seed + number)
        every = await _killed(rounds, loops, chance, lambda text, name=name: say(f"kills, {name}: {text}"))  # type: ignore[misc]
        values = figures.series([one.ms for one in every])
        detail[name] = {"rounds": every, "ms": values}
        what = f"voice worker killed at {len(every)} random moments, {name} → sound or word of its successor"
        note = f"p50 {values.p50:.0f}, longest {values.longest:.0f} ms; seed {seed + number}"
        key = f"kills.{'quiet' if not loops else 'load'}"
        needs = "the second voice worker that `voxbridge up` keeps"
        found += [
            Figure(area="kills", what=f"{what}, p95", key=key, unit="ms", value=values.p95, target=target, note=note, needs=needs),
            Figure(
                area="kills",
                what="of these, words of an answer lost",
                key=f"{key}.lost",
                unit="",
                value=sum(one.lost for one in every),
                target=0,
            ),
            Figure(
                area="kills",
                what="of these, words said again, of sentences heard in part",
                unit="",
                value=sum(one.again for one in every),
                note=f"{sum(one.cut for one in every)} kills in the middle of a sentence",
            ),
        ]
    return found, detail, []


async def _killed(rounds: int, loops: int, chance: random.Random, say: Say) -> list[Kill]:
    found: list[Kill] = []
    async with ModelServer() as models:
        urls = {f"{PREFIX}{part}_URL": models.url for part in ("MODELS", "STT", "LLM", "TTS")}
        async with installed({**urls, f"{PREFIX}GREETING": ""}) as product:
            with busy(loops):
                async with LiveCall.begun(product.url, mode="local") as call:
                    for number in range(rounds):
                        found.append(await _round(product, models, call, number, chance))
                        say(f"{number + 1} of {rounds}: {found[-1].ms:.0f} ms")
    return found


async def _round(product: Installed, models: ModelServer, call: LiveCall, number: int, chance: random.Random) -> Kill:
    workers = await product.workers()
    sentences = [" ".join(f"r{number}s{one}w{word}" for word in range(WORDS)) + "." for one in range(SENTENCES)]
    models._scripts["llm"].clear()
    for _ in range(3):  # the successor repeats its requests, and the model must give the same answer
        models.script("llm", [f"{sentence} " for sentence in sentences])
    models._scripts["tts"].clear()
    models.script("tts", *([SENTENCE_MS] for _ in range(3 * SENTENCES)))
    restored, generation = _count(call, "restored"), max((one.generation for one in call.heard), default=0)
    call.type(f"Question {number}.")
    after_s = chance.uniform(0, MOMENT_S)
    await asyncio.sleep(after_s)
    victim = workers[await product.owner(call.sid)]
    before = max((one.generation for one in call.heard), default=0)
    speaking = bool(call.heard) and before > generation and time.monotonic() - call.heard[-1].at < 0.1
    moment = time.monotonic()
    victim.kill()
    await call.when(
        lambda: _count(call, "restored") > restored or any(one.at > moment and one.generation > before for one in reversed(call.heard)),
        within_s=WITHIN_S,
    )
    ms = (time.monotonic() - moment) * 1_000
    await call.when(
        lambda: _count(call, "restored") > restored and _count(call, "turn_complete", reason="completed") > number, within_s=WITHIN_S
    )
    said = Counter(
        word for one in call.told if one["type"] == "transcript" and one.get("role") == "assistant" for word in _words(one, number)
    )
    wanted = {word for sentence in sentences for word in _words({"text": sentence}, number)}
    return Kill(
        after_s=after_s,
        ms=ms,
        lost=len(wanted - said.keys()),
        again=sum(1 for count in said.values() if count > 1),
        cut=speaking,
    )


def _words(told: dict[str, Any], number: int) -> list[str]:
    return re.findall(rf"\br{number}s\d+w\d+\b", str(told["text"])) if told.get("final", True) else []


def _count(call: LiveCall, kind: str, **fields: Any) -> int:
    return sum(one.items() >= {"type": kind, **fields}.items() for one in call.told)
