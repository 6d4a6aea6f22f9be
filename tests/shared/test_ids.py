from __future__ import annotations

import pytest

from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.ids import check_session_id, new_process_id, new_session_id


def test_a_session_id_is_128_random_bits_that_fit_a_subject() -> None:
    ids = {new_session_id() for _ in range(1_000)}
    assert len(ids) == 1_000
    for sid in ids:
        assert check_session_id(sid) == sid
        assert subjects.parse_event_subject(subjects.event_subject(sid, "voice", True, "user.said")) == (sid, "voice", True)


@pytest.mark.parametrize("value", ["", "a" * 31, "a" * 33, "A" * 32, "g" * 32, "a" * 32 + "\n", "*", "a.b", "٣" * 32, ">"])
def test_what_has_not_the_shape_of_a_session_id_is_not_found(value: str) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        check_session_id(value)
    assert (caught.value.code, caught.value.field) == (Code.NOT_FOUND, "session_id")


def test_a_process_id_names_its_service() -> None:
    first, second = new_process_id("voice"), new_process_id("voice")
    assert first != second
    assert first.startswith("voice-")
