from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from nats.aio.client import Client

from shared.headers import FastClient, parse

_NAME = st.text(alphabet=st.sampled_from("AZaz09-_ \t\x1c\x0b é:\r\n"), max_size=12).map(str.encode)
_VALUE = st.binary(max_size=20)
_LINE = st.builds(lambda name, separator, value: name + separator + value, _NAME, st.sampled_from([b":", b": ", b"\t:\t", b""]), _VALUE)


@given(st.lists(_LINE, max_size=8).map(b"\r\n".join))
@example(b"Nats-Sequence: 12\r\nNats-Subject: vx.s.a.ev.voice.c.user.said\r\n\r\n")
@example(b": empty name\r\nspace in name: x\r\n\xffbad: y\r\nok:\xff\r\n")
def test_headers_are_read_as_the_client_reads_them(raw: bytes) -> None:
    assert parse(raw) == Client._parse_header_lines(raw)


async def test_the_client_reads_headers_this_way() -> None:
    client = FastClient()
    headers = await client._process_headers(b"NATS/1.0\r\nNats-Sequence: 12\r\nB:c\r\n\r\n")
    assert headers == {"Nats-Sequence": "12", "B": "c"}
    assert await client._process_headers(b"NATS/1.0 204 EOB\r\nNats-Num-Pending: 0\r\n\r\n") == {
        "Status": "204",
        "Description": "EOB",
        "Nats-Num-Pending": "0",
    }
