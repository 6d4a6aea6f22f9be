"""Calls of the voice core in virtual time, with the log that a voice worker would have written."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.voice.conversation import SID, START_US, Conversation
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.shared import events
from voxbridge.shared.events import gateway
from voxbridge.shared.events.journal import Taken, VoiceJournal
from voxbridge.shared.events.voice import ToolCalled
from voxbridge.shared.log import session_file
from voxbridge.shared.step.fold import Append
from voxbridge.shared.step.journal import LogInput

WORDS = ("what is the weather like", "and tomorrow", "how far is it from here to the sea", "tell me more about that")
JOURNAL_INTERVAL_US = 100_000


class RecordedCall(Conversation):
    """A conversation that keeps its log. The journal is written before each event, and 100 ms after the first input it holds."""

    def __init__(self, **settings: Any) -> None:
        self.recorded: list[events.Recorded] = []
        self._unwritten: list[Taken] = []
        self._taken = 0
        self._numbers: dict[str, int] = {}
        super().__init__(**settings)

    def log(self, event: events.Event) -> list[Any]:
        """Append an event of another writer. Return the outputs."""
        return self.take(LogInput(self.write_event(event, START_US + self.now_ms * 1_000, None)))

    def take(self, input: Any) -> list[Any]:
        """Take an input as in a conversation, and write what the stepper would write."""
        now = START_US + self.now_ms * 1_000
        if self._unwritten and now - self._unwritten[0].at >= JOURNAL_INTERVAL_US:
            self.flush(self._unwritten[0].at + JOURNAL_INTERVAL_US)
        if isinstance(input, LogInput):
            cause: int | str = input.recorded.seq
            self._unwritten.append(Taken(at=now, seq=input.recorded.seq))
        else:
            cause = f"voice#{self._taken}"
            self._unwritten.append(Taken(at=now, seq=None, input=msgspec.Raw(msgspec.msgpack.encode(input))))
        self._taken += 1
        outputs = super().take(input)
        for output in outputs:
            if isinstance(output, Append):
                self.flush(now)
                self.write_event(output.event, now, cause)
        return outputs

    def flush(self, now: int) -> None:
        """Write the journal."""
        if self._unwritten:
            inputs, self._unwritten = tuple(self._unwritten), []
            self.write_event(VoiceJournal(first=self._taken - len(inputs), inputs=inputs), now, None)

    def write_event(self, event: events.Event, now: int, cause: int | str | None) -> events.Recorded:
        """Append an event to the log."""
        kind = events.kind_of(event)
        number = self._numbers.get(kind.writer, 0)
        self._numbers[kind.writer] = number + 1
        id = f"{SID}.{kind.writer}.{number}"
        payload = events.encode(event, event_id=id, sid=SID, ts=now, cause=cause)
        self.recorded.append(events.decode(payload, seq=len(self.recorded) + 1, writer=kind.writer, visible=kind.visible))
        return self.recorded[-1]

    def turn(self, said: str, *, seconds: int = 12) -> None:
        """Run a turn: the user asks, and the agent's answer of three sentences is heard to its end."""
        self.speak(said)
        self.write("Well. ", "That is ", "a good question, ", "and here is ", "the answer to it. ", "Ask me ", "another one.")
        self.synthesize()
        generation = self.state.counters.generation
        for played in range(250, 3_000, 250):
            self.pass_ms(250)
            self.play(played, generation=generation)
        self.play(3_000, "finished", generation)
        self.pass_ms(seconds * 1_000 - 5_000)

    def call_a_function(self) -> None:
        """Run a turn in which the user asks for the time, and a function is called."""
        self.speak("what time is it")
        effect = self.last_effect(out.Complete)[0]
        self.take(inputs.ToolRequested(effect=effect, name="current_time", arguments={"place": "Oslo"}))
        self.take(inputs.Completed(effect=effect, input_tokens=10, output_tokens=5))
        assert self.events(ToolCalled)
        self.pass_ms(40)
        self.complete_tool({"time": "12:30", "hour": 12.5})
        self.write("It is half past twelve.")
        self.synthesize()
        self.play(1_000, "finished")

    def end(self) -> list[events.Recorded]:
        """Hang up, and return the whole log."""
        self.log(gateway.SessionEndRequested(by="client", reason="client"))
        self.flush(START_US + self.now_ms * 1_000)
        return self.recorded


def a_call(turns: int = 3) -> list[events.Recorded]:
    """Return the log of a call with some turns, a function call and an interruption."""
    call = RecordedCall(greeting="Hello there.")
    call.synthesize()
    call.play(1_000, "finished")
    for number in range(turns):
        call.turn(WORDS[number % len(WORDS)])
    call.call_a_function()
    call.speak("tell me a long story")
    call.write("Once upon a time there was a king. ", "He had a castle. ")
    call.synthesize()
    call.play(700)
    call.pass_ms(500)
    call.speak("stop")
    call.write("All right.")
    call.synthesize()
    call.play(900, "finished")
    call.log(gateway.TextReceived(text="thanks, that is all"))
    call.write("You are welcome.")
    call.synthesize()
    call.play(900, "finished")
    return call.end()


def file_of(log: list[events.Recorded]) -> bytes:
    """Return the session file of a log."""
    body = []
    for one in log:
        payload = events.encode(one.event, event_id=one.id, sid=one.sid, ts=one.ts, cause=one.cause)
        body.append(session_file.line(payload, seq=one.seq, writer=one.writer, visible=one.visible, event_type=one.type))
    return session_file.header(log[0].sid, exported_at_ms=1, events=len(log)) + b"".join(body)
