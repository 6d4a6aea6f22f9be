"""Late models: the turn continues, and the user sees what it waits for and why."""

from __future__ import annotations

import pytest

from tests.voice.conversation import Conversation
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.transition import LATE_MS
from voxbridge.services.voice.providers.cascade.models import Models
from voxbridge.shared.bus.moments import StateChanged
from voxbridge.shared.config import Config
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev

BUSY = "the machine is busy (load 6.1 on 2 cores)"
SHOWN = "The machine is busy (load 6.1 on 2 cores), so this takes longer."


def asked_why(call: Conversation) -> list[out.FindCause]:
    return [output for output in call.outputs if isinstance(output, out.FindCause)]


def told(call: Conversation) -> tuple[str, str]:
    """Return the newest state and its reason."""
    *_, last = (o.moment for o in call.outputs if isinstance(o, out.Tell) and isinstance(o.moment, StateChanged))
    return last.state, last.reason


def test_a_language_model_that_is_late_is_said_with_its_cause_and_the_turn_goes_on() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="Hello?"))
    call.pass_ms(LATE_MS - 1)
    assert not asked_why(call)
    call.pass_ms(1)
    (asked,) = asked_why(call)
    assert asked.effect == call.last_effect(out.Complete)[0]
    call.take(inputs.CauseFound(asked.effect, BUSY))
    assert told(call) == ("thinking", SHOWN)
    (said,) = call.events(ev.ProviderFailed)
    assert (said.part, said.error.code, said.handled, said.turn) == ("llm", "TIMED_OUT", True, 1)
    assert said.error.message == f"The language model gave nothing for 3 s: {BUSY}."
    call.write("Hello.")
    assert told(call) == ("thinking", "")
    call.synthesize()
    call.play(1_000, "finished")
    assert call.events(ev.TurnCompleted)[-1].reason == "completed"


def test_words_that_are_late_are_said_too() -> None:
    call = Conversation()
    call.take(inputs.VoiceStarted(0))
    call.pass_ms(900)
    call.take(inputs.VoiceStopped(900, 256))
    call.pass_ms(LATE_MS)
    (asked,) = asked_why(call)
    call.take(inputs.CauseFound(asked.effect, BUSY))
    assert told(call) == ("thinking", SHOWN)
    assert call.events(ev.ProviderFailed)[-1].part == "stt"
    call.take(inputs.Transcribed(effect=asked.effect, text="Good morning."))
    assert told(call) == ("thinking", "")


def test_a_voice_that_is_late_is_said_too() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="Hello?"))
    call.write("Good morning to you.")
    call.pass_ms(LATE_MS)
    (asked,) = asked_why(call)
    call.take(inputs.CauseFound(asked.effect, BUSY))
    assert call.events(ev.ProviderFailed)[-1].part == "tts"
    assert told(call) == ("thinking", SHOWN)
    call.synthesize()
    assert "" in told(call)


def test_a_cause_that_comes_after_the_answer_is_not_said() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="Hello?"))
    call.pass_ms(LATE_MS)
    (asked,) = asked_why(call)
    call.write("Hello.")
    call.take(inputs.CauseFound(asked.effect, BUSY))
    assert not call.events(ev.ProviderFailed)


def test_a_cause_that_nobody_knows_is_an_event_and_no_sentence() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="Hello?"))
    call.pass_ms(LATE_MS)
    call.take(inputs.CauseFound(asked_why(call)[0].effect, ""))
    assert told(call) == ("thinking", "It takes longer than usual.")
    assert call.events(ev.ProviderFailed)[0].error.message.endswith("it is not known why.")


def test_nothing_is_late_while_a_function_is_waited_for() -> None:
    call = Conversation()
    call.log(gateway.TextReceived(text="What time is it?"))
    effect, _ = call.last_effect(out.Complete)
    call.take(inputs.ToolRequested(effect=effect, name="current_time", arguments={}))
    call.take(inputs.Completed(effect=effect, input_tokens=1, output_tokens=1))
    call.pass_ms(2 * LATE_MS)
    assert not asked_why(call)


@pytest.mark.parametrize("provider", ["openai", "my-vllm"])
async def test_the_installation_does_not_answer_for_the_models_of_others(provider: str) -> None:
    models = Models(Config(models_url="http://127.0.0.1:9/v1", endpoints="my-vllm=http://127.0.0.1:9/v1"))
    assert await models.why_late(provider) == ""
    assert await models.why_late("") == "", "nobody is there to ask"
    await models.close()
