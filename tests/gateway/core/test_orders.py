"""Random orders of a connection's inputs: whatever happens in whatever order, a socket is closed once and its leaving is written once."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.gateway.core.driver import SID, START, Driven, fresh, recorded
from voxbridge.services.gateway.core import inputs
from voxbridge.services.gateway.core.browser_calls import fold
from voxbridge.services.gateway.core.outputs import Append, Attach, Close, Open, Output, Resume
from voxbridge.services.gateway.core.resume_rules import Known
from voxbridge.services.gateway.core.state import Closed
from voxbridge.shared import events
from voxbridge.shared.bus import moments
from voxbridge.shared.errors import Unavailable

TOKEN = "t" * 43
FAILURE = events.voice.Failure(code="UNAVAILABLE", message="Gone.", retryable=True)
MESSAGES = (
    START,
    {**START, "session_token": f"{SID}.{TOKEN}.2"},
    {"type": "resume", "sessionId": SID, "resumeToken": TOKEN, "last_seq": 2},
    {"type": "text", "text": "hello"},
    {"type": "audio", "data": "AAA="},
    {"type": "browser_function_result", "name": "open_page", "result": {}},
    {"type": "interrupt"},
    {"type": "end"},
    {"type": "no such type"},
)
EVENTS = (
    events.voice.SessionStarted(mode="local", model="m", voice="v", output="audio"),
    events.voice.UserSaid(text="hello", turn=1, source="text"),
    events.voice.ToolCalled(call_id="c1", name="open_page", arguments={}, kind="browser", turn=1, deadline_ms=1),
    events.voice.ToolCancelled(call_id="c1", name="open_page", reason="barge-in"),
    events.voice.ProviderLost(provider="gemini", model="m", close_code=1006, error=FAILURE),
    events.voice.ProviderConnected(provider="gemini", model="m", agent=""),
    events.voice.SessionEnded(reason="idle"),
)
TIMES = st.integers(0, 100_000)
KNOWN = st.builds(
    lambda top, started, state: Known(mode="local", top=top, begins=0, started=started, turns=1, state=state),
    st.integers(0, 9),
    st.booleans(),
    st.sampled_from(["connecting", "listening", "restoring"]),
)
INPUTS = st.one_of(
    st.builds(lambda message, now: inputs.TextMessage(json.dumps(message).encode(), now), st.sampled_from(MESSAGES), TIMES),
    st.builds(inputs.BinaryMessage, st.just(b"\x01"), TIMES),
    st.builds(inputs.Opened),
    st.builds(inputs.Resumed, KNOWN, st.none() | st.just({}), TIMES),
    st.builds(inputs.ResumeRefused, TIMES),
    st.builds(inputs.CallsKnown, st.just(fold([recorded(EVENTS[2], 1)])), TIMES),
    st.builds(lambda event, seq: inputs.EventRead(recorded(event, seq)), st.sampled_from(EVENTS), st.integers(1, 9)),
    st.builds(lambda state: inputs.MomentReceived(moments.StateChanged(state=state)), st.sampled_from(["listening", "speaking"])),
    st.builds(inputs.Tick, TIMES, st.none() | st.booleans()),
    st.sampled_from(
        [inputs.Failed(Unavailable("Away.")), inputs.TakenOver(), inputs.Stopping(), inputs.Congested(), inputs.Disconnected("gone")]
    ),
)


def asked(outputs: list[Output]) -> set[type[Output]]:
    """Return what the connection asks of its shell, which must answer before anything else of the kind."""
    return {type(output) for output in outputs} & {Open, Resume}


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=300)
@given(st.booleans(), st.lists(INPUTS, max_size=40))
def test_a_socket_is_closed_once_and_its_leaving_written_once(v1: bool, order: list[inputs.Input]) -> None:
    connection: Driven = fresh(v1=v1)
    written: Counter[type] = Counter()
    waits: set[type[Output]] = set()
    for input in [*order, inputs.Disconnected("gone"), inputs.Stopping()]:
        # A shell answers what it was asked, once.
        if isinstance(input, inputs.Opened | inputs.Resumed | inputs.ResumeRefused):
            kind = Open if isinstance(input, inputs.Opened) else Resume
            if kind not in waits:
                continue
            waits.discard(kind)
        was_closed = isinstance(connection.phase, Closed)
        outputs = list(connection.take(input))
        waits |= asked(outputs)
        written.update(type(one.event) if isinstance(one, Append | Attach) else type(one) for one in outputs)
        assert not was_closed or [type(one) for one in outputs] in ([], [Append]), "a closed socket gets nothing"
        assert not any(isinstance(one, Close) for one in outputs[:-1]), "nothing follows a close"
        if outputs and isinstance(outputs[-1], Close):
            assert isinstance(connection.phase, Closed)
            assert not connection.state.takes_audio
    assert isinstance(connection.phase, Closed)
    assert written[Close] <= 1
    assert written[events.gateway.ClientConnected] <= 1
    assert written[events.gateway.ClientDisconnected] <= written[events.gateway.ClientConnected]
