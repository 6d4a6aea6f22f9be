"""The part of a long call that voice sends fits the local model, counted by the model's own tokenizer."""

from __future__ import annotations

from collections.abc import Sequence

import httpx
import msgspec
import pytest

from bench.choice import sets
from tests.running_models import RunningModels
from voxbridge.services.models.core import chatml
from voxbridge.services.models.engines.llm import CONTEXT_TOKENS
from voxbridge.services.models.processes.home import Home, Record
from voxbridge.services.voice.core.prompt import prompt, token_estimate
from voxbridge.shared.config import Config
from voxbridge.shared.language.chat_completions import MAX_TOKENS
from voxbridge.shared.language.conversation import Message, ToolUse

SAID = {
    "Hindi": "संग्रहालय सुबह नौ बजे खुलता है और शाम छह बजे बंद होता है, सोमवार को छोड़कर। वयस्कों के लिए टिकट बारह यूरो का है। ",
    "Greek": "Το μουσείο ανοίγει στις εννέα το πρωί και κλείνει στις έξι το απόγευμα, εκτός από τις Δευτέρες.  ",
    "Korean": "박물관은 아침 아홉 시에 열고 저녁 여섯 시에 닫습니다. 월요일은 쉽니다. 어른 표는 십이 유로입니다. ",
    "Japanese": "美術館は朝九時に開き、夕方六時に閉まります。月曜日はお休みです。大人の入場料は十二ユーロです。",
    "Chinese": "博物馆早上九点开门，晚上六点关门，星期一休息。成人门票十二欧元。请问您还想知道什么？",
    "Tamil": "அருங்காட்சியகம் காலை ஒன்பது மணிக்குத் திறந்து மாலை ஆறு மணிக்கு மூடப்படும், திங்கட்கிழமைகளைத் தவிர. ",
    "Russian": "Музей открывается в девять часов утра и закрывается в шесть часов вечера, кроме понедельников. ",
    "English": "The museum opens at 9 in the morning and closes at 6 in the evening, except on Mondays. Tickets cost €12.50. ",
    "figures": '{"id": "a3f9c2d1-77b0", "lat": 48.8583701, "lon": 2.2944813, "rows": [{"k": 1}, {"k": 2}]} ',
}
TOOLS = [
    chatml.Tool(function.name, function.description, function.parameters, function.utterances)
    for function in sets.functions()
    if function.listed
]
"""The functions that an agent is told of, with those that are still to come."""


class Tokenizer:
    """Tokenizer of the running engine."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def count(self, text: str) -> int:
        """Return the number of tokens of a text."""
        door = {"Authorization": f"Bearer {self._record.key}"}
        answer = httpx.post(f"{self._record.url}/tokenize", json={"content": text}, headers=door, timeout=60).raise_for_status()
        return len(answer.json()["tokens"])

    def sent(self, history: Sequence[Message]) -> int:
        """Return the number of tokens of a conversation's window, with the usual instructions and functions."""
        window = prompt.window(prompt.instructions(""), history)
        return self.count(chatml.render([each for message in window for each in _told(message)], TOOLS, chatml.Form(brief=True)).text)


def _told(message: Message) -> list[chatml.Message]:
    uses = [
        chatml.Message("assistant", call=chatml.Call(use.call_id, use.name, msgspec.json.encode(use.arguments).decode()))
        for use in message.uses
    ]
    return uses or [chatml.Message(message.role, text=message.text, answers=message.call_id)]


@pytest.fixture(scope="session")
def tokenizer(models_service: RunningModels) -> Tokenizer:
    record = Home(Config.from_env().data_dir, models_service.port).record("llama.cpp")
    assert record is not None
    return Tokenizer(record)


@pytest.mark.parametrize("language", SAID)
def test_an_estimate_of_a_text_is_no_less_than_nine_tenths_of_its_tokens(tokenizer: Tokenizer, language: str) -> None:
    assert token_estimate.size(SAID[language]) / 4 >= 0.9 * tokenizer.count(SAID[language])


@pytest.mark.parametrize("language", SAID)
def test_a_long_call_fits_in_every_turn(tokenizer: Tokenizer, language: str) -> None:
    history: list[Message] = []
    longest = 0
    for number in range(60):
        history.append(Message(role="user", text=f"{number}. {SAID[language]}"))
        if number % 6 == 5:
            longest = max(longest, tokenizer.sent(history))
        history.append(Message(role="assistant", text=SAID[language] * 2))
    assert longest + MAX_TOKENS <= CONTEXT_TOKENS


@pytest.mark.parametrize("language", SAID)
def test_two_long_results_in_one_turn_fit(tokenizer: Tokenizer, language: str) -> None:
    uses = tuple(ToolUse(call_id=str(number), name="recall", arguments={"query": "all"}) for number in range(2))
    long = (SAID[language] * 100)[:4_000]
    history = [
        Message(role="user", text=SAID[language]),
        Message(role="assistant", uses=uses),
        *(Message(role="tool", call_id=use.call_id, text=long) for use in uses),
    ]
    assert tokenizer.sent(history) + MAX_TOKENS <= CONTEXT_TOKENS


@pytest.mark.parametrize("language", SAID)
def test_the_longest_text_that_can_be_typed_fits(tokenizer: Tokenizer, language: str) -> None:
    text = (SAID[language] * 200)[:8_192]
    assert tokenizer.sent([Message(role="user", text=text)]) + MAX_TOKENS <= CONTEXT_TOKENS
