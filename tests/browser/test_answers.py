"""Twenty questions to the installation's own model over each protocol, typed by a client without a browser, answered aloud or in writing.

Each answer is short, says nothing twice, and ends at the end of a sentence.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tests.browser.stage.product import Product
from voxbridge.services.voice.core.cascade.brevity import SAME_WORDS, SENTENCES_LIMIT, is_long

pytestmark = pytest.mark.timeout(1_200)
ANSWER_S = 90.0
AT_A_TIME = 3
"""Conversations at a time: most of an answer's time passes while it is said."""

LONG_SENTENCES = 40
QUESTIONS = (
    "And so, my fellow Americans: ask not what your country can do for you, ask what you can do for your country.",
    "Who are you?",
    "What can you do for me?",
    "What is the capital of France?",
    "Is the earth round?",
    "What do you think of rain?",
    "I feel a bit sad today.",
    "To be, or not to be, that is the question.",
    "Thank you very much.",
    "What should I cook tonight?",
    "Do you like music?",
    "Repeat the word hello again and again.",
    "How many legs does a spider have?",
    "What is love?",
    "Good morning!",
    "Who wrote Hamlet?",
    "What colour is the sky at night?",
    "My dog is called Rex.",
    "Tell me a story about a lighthouse.",
    "Explain how a bicycle stays upright.",
)
WORKED_OUT = (
    ("What is 20 percent of 45?", r"\b9\b"),
    ("what is eighty minus fifteen", r"\b65\b"),
    ("convert 1 MB to Mb", r"\b8 megabits"),
    ("How many MB are 64 Mb?", r"\b8 megabytes"),
    ("half a mile in feet", r"2,640 feet"),
    ("3 stone in kg", r"19[.]05 kilograms"),
    ("-40 C in F", r"(?:-|−|minus )40 degrees Fahrenheit"),
    ("144 over 12", r"\b12\b"),
    ("if it is 9 am in Tokyo what time is it in Delhi", r"\b5:30 AM"),
    ("one two three plus four", r"several ways|\?"),
)
"""Questions with the answer that is right, where the model could make one up."""

SENTENCE = re.compile(r"[.!?…][\"'”’)]*(?:\s|$)")


def told(socket: ClientConnection, kind: str) -> dict[str, object]:
    """Return the next message of a kind. Fails on an error of the gateway."""
    while True:
        message = socket.recv(ANSWER_S)
        if isinstance(message, bytes):
            continue
        found: dict[str, object] = json.loads(message)
        assert found["type"] != "error", found
        if found["type"] == kind:
            return found


def answer(socket: ClientConnection, question: str) -> str:
    """Type a question, and return the whole answer."""
    socket.send(json.dumps({"type": "text", "text": question}))
    said: list[str] = []
    while True:
        message = socket.recv(ANSWER_S)
        if isinstance(message, bytes):
            continue
        found = json.loads(message)
        assert found["type"] != "error", found
        if found["type"] in ("text", "transcript") and found.get("role") != "user" and found.get("final", True) and found["text"]:
            said.append(found["text"])
        if found["type"] == "turn_complete":
            return " ".join(said).strip()


def asked(product: Product, protocol: str, questions: Iterable[str], *, in_writing: bool) -> list[tuple[str, str]]:
    """Ask each question in a session of its own, and return it with its answer."""
    protocols = None if protocol == "plain" else [Subprotocol(protocol)]
    start = {"type": "start", "mode": "local"} | ({"output": "text"} if in_writing else {})

    def ask(question: str) -> tuple[str, str]:
        address = f"{product.url.replace('http', 'ws')}/ws/vox"
        with connect(address, subprotocols=protocols, compression=None, max_size=None) as socket:
            socket.send(json.dumps(start))
            told(socket, "setup_complete")
            return question, answer(socket, question)

    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return list(pool.map(ask, questions))


@pytest.mark.parametrize("protocol", ["plain", "voxbridge.v1"])
def test_twenty_answers_are_short_whole_and_go_in_no_circles(product: Product, protocol: str) -> None:
    wrong: list[tuple[str, str, str]] = []
    for question, text in asked(product, protocol, QUESTIONS, in_writing=protocol != "plain"):
        sentences = [one.strip() for one in re.split(r"(?<=[.!?…])\s+", text) if one.strip()]
        again = [one for one, times in Counter(one.casefold() for one in sentences if len(one.split()) >= SAME_WORDS).items() if times > 1]
        most = LONG_SENTENCES if is_long(question) else SENTENCES_LIMIT
        for broken, why in (
            (not text, "nothing was said"),
            (len(sentences) > most, f"{len(sentences)} sentences"),
            (bool(again), f"said twice: {again}"),
            (bool(text) and SENTENCE.search(text[-3:]) is None, "cut within a sentence"),
        ):
            if broken:
                wrong.append((question, why, text))
    assert not wrong


@pytest.mark.parametrize("protocol", ["plain", "voxbridge.v1"])
def test_what_can_be_worked_out_is_worked_out_and_not_made_up(product: Product, protocol: str) -> None:
    """Kind: a sum, a conversion or an hour elsewhere, answered in words without a call, or by a call that the model wrote wrongly."""
    found = dict(asked(product, protocol, (question for question, _ in WORKED_OUT), in_writing=True))
    assert {question: text for question, right in WORKED_OUT if not re.search(right, text := found[question])} == {}
