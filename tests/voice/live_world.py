"""A whole call on a realtime model in virtual time: `tests.voice.world` with a model that hears and speaks itself.

Questions carry a number ("Q7 …") and so do their answers ("A7 …"), so that the model knows the question however it gets it: by voice, in
text, after a fault, from another agent, or in a call's result. The user's speech is a time line of words; a connection hears those after
its opening. A model whose context is too large drops the oldest part, as Gemini Live does with `contextWindowCompression`; its resumption
handles keep the context. Nothing is random.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from tests.voice.conversation import SID, START_US
from tests.voice.live_parts import FUNCTION, GREETING, LIVE, Compression, Connection, Context, Heard, Known, Script, Turn, agents
from tests.voice.world import TAKEOVER_MS, Spoken, World
from voxbridge.services.voice.core import inputs, provider_events, step
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.outstanding import Outstanding
from voxbridge.services.voice.core.realtime import connection as realtime_connection
from voxbridge.services.voice.core.realtime import unanswered
from voxbridge.services.voice.core.state import State
from voxbridge.shared import events
from voxbridge.shared.agents.model import HANDOFF, AgentTeam
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.step.fold import fold
from voxbridge.shared.step.journal import LogInput

DIAL_MS: Final = 150
ENDPOINT_MS: Final = 500
"""Milliseconds of silence that end the user's turn."""

THINKS_MS: Final = 300
MS_PER_CHARACTER: Final = 60
FASTER: Final = 4
"""Speed at which audio is made, as a multiple of real time."""

KEPT_MS: Final = 10_000
LIFE_MS: Final = 600_000
WARNED_MS: Final = 50_000
"""Milliseconds before the end of a connection at which it is announced."""

COMPRESSION_MS: Final = 400
"""Milliseconds by which a compression delays its turn."""

EXECUTOR_MS: Final = 700
LOOK_BACK: Final = 2_000


