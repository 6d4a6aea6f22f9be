"""Frames of a terminal's output."""

from __future__ import annotations

import pytest

from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.terminals.live import Output, decode_output, encode_output


@pytest.mark.parametrize("keyframe", [False, True])
def test_a_frame_gives_its_output_again(keyframe: bool) -> None:
    output = Output(run=3, offset=2**40, data=b"\x1b[2Jhi", keyframe=keyframe)
    assert decode_output(encode_output(output)) == output


def test_a_frame_that_is_too_short_is_refused() -> None:
    with pytest.raises(VoxbridgeError) as caught:
        decode_output(b"\0" * 12)
    assert (caught.value.code, caught.value.limit) == (Code.INVALID_MESSAGE, 13)
    assert decode_output(b"\0" * 13).data == b""
