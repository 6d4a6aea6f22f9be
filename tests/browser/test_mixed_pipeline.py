"""Three agents on three models in one spoken call in the browser: Gemini picks up, Claude advises, the local models close.

The installation, its speech recognition, its language model and the closer's voice are real. Google, Anthropic and OpenAI are stand-ins
with the refusals of the services; their audio is also speech, in voices of their own.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
import yaml
from playwright.sync_api import expect

from tests.browser.conftest import OpenStudio
from tests.browser.stage.product import Product, running
from tests.browser.stage.speech import STT_RATE, from_pcm16, pitch, shared_words, spoken, transcribed, voiced
from tests.browser.stage.studio import ROOT, Studio
from tests.browser.stage.vendors import ENDPOINT, Vendors, vendors
from tests.browser.test_looks import look
from tests.fakes.anthropic.server import Use
from tests.fakes.gemini.turns import Call, Turn
from tests.fakes.openai.http_rules import SPEECH
from tests.running_models import RunningModels

pytestmark = pytest.mark.timeout(600)

GREETING: Final = "Hello, good to hear you. What would you like to talk through?"
ASKS: Final = "Hello, my name is Emma. Should I repair my old bicycle, or buy a new one?"
PICKS_UP: Final = "Nice to meet you, Emma. By when do you want to decide?"
WANTS_ADVICE: Final = "By Friday. Please give me some advice."
ADVISES: Final = ("I am the advisor. ", "You should repair your old bicycle. That costs ", "about $50, and a new bicycle costs much more.")
ADVISED: Final = "".join(ADVISES)
DECIDES: Final = "Good, then I will repair it. That is all, thank you."

HIGH: Final = 1.5
LOW: Final = 0.85
"""Pitches of Gemini's and of the adviser's voice, as multiples of Joe's; the closer's voice, Jamie, lies between them."""

APART: Final = 1.1
"""Least ratio between the pitches of two voices: more than one speaker varies between two sentences."""

ADVISER: Final = {"tts": f"{ENDPOINT}:gpt-4o-mini-tts", "voice": "onyx"}
"""Change of the shipped adviser: a third vendor's voice."""


@pytest.fixture(scope="module")
def clouds(models: RunningModels, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vendors]:
    """The stand-ins."""
    with vendors(tmp_path_factory.mktemp("vendors"), lambda text, _: voiced(models, text, LOW)) as found:
        yield found