class LiveWorld(World):
    """The world. `scripts` has the model's behaviour for each question, by its number."""

    def __init__(
        self, scripts: dict[int, Script], *, model: str = LIVE, greets: bool = False, warns: bool = True, filler: bool | None = False
    ) -> None:
        self.scripts = scripts
        self.connections: list[Connection] = []
        self.most_open = 0
        self.executor_ms = EXECUTOR_MS
        self.pardons = 0
        """Number of inputs that the model did not understand."""

        self.steps = 0
        self.kill_after = 0
        """Number of inputs after which the worker dies."""

        self.refused: list[tuple[int, bool]] = []
        """Close codes for the next connections, each with whether its handle is the reason."""

        self.poisoned: set[str] = set()
        self.compressions: list[Compression] = []
        self.on_say: Callable[[out.Say], object] = lambda said: None
        """Called with each text for a model."""

        self.mute_notices = False
        """The model ends its turn without a word when it is told to announce something."""

        self._warns = warns
        self._asked_for: dict[int, int] = {}
        self._handles: dict[str, list[Known]] = {}
        self._aloud: list[Heard] = []
        self._counts: dict[str, int] = {}
        first, *others = agents(model)
        self._team = AgentTeam(agents=(first if greets else msgspec.structs.replace(first, greeting=""), *others))
        self._checkpoint: tuple[State, int, int, Outstanding] = (step.initial(SID), 0, 0, Outstanding())
        super().__init__({}, filler=filler)
        self.thinks_ms = THINKS_MS

    @property
    def connection(self) -> Connection | None:
        """The open connection."""
        return next((one for one in self.connections[-3:] if one.open), None)

    def speaks(self, ms: int, text: str, *, for_ms: int = 1_000) -> None:
        """Have the user speak."""
        words = text.split()
        heard = Heard([(ms + for_ms * (index + 1) // len(words), word) for index, word in enumerate(words)])
        self.at(ms, lambda: self._aloud.append(heard))
        self.at(ms + 200, self._onset)
        self.at(heard.end + ENDPOINT_MS, self._endpoint)

    def coughs(self, ms: int) -> None:
        """Have the provider take a noise for a voice."""
        self.at(ms, self._onset)

    def drops(self, ms: int, code: int = 1006) -> None:
        """Have the connection lost."""
        self.at(ms, lambda: self._lose(self.connection, code))

    def poisons(self, ms: int) -> None:
        """Have the connection lost, and every connection that resumes the newest handle."""

        def poison() -> None:
            self.poisoned.add(list(self._handles)[-1])
            self._lose(self.connection, 1011)

        self.at(ms, poison)

    def sizes(self) -> dict[str, int]:
        """Return the size of the encoded state in bytes, of each tuple in it and its line, and of pending timers and effects."""
        found = {"bytes": len(msgspec.msgpack.encode(self.state)), "timers": len(self._timers), "effects": len(self._effects)}
        return found | dict(_tuples(self.state))

    # The worker.

    def _open(self) -> None:
        self.alive, self.worker = True, 1
        self._take(LogInput(self._requested))
        self._take(
            inputs.Opened(
                worker="voice-1",
                term=1,
                model="local",
                voice="",
                greeting="",
                functions=(FUNCTION,),
                providers=("local", "gemini"),
                idle_timeout_s=600,
                turn_timeout_s=30,
                resume_window_s=120,
                model_patience_s=8,
                filler=self._filler,
                team=self._team,
            )
        )

    def _take(self, input: Any) -> None:
        if not self.alive:
            return
        super()._take(input)
        self.steps += 1
        if self.steps == self.kill_after:
            self._die()
            self.at(self.now + TAKEOVER_MS, self._take_over)

    def _die(self) -> None:
        super()._die()
        for connection in self.connections[-3:]:
            connection.open = False

    def _take_over(self) -> None:
        before, taken, index, running = self._checkpoint
        known = [one for one in self.log[max(0, index - LOOK_BACK) : index] if one.writer != "voice"]
        folded = fold(step.step, before, inputs.Input, "voice", [*known, *self.log[index:]], watch=running.watch)
        self._checkpoint = (folded.state, taken + folded.taken, len(self.log), running)
        self.alive, self.state, self._taken = True, folded.state, taken + folded.taken
        self.worker += 1
        for due in folded.missing:
            cause = f"voice#{int(due.cause.removeprefix('voice#')) + taken}" if isinstance(due.cause, str) else due.cause
            self._store("voice", due.event, cause)
        self._timers.restore(running.timers, start_us=START_US)
        spoken = self.spoken.get(self.state.counters.generation)
        self._take(
            inputs.TakenOver(
                worker=f"voice-{self.worker}",
                term=self.state.ownership.term + 1,
                gap_ms=TAKEOVER_MS,
                generation=self.state.counters.generation,
                left_ms=(spoken.ms if spoken.left is None else spoken.left) if spoken is not None else 0,
                audio_from_ms=max(0, self.now - KEPT_MS),
                audio_to_ms=self.now,
            )
        )
        for recorded in [one for one in self.log if one.writer in ("gateway", "tools") and one.seq > running.taken.get(one.writer, 0)]:
            self._take(LogInput(recorded))

    def _perform(self, output: Any) -> None:
        match output:
            case out.StartEffect(id=id, effect=out.Connect() as asked):
                assert self.connection is None, "the one before is closed first"
                self._effects.add(id)
                worker = self.worker
                self.at(self.now + asked.delay_ms + DIAL_MS, lambda: self._dial(id, asked, worker))
            case out.CancelEffect(id=id):
                self._effects.discard(id)
                for connection in self.connections[-3:]:
                    connection.open = connection.open and connection.effect != id
            case out.Play(effect=effect, generation=generation):
                heard = self._of(effect)
                if heard is not None and heard.generation != generation:
                    heard.generation, heard.made, heard.reported = generation, 0, 0
            case out.Say(effect=effect, text=text, respond=respond):
                self.on_say(output)
                told = self._of(effect)
                if told is not None:
                    self._told(told, text, respond=respond)
            case out.Answer(effect=effect, ref=ref):
                asking = self._of(effect)
                if asking is not None and asking.turn is not None and asking.turn.ref == ref:
                    self._answered(asking, asking.turn)
            case _:
                super()._perform(output)

    def _answered(self, connection: Connection, turn: Turn) -> None:
        turn.ref, turn.call, turn.words, turn.after = "", "", turn.after.split(), ""
        self.at(self.now + THINKS_MS, lambda: self._go_on(connection, turn))

    def _of(self, effect: int) -> Connection | None:
        connection = self.connection
        return connection if connection is not None and connection.effect == effect else None

    def _say(self, connection: Connection, input: Any) -> None:
        """Give the worker an input from the provider."""
        if connection.open:
            self._take(input)

    # The provider.

    def _dial(self, effect: int, asked: out.Connect, worker: int) -> None:
        if not self.alive or worker != self.worker or effect not in self._effects:
            return
        if self.refused or (asked.handle and asked.handle not in self._handles):
            code, because = self.refused.pop(0) if self.refused else (1008, True)
            self._take(self._lost(effect, code, refused=because and bool(asked.handle)))
            return
        seeded = [Known(one.role == "user", one.text, len(one.text) // 4) for one in asked.history]
        knows = Context(asked.instructions, list(self._handles[asked.handle]) if asked.handle else seeded, self.now)
        connection = Connection(effect=effect, asked=asked, knows=knows)
        connection.heard_to = max(asked.audio_from_ms, self.now - KEPT_MS)
        self.connections.append(connection)
        self.most_open = max(self.most_open, sum(one.open for one in self.connections[-5:]))
        if self._warns:
            self.at(
                self.now + LIFE_MS - WARNED_MS, lambda: self._say(connection, provider_events.GoingAway(effect=effect, left_ms=WARNED_MS))
            )
        self.at(self.now + LIFE_MS, lambda: self._lose(connection, 1001))
        self._take(provider_events.ProviderReady(effect=effect, resumed=bool(asked.handle), audio_ms=self.now))
        if asked.handle in self.poisoned:
            self.at(self.now + 300, lambda: self._lose(connection, 1011))
        self.at(self.now + ENDPOINT_MS, self._endpoint)

    def _lose(self, connection: Connection | None, code: int) -> None:
        if connection is not None and connection.open:
            connection.open = False
            self._effects.discard(connection.effect)
            self._take(self._lost(connection.effect, code))

    def _lost(self, effect: int, code: int, *, refused: bool = False) -> provider_events.ProviderLost:
        error = ev.Failure(code="PROVIDER_UNAVAILABLE", message=f"Closed with {code}.", retryable=code not in (1007, 1008))
        return provider_events.ProviderLost(effect=effect, code=code, error=error, handle_refused=refused, audio_ms=self.now)

    def _onset(self) -> None:
        connection = self.connection
        if connection is not None and connection.turn is not None and (not connection.turn.ref or connection.turn.cancels):
            self._interrupt(connection)

    def _endpoint(self) -> None:
        """Answer the user's speech once it is over."""
        connection = self.connection
        if connection is None:
            return
        if any(one.words[0][0] <= self.now < one.end + ENDPOINT_MS for one in self._aloud[-3:]):
            return  # the user speaks; the end of the speech calls this again
        start, connection.heard_to = connection.heard_to, self.now
        words = [word for one in self._aloud[-5:] for at, word in one.words if start < at <= self.now]
        if words:
            connection.knows.hears(" ".join(words), self.now)
            self._ask(connection, " ".join(words), fragments=[f" {word}" for word in words])

    def _told(self, connection: Connection, text: str, *, respond: bool) -> None:
        connection.knows.hears(text, self.now)
        if not respond:
            return
        if connection.turn is not None and connection.turn.ref:
            connection.queue.append(text)
            return
        if connection.turn is not None:
            self._interrupt(connection)
        self._ask(connection, text)

    def _interrupt(self, connection: Connection) -> None:
        turn, connection.turn = connection.turn, None
        connection.made = connection.reported = 0
        if turn is not None and turn.ref:
            self._say(connection, provider_events.CallsCancelled(effect=connection.effect, refs=(turn.ref,)))
        self._say(connection, provider_events.Interrupted(effect=connection.effect, audio_ms=self.now))
        self._say(connection, provider_events.ModelTurnDone(effect=connection.effect))

    def _ask(self, connection: Connection, text: str, *, fragments: Sequence[str] = ()) -> None:
        """Have the model take a turn."""
        turn = self._answer(connection, text.split("\n\n")[-1])
        script = self.scripts.get(turn.number, Script())
        thinks_ms = self.thinks_ms + (COMPRESSION_MS if self._compressed(connection, turn.number) else 0)
        turn.fragments, turn.began = list(fragments), self.now + thinks_ms
        turn.late_ms = script.late_ms if turn.words else 0
        connection.turn = turn
        tries = self._asked_for[turn.number] = self._asked_for.get(turn.number, 0) + 1
        if not turn.late_ms:
            self._transcribe(connection, turn)
        if tries <= script.silent:
            return
        if self.mute_notices and not turn.number:
            self.at(turn.began, lambda: self._done(connection, turn))
            return
        if tries <= script.silent + script.empty:
            self.at(turn.began, lambda: self._done(connection, turn))
            return
        turn.dies_after = script.dies_after if tries == 1 else 0
        self.at(turn.began, lambda: self._go_on(connection, turn))

    def _compressed(self, connection: Connection, number: int) -> bool:
        """Compress the model's context if it is too large. Return whether that happened."""
        tokens = connection.knows.tokens
        forgotten = connection.knows.compress()
        if forgotten:
            agent, resumed = self._agent(connection), bool(connection.asked.handle)
            self.compressions.append(Compression(self.now, connection.effect, agent, resumed, number, tokens, forgotten))
        return bool(forgotten)

    def _answer(self, connection: Connection, text: str) -> Turn:
        """Return the model's turn for a text."""
        if text == unanswered.ANNOUNCE.format(GREETING):
            return Turn(words=GREETING.split())
        heard = re.search(realtime_connection.GO_ON.format("(.*)").replace("?", r"\?"), text)
        if heard is not None:
            return self._rest(heard[1], found="The result of" in text)
        known = text if re.search(r"Q\d|\"q\"", text) or not _asks(text) else self._newest_question(connection.knows)
        found = re.findall(r"Q(\d+)|\"q\":\"(\d+)\"", known)
        if not found:
            self.pardons += 1
            return Turn(words=["Pardon?"])
        number = int("".join(found[-1]))
        script = self.scripts[number]
        if text.startswith("The result of") or script.calls == f"to:{self._agent(connection)}":
            return Turn(words=script.after.split(), number=number)
        return Turn(words=script.says.split(), number=number, call=script.calls, after=script.after, cancels=script.cancels)

    def _newest_question(self, knows: Context) -> str:
        return next((part.text for part in reversed(knows.parts) if "Q" in part.text), knows.instructions)

    def _agent(self, connection: Connection) -> str:
        return next(agent.name for agent in self._team.agents if connection.asked.instructions.startswith(agent.prompt))

    def _rest(self, heard: str, *, found: bool) -> Turn:
        if GREETING.startswith(heard):
            return Turn(words=GREETING.removeprefix(heard).split() or ["Well."])
        number = int(re.findall(r"A(\d+)", heard)[-1])
        script = self.scripts[number]
        assert script.whole.startswith(heard), f"{heard!r} was not said of {script.whole!r}"
        rest = script.whole.removeprefix(heard).split()
        left = len(script.says.split()) - len(heard.split())
        if script.calls and left >= 0 and not found:
            return Turn(words=script.says.split()[len(heard.split()) :], number=number, call=script.calls, after=script.after)
        return Turn(words=rest, number=number)

    def _transcribe(self, connection: Connection, turn: Turn) -> None:
        for fragment in turn.fragments:
            self._say(connection, provider_events.UserWords(effect=connection.effect, text=fragment, audio_ms=self.now))

    def _go_on(self, connection: Connection, turn: Turn) -> None:
        if not connection.open or connection.turn is not turn:
            return
        effect = connection.effect
        if not turn.said:
            self._say(connection, provider_events.HandleUpdated(effect=effect, resumable=False))
        if turn.words:
            word = turn.words.pop(0)
            self._spoken_word(connection, word)
            turn.said += 1
            if turn.said == 1 and turn.late_ms:
                self.at(self.now + turn.late_ms, lambda: self._transcribe(connection, turn))
            if turn.said == turn.dies_after:
                self._lose(connection, 1006)
            self.at(self.now + len(word) * MS_PER_CHARACTER // FASTER, lambda: self._go_on(connection, turn))
        elif turn.call and not turn.ref:
            turn.ref = f"ref-{effect}-{turn.number}"
            target = turn.call.removeprefix("to:")
            name, arguments = (
                (turn.call, {"q": str(turn.number)}) if target == turn.call else (HANDOFF, {"target": target, "reason": "asked"})
            )
            self._say(connection, provider_events.CallRequested(effect=effect, ref=turn.ref, name=name, arguments=arguments))
        elif not turn.call:
            if connection.made:
                self._say(connection, provider_events.GenerationDone(effect=effect))
            self.at(max(self.now + 10, turn.began + connection.made), lambda: self._done(connection, turn))

    def _done(self, connection: Connection, turn: Turn) -> None:
        if not connection.open or connection.turn is not turn:
            return
        connection.turn = None
        made, connection.made, connection.reported = connection.made, 0, 0
        self._say(connection, provider_events.ModelTurnDone(effect=connection.effect, ms=made, input_tokens=3, output_tokens=5))
        if connection.queue:
            self._ask(connection, connection.queue.pop(0))
        elif connection.open and connection.turn is None:
            handle = f"handle-{len(self._handles) + 1}"
            self._handles[handle] = list(connection.knows.parts)
            self._say(connection, provider_events.HandleUpdated(effect=connection.effect, handle=handle))

    # The page and the executor.

    def _spoken_word(self, connection: Connection, word: str) -> None:
        """Take a word with its sound, as the worker takes it from the connection."""
        ms = len(word) * MS_PER_CHARACTER
        if not connection.made or connection.made - connection.reported >= 1_000:
            connection.reported = connection.made
            self._say(
                connection, provider_events.AgentAudio(effect=connection.effect, ms=connection.made + ms, audio_ms=self.now, piece_ms=ms)
            )
        connection.made += ms
        connection.knows.says(word, ms)
        if connection.generation and self.alive and connection.open:
            self._play(connection.generation, word, ms)
        self._say(connection, provider_events.AgentWords(effect=connection.effect, text=f" {word}", ms=connection.made, piece_ms=0))

    def _play(self, generation: int, word: str, ms: int) -> None:
        spoken = self.spoken.get(generation)
        if spoken is None:
            spoken = self.spoken[generation] = Spoken(began=self.now)
            if self._gone:
                spoken.left, spoken.flushed = 0, True
            self.at(self.now, lambda: self._take(inputs.AudioSent(generation)))
            self._report_on(generation, 0)
        if spoken.flushed:
            return
        if self.now - spoken.began > spoken.ms:
            spoken.began = self.now - spoken.ms  # playback waited for the model
        spoken.pieces.append((word, ms))

    def _follow(self, event: events.Event) -> None:
        if isinstance(event, ev.ToolCalled):
            done = tools.ToolCompleted(call_id=event.call_id, name=event.name, result=dict(event.arguments), ms=5)
            self.at(self.now + self.executor_ms, lambda: self._written("tools", done))

    def _store(self, writer: str, event: events.Event, cause: int | str | None) -> events.Recorded:
        number = self._counts[writer] = self._counts.get(writer, -1) + 1
        kind = events.kind_of(event)
        recorded = events.Recorded(
            seq=len(self.log) + 1,
            id=f"{SID}.{writer}.{number}",
            sid=SID,
            ts=self._us(),
            cause=cause,
            writer=writer,
            visible=kind.visible,
            type=kind.name,
            v=kind.version,
            event=event,
        )
        self.log.append(recorded)
        return recorded


def _asks(text: str) -> bool:
    """Return whether a text asks the model to answer the earlier question."""
    return text == realtime_connection.ANSWER_AGAIN or "your turn now" in text


def typed(text: str) -> gateway.TextReceived:
    """Return the event of a typed text."""
    return gateway.TextReceived(text=text)


def _tuples(one: msgspec.Struct, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Return the dotted name and the length of each tuple in a struct and in the structs that it holds."""
    for name in one.__struct_fields__:
        value = getattr(one, name)
        if isinstance(value, tuple):
            yield prefix + name, len(value)
        elif isinstance(value, msgspec.Struct):
            yield from _tuples(value, f"{prefix}{name}.")
