"""Messages to a client while the connection to a realtime model is lost: no socket, no bus, no clock."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.gateway.core.driver import SID, live, recorded
from voxbridge.services.gateway.core.outputs import Output, Send
from voxbridge.shared import events
from voxbridge.shared.bus import moments


def states(outputs: Sequence[Output]) -> list[tuple[str, str]]:
    told = [output.message for output in outputs if isinstance(output, Send) and output.message["type"] == "state"]
    return [(one["state"], one.get("reason", "")) for one in told]


LOST = events.voice.ProviderLost(
    provider="gemini", model="m", close_code=1006, error=events.voice.Failure(code="UNAVAILABLE", message="Gone.", retryable=True)
)
AWAY = ("restoring", "the connection to the model was lost and is opened again")


@pytest.mark.parametrize(
    "back",
    [
        events.voice.ProviderConnected(provider="gemini", model="m", agent="", resumed_by="seed"),
        events.voice.HandoffCompleted(source="a", target="b", voice="joe", model="m", ms=1, history="log"),
        events.voice.ProviderFailed(part="llm", error=LOST.error, turn=1),
    ],
)
def test_a_lost_model_shows_as_restoring_until_nobody_waits_for_it(back: events.Event) -> None:
    connection = live()
    assert states(connection.read(recorded(LOST, 20))) == [AWAY]
    assert states(connection.read(recorded(LOST, 21))) == []
    for state in ("thinking", "listening"):
        assert states(connection.hear(moments.StateChanged(state=state))) == [AWAY]
    assert states(connection.hear(moments.StateChanged(state="user_speaking"))) == [("user_speaking", "")]
    connection.hear(moments.StateChanged(state="thinking", reason="r"))
    failed = events.voice.ProviderFailed(part="stt", error=LOST.error, turn=1)
    assert states(connection.read(recorded(failed, 22))) == []
    assert states(connection.read(recorded(back, 23))) == [("thinking", "r")]
    assert states(connection.hear(moments.StateChanged(state="listening"))) == [("listening", "")]


def test_a_model_that_was_never_lost_is_no_state_and_plain_vox_is_told_nothing_of_one() -> None:
    connected = events.voice.ProviderConnected(provider="gemini", model="m", agent="")
    assert states(live().read(recorded(connected, 20))) == []
    plain = live(v1=False)
    for seq, event in enumerate((LOST, connected), 20):
        assert plain.read(recorded(event, seq)) == ()


def test_plain_vox_hears_go_away_of_a_provider_and_may_stay_or_go_on_elsewhere_with_its_token() -> None:
    plain = live(v1=False)
    leaves = events.voice.ProviderGoAway(provider="gemini", model="m", time_left_ms=9_000)
    (told,) = plain.read(recorded(leaves, 22))
    assert isinstance(told, Send)
    assert (told.message["type"], told.message["session_token"], told.message["seq"]) == ("go_away", f"{SID}.token.22", 22)
    assert "nothing to do" in told.message["message"]
    (line,) = plain.read(recorded(events.voice.UserSaid(text="still here", turn=1, source="speech"), 23))
    assert isinstance(line, Send), "the socket stays open and the call goes on"
    assert live().read(recorded(leaves, 22)) == (
        Send({"type": "provider", "status": "leaving", "provider": "gemini", "model": "m", "time_left_ms": 9_000, "seq": 22}),
    )