@pytest.fixture(scope="module")
def product(models: RunningModels, clouds: Vendors, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """An installation with keys and the shipped agents; only the adviser has one of OpenAI's voices."""
    folder = tmp_path_factory.mktemp("mixed")
    agents = folder / "agents"
    shutil.copytree(ROOT / "agents", agents)
    adviser = agents / "advisor.yaml"
    adviser.write_text(yaml.safe_dump(yaml.safe_load(adviser.read_text()) | ADVISER))
    settings = {"VOXBRIDGE_AGENTS_DIR": str(agents), "VOXBRIDGE_PRICES": "gemini-3.8-live=3/12, claude-sonnet-5=3/15"}
    with running(folder, models, environment={**clouds.environment, "VOXBRIDGE_TURN_TIMEOUT_S": "90", **settings}) as found:
        yield found


def test_three_agents_on_three_models_have_one_conversation(product: Product, clouds: Vendors, open_studio: OpenStudio) -> None:
    models = product.models
    clips = {"asks": ASKS, "wants": WANTS_ADVICE, "decides": DECIDES}
    studio = open_studio(clips={name: spoken(models, text) for name, text in clips.items()})
    handing = {"target": "advisor", "reason": "wants advice", "summary": "Emma has to decide about her bicycle by Friday."}
    clouds.run(
        lambda: clouds.google.script(
            Turn(says=GREETING, pcm=voiced(models, GREETING, HIGH)),
            Turn(
                hears=ASKS, calls=[Call("current_time", {"place": "Tokyo"})], after=Turn(says=PICKS_UP, pcm=voiced(models, PICKS_UP, HIGH))
            ),
            Turn(hears=WANTS_ADVICE, calls=[Call("handoff_conversation", handing)]),
        )
    )
    closing = {"target": "closer", "reason": "decided", "summary": "Emma will repair her old bicycle."}
    clouds.run(lambda: clouds.anthropic.script(ADVISES, [Use("handoff_conversation", closing, pieces=3)]))

    _choose(studio, "Advice")
    sid = studio.start()
    studio.until_said("assistant", "talk through")
    studio.until_quiet()
    _speaks(studio, "Triage", "voice Aoede · gemini-3.8-live")

    studio.say("asks")
    studio.until_said("assistant", "want to decide")
    studio.until_quiet()
    triage_until = studio.now()
    studio.picture("mixed-triage")

    studio.say("wants")
    studio.until("(s) => s.speaker.agent === 'advisor' && s.state === 'speaking'")
    _speaks(studio, "Advisor", "voice onyx · claude-sonnet-5")
    studio.picture("mixed-advisor-speaking")
    studio.until_said("assistant", "much more")
    studio.until_quiet()
    advisor_until = studio.now()

    studio.say("decides")
    studio.until("(s) => s.conversation.some((e) => e.kind === 'said' && e.agent === 'closer' && e.final)")
    studio.until_quiet()
    _speaks(studio, "Closer", "voice jamie · Local models")
    look(studio, "mixed-desktop")
    studio.end()

    lines = product.logged(sid, "agent.said")
    said = [(line["data"]["agent"], line["data"]["text"]) for line in lines]
    summary = " ".join(text for agent, text in said if agent == "closer")
    assert said[:3] == [("triage", GREETING), ("triage", PICKS_UP), ("advisor", ADVISED)]
    assert {agent for agent, _ in said[3:]} == {"closer"}
    assert [line["data"].get("voice", "") for line in lines] == ["Aoede", "Aoede", "onyx", *["jamie"] * len(said[3:])]
    failures = [event["data"] for event in product.log(sid) if event["type"] in ("provider.failed", "provider.lost")]
    assert [one for one in failures if not one.get("handled")] == []  # a late model on a busy machine is reported and waited for
    _check_handoffs(product, sid)
    _check_transcript(studio, product, sid)
    _check_history(product, clouds, sid)

    played = studio.played()
    heard = [
        played.between(played.start, triage_until),
        played.between(triage_until, advisor_until),
        played.between(advisor_until, played.end),
    ]
    for words, sound in zip((f"{GREETING} {PICKS_UP}", ADVISED, summary), heard, strict=True):
        assert shared_words(words, transcribed(models, sound, played.rate)) >= 0.7
    triage, adviser, closer = pitches = [pitch(sound, played.rate) for sound in heard]
    assert triage > APART * closer > APART * APART * adviser, pitches
    spoken_by_openai = clouds.speech.asked(SPEECH)
    assert {one["voice"] for one in spoken_by_openai} == {"onyx"}
    assert "about fifty dollars" in " ".join(one["input"] for one in spoken_by_openai)

    assert clouds.google.sessions[0].voice == "Aoede"
    google_heard = transcribed(models, from_pcm16(bytes(clouds.google.sessions[0].audio)), STT_RATE)
    assert shared_words(f"{ASKS} {WANTS_ADVICE}", google_heard) >= 0.7, google_heard
    assert shared_words(DECIDES, google_heard) < 0.5, "Google hears nothing once somebody else has the call"
    assert (clouds.anthropic.refused, clouds.speech.refused) == ([], [])
    _check_page(studio, sid, said)

    for service in ("voice", "tools"):
        command = [sys.executable, "-m", "voxbridge", "replay", sid, "--service", service]
        replayed = subprocess.run(command, env=product.environment, capture_output=True, text=True, timeout=120, check=False)
        assert replayed.returncode == 0, replayed.stdout + replayed.stderr


def _check_handoffs(product: Product, sid: str) -> None:
    """Check that the log has each handoff once."""
    done = [event["data"] for event in product.logged(sid, "handoff.completed")]
    assert [(one["source"], one["target"], one["history"]) for one in done] == [("triage", "advisor", "log"), ("advisor", "closer", "log")]
    assert [one["model"] for one in done] == ["claude-sonnet-5", "local"]


def _check_transcript(studio: Studio, product: Product, sid: str) -> None:
    """Check that the page shows the log of the call: speakers, handoffs, usage."""
    rows = [" ".join(row.split()) for row in studio.captions().locator(".line, .handoff").all_inner_texts()]
    told: list[str] = []
    for event in product.log(sid):
        data = event["data"]
        match event["type"]:
            case "user.said":
                told.append(f"You {data['text']}")
            case "agent.said":
                told.append(f"{data['agent'].capitalize()} {data['text']}")
            case "handoff.started":
                told.append(f"{data['source'].capitalize()} handed over to {data['target'].capitalize()}: {data['reason']}.")
    assert sorted(rows) == sorted(told)
    used = [event["data"]["usage"] for event in product.logged(sid, "turn.completed")]
    total = sum(one.get("input_tokens", 0) + one.get("output_tokens", 0) for one in used)
    assert total > 0
    expect(studio.page.locator(".spent")).to_contain_text(f"{total:,} tokens, about $")
    dollars = sum(one.get("microdollars", 0) for one in used) / 1_000_000
    (shown,) = re.findall(r"about \$([\d.]+)", studio.page.locator(".spent").inner_text())
    assert float(shown) == pytest.approx(dollars, rel=0.06)
    assert dollars > 0


def _check_history(product: Product, clouds: Vendors, sid: str) -> None:
    """Check that each next agent knows the history."""
    for body in clouds.anthropic.bodies:
        known = str(body["messages"])
        for text in (ASKS, PICKS_UP, WANTS_ADVICE, "Emma has to decide about her bicycle by Friday."):
            assert text in known, known
        assert "Adviser" in str(body["system"])
    (closes, *_) = [event for event in product.logged(sid, "agent.said") if event["data"]["agent"] == "closer"]
    history = [(line["role"], line["text"]) for line in product.state(sid, closes["ts"])["history"]]
    for line in (("assistant", GREETING), ("user", ASKS), ("assistant", PICKS_UP), ("user", WANTS_ADVICE)):
        assert line in history
    assert any("repair your old bicycle" in text for _, text in history)
    assert any("handed this conversation over to you, closer" in text for _, text in history)


def _check_page(studio: Studio, sid: str, said: list[tuple[str, str]]) -> None:
    """Check that the page of the session names the speakers, too."""
    studio.open(f"/sessions/{sid}")
    rows = studio.page.get_by_role("region", name="Transcript").get_by_role("button")
    for agent, text in said:
        expect(rows.filter(has_text=text).filter(has_text=agent.capitalize()).first).to_be_visible()
    expect(rows.filter(has_text="Triage handed over to Advisor")).to_be_visible()
    rows.filter(has_text="Advisor handed over to Closer").click()
    expect(studio.page.get_by_role("region", name="State").get_by_text("Inputs taken")).to_be_visible()
    studio.page.evaluate("() => scrollTo(0, 0)")
    look(studio, "mixed-session")


def _choose(studio: Studio, name: str) -> None:
    studio.page.get_by_role("button", name="Talk to").click()
    studio.page.get_by_role("radio", name=name, exact=True).check()
    studio.button("Done").click()


def _speaks(studio: Studio, agent: str, more: str) -> None:
    """Check that the page names the speaker."""
    expect(studio.page.locator(".who p").first).to_have_text(f"{agent} · {more}")


@dataclass(frozen=True)
class Choice:
    """A selection on the page by its labels, and the expected session."""

    name: str
    voice: str = ""
    model: str = ""
    started: dict[str, Any] = field(default_factory=dict)


CHOICES: Final = {
    "gemini": Choice("Gemini", "Kore", "gemini-2.5-flash-native-audio-latest", {"mode": "gemini", "output": "audio"}),
    "openai": Choice("OpenAI", "cedar", "gpt-realtime", {"mode": "openai", "output": "audio"}),
    "claude": Choice("Claude", "joe", "claude-haiku-4-5", {"mode": "claude", "output": "audio"}),
    "local": Choice("Local models", "joe", "local", {"mode": "local", "output": "audio"}),
    "echo": Choice("Echo", started={"mode": "echo"}),
    "agent": Choice("Assistant", started={"mode": "local", "agent": "assistant", "agents": ["assistant"]}),
    "pipeline": Choice("Local team", started={"agent": "host", "agents": ["host", "teller"], "pipeline": "local-team"}),
}


@pytest.mark.parametrize("kind", CHOICES)
def test_what_a_person_chooses_is_what_the_session_begins_with(product: Product, clouds: Vendors, studio: Studio, kind: str) -> None:
    choice = CHOICES[kind]
    studio.page.get_by_role("button", name="Talk to").click()
    chooser = studio.page.get_by_role("dialog", name="Who do you want to talk to?")
    chooser.get_by_role("radio", name=choice.name, exact=True).check()
    if choice.voice:
        voice = chooser.get_by_label("Voice")
        if kind == "openai":
            voice.fill(choice.voice)
        else:
            voice.select_option(choice.voice)
        chooser.get_by_role("textbox", name="Model").fill(choice.model)
        studio.picture(f"choice-{kind}")
    studio.button("Done").click()
    sid = studio.start()
    (started,) = product.logged(sid, "session.started")
    wanted = {**choice.started, **({"voice": choice.voice, "model": choice.model} if choice.voice else {})}
    assert {name: started["data"].get(name) for name in wanted} == wanted
    if kind in ("gemini", "openai"):
        product.logged(sid, "provider.connected", model=choice.model, voice=choice.voice)
    if kind != "echo":
        speaks = started["data"].get("agent", "")
        expect(studio.page.locator(".who p").first).to_contain_text(speaks.capitalize() or "Voxbridge")
        expect(studio.page.locator(".who p").first).to_contain_text(started["data"]["model"], ignore_case=True)
    studio.end()
    if kind == "gemini":
        assert (clouds.google.sessions[-1].model_name, clouds.google.sessions[-1].voice) == (choice.model, choice.voice)
    if kind == "openai":
        assert clouds.realtime.dialled[-1] == choice.model


def test_a_model_that_is_connected_again_is_told_of_in_a_sentence(product: Product, clouds: Vendors, studio: Studio) -> None:
    clouds.run(lambda: clouds.google.script(Turn(says=GREETING), Turn(says="Here I am again.")))
    _choose(studio, "Triage")
    sid = studio.start()
    studio.until_said("assistant", "talk through")
    studio.until_quiet()
    clouds.run(clouds.google.kill)
    expect(studio.page.get_by_role("status").locator(".news")).to_have_text("The model was connected again; it goes on where it was.")
    studio.picture("restored-model")
    (restored,) = product.logged(sid, "session.restored")
    assert restored["data"]["how"] == "handle"
    studio.type("Are you there?")
    studio.until_said("assistant", "again")
    assert [line["agent"] for line in studio.said("assistant")] == ["triage", "triage"], "the greeting is said once"
    studio.end()
