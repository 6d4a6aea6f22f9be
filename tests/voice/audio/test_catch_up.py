"""Positions of the audio that the bus kept, and hearing it again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.virtual_time import in_virtual_time
from tests.voice.sounds import silence, speech
from voxbridge.services.voice.audio import catch_up
from voxbridge.services.voice.audio.microphone import MARK_MS, STALLED_S, Microphone
from voxbridge.services.voice.audio.vad import SileroModel
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core.outstanding import Outstanding
from voxbridge.services.voice.core.state import Client, Counters, Mark, Playback, Reply, Speech, State, Utterance
from voxbridge.services.voice.session.recovery import PriorState
from voxbridge.shared.audio import frames
from voxbridge.shared.step.fold import Folded

PART = 640
"""Bytes of a 20 ms frame."""


def cut(pcm: bytes, *, first: int = 0) -> list[bytes]:
    """Split PCM into frames of 20 ms."""
    parts = [pcm[at : at + PART] for at in range(0, len(pcm), PART)]
    return [frames.pack(frames.PCM16, 0, first + n, 1_000 + 20 * (first + n), part) for n, part in enumerate(parts)]


def mark_of(frame: bytes, samples: int) -> Mark:
    prefix = frames.parse(frame)
    return Mark(samples=samples, sequence=prefix.sequence, time_ms=prefix.time_ms)


def test_frames_are_placed_by_the_newest_one_whose_place_is_known() -> None:
    kept = cut(silence(1_000))
    placed = catch_up.place(kept, mark_of(kept[9], 16_000 + 3_200))
    assert (placed.start, placed.start_ms, placed.end_ms, placed.lost) == (16_000, 1_000, 2_000, 0)
    assert (placed.heard, placed.unheard) == (kept[:10], kept[10:])


def test_what_the_bus_has_forgotten_since_is_counted_as_lost() -> None:
    kept = cut(silence(1_000), first=60)
    placed = catch_up.place(kept, Mark(samples=3_200, sequence=9, time_ms=1_180))
    assert (placed.start, placed.lost_ms) == (3_200 + 50 * 320, 1_000)
    assert (placed.heard, placed.unheard) == ([], kept)


def test_a_client_that_counts_anew_has_lost_nothing_that_is_known() -> None:
    kept = cut(silence(200))
    placed = catch_up.place(kept, Mark(samples=3_200, sequence=5_000, time_ms=77))
    assert (placed.start, placed.lost) == (3_200, 0)


def test_a_microphone_that_nobody_had_heard_begins_at_its_first_frame() -> None:
    kept = cut(silence(200))
    assert catch_up.place(kept, None) == catch_up.Placed(0, [], kept, 0)
    assert catch_up.place([], None).end_ms == 0


def test_more_frames_than_there_is_past_are_passed_over() -> None:
    kept = cut(silence(1_000))
    placed = catch_up.place(kept, mark_of(kept[9], 1_600))
    assert (placed.start, len(placed.heard)) == (0, 5)


@pytest.mark.parametrize("overlap", [0, 1, 7, 20])
def test_live_frames_follow_the_kept_ones_without_a_gap_or_a_repetition(overlap: int) -> None:
    every = cut(silence(1_000))
    kept, live = every[:30], every[30 - overlap :]
    assert [*kept, *catch_up.newer(live, kept)] == every


def test_of_a_reply_the_audio_that_left_is_counted_by_generation() -> None:
    spoken = [frames.pack(frames.PCM16, generation, n, 0, bytes(960)) for n, generation in enumerate((1, 1, 2, 2, 2))]
    kept = catch_up.Kept([], spoken)
    assert (kept.left_ms(1), kept.left_ms(2), kept.left_ms(3)) == (40, 60, 0)
    assert kept.next_sequence() == 5
    assert catch_up.Kept([], []).next_sequence() is None


def test_of_a_reply_that_began_before_what_is_kept_the_rest_is_told_by_the_clock() -> None:
    state = State(
        sid="s", counters=Counters(generation=1), speech=Speech(reply=Reply(generation=1, turn=1, playback=Playback(sent=1_000_000)))
    )
    prior = PriorState(Folded(state, 0, 0, 0), Outstanding(), alive_at=21_000_000)
    assert prior.left_ms(catch_up.Kept([], []), 24_000_000) == 20_400
    assert prior.left_ms(catch_up.Kept([], []), 4_000_000) == 0
    assert prior.next_sequence(catch_up.Kept([], [])) > 20_400 // 20


class Heard:
    """A microphone and its inputs to the core."""

    def __init__(self, silero: SileroModel) -> None:
        self.took: list[Any] = []
        self.reached = True
        self.microphone = Microphone(silero, self.took.append, lambda: self.reached)

    def voice(self) -> list[Any]:
        return [one for one in self.took if not isinstance(one, inputs.MicrophoneAt | inputs.VoicePaused)]

    def marks(self) -> list[inputs.MicrophoneAt]:
        return [one for one in self.took if isinstance(one, inputs.MicrophoneAt)]


@pytest.mark.parametrize("death_ms", [200, 700, 1_300, 2_400, 2_900, 4_300])
async def test_a_successor_hears_what_one_pair_of_ears_would_have_heard(silero: SileroModel, death_ms: int) -> None:
    every = cut(silence(500) + speech(1_500) + silence(1_500) + speech(1_000) + silence(600))
    alone, first, second = Heard(silero), Heard(silero), Heard(silero)
    for frame in every:
        alone.microphone.hear(frame)
    died = death_ms // 20
    kept = every[: died + 30]
    for frame in every[:died]:
        first.microphone.hear(frame)
    mark = first.marks()[-1]
    voice = first.voice()
    speaking = bool(voice) and isinstance(voice[-1], inputs.VoiceStarted)
    utterance = Utterance(from_ms=voice[-1].audio_ms) if speaking else None
    microphone = Mark(samples=mark.samples, sequence=mark.sequence, time_ms=mark.time_ms)
    state = State(sid="s", utterance=utterance, client=Client(microphone=microphone))
    placed = catch_up.place(kept, state.client.microphone)
    second.microphone.recall(state, placed)
    assert second.voice() == []
    second.microphone.catch_up((*placed.unheard, *catch_up.newer(every[died:], kept)))
    told = [*voice, *second.voice()]
    assert [type(one) for one in told] == [type(one) for one in alone.voice()]
    for one, expected in zip(told, alone.voice(), strict=True):
        assert abs(one.audio_ms - expected.audio_ms) <= 64
    for one in (alone, first, second):
        one.microphone.stop()


async def test_how_long_it_was_silent_is_known_when_the_gap_is_heard(silero: SileroModel) -> None:
    heard = Heard(silero)
    placed = catch_up.place(cut(silence(500) + speech(1_500) + silence(2_000)), None)
    heard.microphone.recall(State(sid="s"), placed)
    heard.microphone.catch_up(placed.unheard)
    started, stopped = heard.voice()
    assert isinstance(started, inputs.VoiceStarted)
    assert isinstance(stopped, inputs.VoiceStopped)
    assert 1_800 <= stopped.silence_ms <= 2_100
    heard.microphone.stop()


async def test_the_place_is_noted_ahead_of_each_change_and_every_few_seconds(silero: SileroModel) -> None:
    heard = Heard(silero)
    for frame in cut(silence(2 * MARK_MS + 500)):
        heard.microphone.hear(frame)
    assert [mark.samples // 16 for mark in heard.marks()] == [20, 20 + MARK_MS, 20 + 2 * MARK_MS]
    for frame in cut(speech(1_000), first=400):
        heard.microphone.hear(frame)
    assert isinstance(heard.took[-1], inputs.VoiceStarted)
    assert isinstance(heard.took[-2], inputs.MicrophoneAt)
    heard.microphone.stop()


@in_virtual_time
async def test_speech_that_stops_coming_is_over_but_not_while_the_bus_is_away(silero: SileroModel) -> None:
    heard = Heard(silero)
    loop = asyncio.get_running_loop()
    for frame in cut(silence(500) + speech(1_000)):
        heard.microphone.hear(frame)
    heard.reached = False
    await asyncio.sleep(10 * STALLED_S)
    assert [type(one) for one in heard.voice()] == [inputs.VoiceStarted]
    heard.reached, back = True, loop.time()
    while len(heard.voice()) < 2:  # noqa: ASYNC110 - time is virtual
        await asyncio.sleep(STALLED_S / 10)
    assert heard.voice()[1] == inputs.VoiceStopped(1_500, round(1_000 * STALLED_S))
    assert STALLED_S <= loop.time() - back <= 2.2 * STALLED_S, "what was held while the bus was away has its time to come"


@pytest.mark.parametrize("pauses", [True, False])
async def test_pauses_are_told_where_the_words_cost_nothing(silero: SileroModel, *, pauses: bool) -> None:
    told: list[Any] = []
    microphone = Microphone(silero, told.append, lambda: True, pauses=pauses)
    for frame in cut(silence(500) + speech(1_500) + silence(600)):
        microphone.hear(frame)
    assert isinstance(told[-1], inputs.VoiceStopped)
    assert any(isinstance(one, inputs.VoicePaused) for one in told) is pauses
    microphone.stop()
