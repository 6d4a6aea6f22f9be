"""Splitting of a NATS server's byte stream, in pieces of any size."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from voxbridge.shared.bus.framing import LINE_LIMIT, Divider

PAYLOADS = st.sampled_from([b"", b"\r\n", b"MSG x 1 2\r\nab\r\n", b"frame " * 100, bytes(range(256))])
WORDS: dict[str, Callable[[bytes], bytes]] = {
    "heard": lambda payload: b"MSG vx.s.a.audio.in 7 %d\r\n%b\r\n" % (len(payload), payload),
    "other": lambda payload: b"MSG subject 8 %d\r\n%b\r\n" % (len(payload), payload),
    "replied": lambda payload: b"MSG subject 8 _INBOX.a %d\r\n%b\r\n" % (len(payload), payload),
    "headed": lambda payload: b"HMSG subject 7 12 %d\r\nNATS/1.0\r\n\r\n%b\r\n" % (12 + len(payload), payload),
    "ping": lambda _: b"PING\r\n",
    "info": lambda _: b'INFO {"server_id":"x"}\r\n',
    "error": lambda _: b"-ERR 'permissions violation'\r\n",
}


class Taken:
    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.rest = b""
        self._divider = Divider({7: self.heard.append}, lambda listener, payload: listener(payload))

    def feed(self, data: bytes) -> None:
        self.rest += self._divider.divide(data)


@given(st.lists(st.tuples(st.sampled_from(sorted(WORDS)), PAYLOADS), max_size=8), st.lists(st.integers(0, 10**6), max_size=8))
def test_a_listener_gets_its_payloads_and_the_client_every_other_byte(sent: list[tuple[str, bytes]], cuts: list[int]) -> None:
    data = b"".join(WORDS[kind](payload) for kind, payload in sent)
    taken = Taken()
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    for start, end in zip([0, *places], [*places, len(data)], strict=True):
        taken.feed(data[start:end])
    assert taken.heard == [payload for kind, payload in sent if kind == "heard"]
    assert taken.rest == b"".join(WORDS[kind](payload) for kind, payload in sent if kind != "heard")


def test_what_is_no_message_and_all_that_follows_is_the_clients() -> None:
    taken = Taken()
    taken.feed(WORDS["heard"](b"a") + b"MSG what is this\r\n" + WORDS["heard"](b"b"))
    taken.feed(b"and more")
    assert taken.heard == [b"a"]
    assert taken.rest == b"MSG what is this\r\n" + WORDS["heard"](b"b") + b"and more"


def test_a_line_without_an_end_is_waited_for_up_to_the_limit() -> None:
    taken = Taken()
    taken.feed(b"x" * LINE_LIMIT)
    assert taken.rest == b""
    taken.feed(b"x")
    assert taken.rest == b"x" * (LINE_LIMIT + 1)
