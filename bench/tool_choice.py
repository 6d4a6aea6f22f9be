"""Tool choice of the local language model: spoken requests, the tool that should be called, and a check of its arguments.

    python -m bench.tool_choice [--url http://127.0.0.1:8421/v1]

Needs a running models service. Prints a table and the share of right answers. No request is one of the prompt's examples.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import click
import httpx
from rich.console import Console
from rich.table import Table

from voxbridge.services.tools.registry import BUILT_IN, load
from voxbridge.services.voice.core.prompt.prompt import instructions

SYSTEM = instructions("")
TOOLS = [
    {"type": "function", "function": {"name": card.name, "description": card.description, "parameters": card.parameters}}
    for card in (tool.card() for tool in load(BUILT_IN, timeout_s=30).values())
]
"""The same request as the voice service makes: its own instructions and the functions of this installation."""


@dataclass(frozen=True)
class Case:
    """A conversation, the tool that should be called (empty: none), and a check of its arguments or words."""

    messages: tuple[dict[str, Any], ...]
    tool: str = ""
    check: Callable[[dict[str, Any], str], bool] = field(default=lambda _args, _words: True)


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def _ask(text: str, tool: str = "", *needed: str) -> Case:
    def check(args: dict[str, Any], words: str) -> bool:
        given = (json.dumps(args) if tool else words).lower()
        return all(any(option in given for option in need.split("|")) for need in needed)

    return Case((_user(text),), tool, check)


def _timer(text: str, seconds: int) -> Case:
    return Case((_user(text),), "set_timer", lambda args, _words: args.get("seconds") == seconds)


def _sum(text: str, value: float) -> Case:
    def check(args: dict[str, Any], _words: str) -> bool:
        expression = str(args.get("expression", ""))
        if not set(expression) <= set("0123456789+-*/(). "):
            return False
        try:
            return abs(float(eval(expression, {"__builtins__": {}})) - value) < 0.01
        except (SyntaxError, TypeError, ZeroDivisionError):
            return False

    return Case((_user(text),), "calculate", check)


def _after(question: str, tool: str, args: dict[str, Any], result: dict[str, Any], *needed: str, then: str = "") -> Case:
    call = {"id": "call_1", "type": "function", "function": {"name": tool, "arguments": json.dumps(args)}}
    messages: tuple[dict[str, Any], ...] = (
        _user(question),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": json.dumps(result)},
    )
    if then:
        messages += ({"role": "assistant", "content": "Done."}, _user(then))
    return Case(messages, "", lambda _args, words: all(any(option in words.lower() for option in need.split("|")) for need in needed))


def _turn(question: str, tool: str, args: dict[str, Any], result: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    call = {"id": tool, "type": "function", "function": {"name": tool, "arguments": json.dumps(args)}}
    return (
        _user(question),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": tool, "content": json.dumps(result)},
        {"role": "assistant", "content": result["spoken"]},
    )


def _later(text: str, tool: str = "") -> Case:
    return Case((*_CALLED, _user(text)), tool)


_TIMER = {"task_id": "task-fc_1", "status": "started", "seconds": 10, "label": "", "spoken": "Timer set for 10 seconds."}

_CALLED: tuple[dict[str, Any], ...] = (
    *_turn("What time is it in Tokyo?", "current_time", {"place": "Tokyo"}, {"place": "Tokyo, Japan", "spoken": "It's 6:41 PM in Tokyo."}),
    *_turn("Set a timer for 5 seconds.", "set_timer", {"seconds": 5}, {"status": "started", "spoken": "Timer set for 5 seconds."}),
)
"""A conversation with earlier function calls, which tempts a small model to call another function."""

CASES = [
    _later("Tell me a joke about cats."),
    _later("Tell me a long story about the sea."),
    _later("Thank you."),
    _later("What is the capital of France?"),
    _later("How are you?"),
    _later("Who wrote Hamlet?"),
    _later("Why is the sky blue?"),
    _later("What time is it in Paris?", "current_time"),
    _later("And in London?", "current_time"),
    _later("Set a timer for two minutes.", "set_timer"),
    _later("What's 12 times 12?", "calculate"),
    _later("Remember that my bike is in the cellar.", "remember"),
    _later("Where is my bike?", "recall"),
    _ask("What time is it in Tokyo?", "current_time", "tokyo"),
    _ask("Hey, could you tell me what the time is in New York right now?", "current_time", "new york"),
    _ask("Is it already morning in Sydney?", "current_time", "sydney"),
    _ask("What's the date today in Berlin?", "current_time", "berlin"),
    _timer("Set a timer for ten seconds.", 10),
    _timer("Wake me up in five minutes.", 300),
    _timer("Set a two minute timer for the eggs.", 120),
    _timer("Remind me in half an hour to call my mother.", 1800),
    _timer("Count down one hour.", 3600),
    _sum("What's 17 times 23?", 391),
    _sum("What is 144 divided by 12?", 12),
    _sum("How much is fifteen percent of eighty?", 12),
    _sum("Add up 19, 22 and 35.", 76),
    _sum("What's the square of 13?", 169),
    _ask("Remember that my car is on level three.", "remember", "level three|level 3", "car"),
    _ask("Please make a note that Anna's birthday is on May the fourth.", "remember", "anna", "may"),
    _ask("Don't forget that I'm allergic to peanuts.", "remember", "peanut"),
    _ask("Keep in mind that the door code is 4 7 1 1.", "remember", "4 7 1 1|4711|4-7-1-1"),
    _ask("Where is my car?", "recall", "car"),
    _ask("When is Anna's birthday?", "recall", "birthday|anna"),
    _ask("What did I tell you about the door code?", "recall", "code"),
    _ask("What am I allergic to?", "recall", "allerg"),
    _ask("Hello!"),
    _ask("Hi there, how are you?"),
    _ask("Tell me a joke."),
    _ask("Thanks, bye."),
    _ask("What's the capital of France?", "", "paris"),
    _ask("Who wrote Romeo and Juliet?", "", "shakespeare"),
    _ask("What can you do for me?"),
    _ask("Why is the sky blue?", "", "light|scatter"),
    _ask("How late is it in Paris?", "current_time", "paris"),
    _ask("Do you know the time in London?", "current_time", "london"),
    _timer("Start a timer for 45 seconds called pasta.", 45),
    _timer("Could you set a timer for three minutes please?", 180),
    _sum("What's 9 plus 10?", 19),
    _sum("Multiply 12 by 12.", 144),
    _sum("What is a hundred minus 37?", 63),
    _ask("Note that my meeting moved to Thursday.", "remember", "thursday"),
    _ask("Remember my wifi password is blue elephant.", "remember", "blue elephant"),
    _ask("What's the name of my dog?", "recall", "dog"),
    _ask("Which level did I park on?", "recall", "park|level|car"),
    _ask("Good morning!"),
    _ask("I'm feeling a bit tired today."),
    _ask("How do I boil an egg?", "", "water|boil|egg"),
    _ask("Tell me something interesting about elephants.", "", "elephant"),
    _ask("What's your name?"),
    _ask("How far away is the moon?"),
    _ask("Never mind."),
    _ask("Okay."),
    _ask("Can you speak German?"),
    _after(
        "What time is it in Tokyo?",
        "current_time",
        {"place": "Tokyo"},
        {
            "place": "Tokyo, Japan",
            "time_zone": "Asia/Tokyo",
            "local_time": "2026-11-21 21:15",
            "spoken": "It's 9:15 PM on Saturday in Tokyo.",
        },
        "21:15|9:15",
    ),
    _after(
        "What's 17 times 23?",
        "calculate",
        {"expression": "17 * 23"},
        {"expression": "17 * 23", "value": 391, "spoken": "That is 391."},
        "391",
    ),
    _after(
        "Where is my car?",
        "recall",
        {"query": "car"},
        {"notes": ["My car is on level three."], "spoken": "You asked me to remember: My car is on level three."},
        "level three|level 3",
    ),
    _after("Set a timer for ten seconds.", "set_timer", {"seconds": 10}, _TIMER, "10|ten"),
    _after(
        "Remember that I like tea.",
        "remember",
        {"note": "The user likes tea."},
        {"note": "The user likes tea.", "spoken": "I'll remember that."},
    ),
    _after("What is my shoe size?", "recall", {"query": "shoe size"}, {"notes": [], "spoken": "I have no note about shoe size."}),
    _after("Set a timer for ten seconds.", "set_timer", {"seconds": 10}, _TIMER, then="Great, thank you."),
]


def judge(case: Case, tool: str, args: dict[str, Any], words: str) -> bool:
    """Return whether an answer is right: the tool, and the required content of its arguments or of the words."""
    return tool == case.tool and (bool(tool) or bool(words.strip())) and case.check(args, words)


def ask(client: httpx.Client, case: Case) -> tuple[str, dict[str, Any], str, float]:
    """Ask one request. Return the called tool, its arguments, the words, and the seconds it took."""
    body = {
        "model": "local",
        "messages": [{"role": "system", "content": SYSTEM}, *case.messages],
        "tools": TOOLS,
        "temperature": 0,
        "max_tokens": 96,
    }
    started = time.perf_counter()
    answer = client.post("/chat/completions", json=body).raise_for_status().json()
    took = time.perf_counter() - started
    message = answer["choices"][0]["message"]
    if not message.get("tool_calls"):
        return "", {}, message["content"] or "", took
    function = message["tool_calls"][0]["function"]
    return function["name"], json.loads(function["arguments"]), "", took


@click.command()
@click.option("--url", default="http://127.0.0.1:8421/v1", show_default=True, help="Base URL of an OpenAI-compatible endpoint.")
def main(url: str) -> None:
    """Ask every request once and print what came back."""
    table = Table("", "request", "expected", "answer", "s", title="Tool choice")
    right, times = 0, []
    with httpx.Client(base_url=url, timeout=60) as client:
        ask(client, CASES[0])
        for case in CASES:
            tool, args, words, took = ask(client, case)
            good = judge(case, tool, args, words)
            right += good
            times.append(took)
            said = f"{tool}{json.dumps(args)}" if tool else words
            last = case.messages[-1]
            shown = last["content"] if last["role"] == "user" else f"{case.messages[0]['content']} + result"
            table.add_row("ok" if good else "MISS", shown, case.tool or "words", said, f"{took:.2f}")
    Console().print(table)
    share, middle, longest = 100 * right / len(CASES), statistics.median(times), max(times)
    Console().print(f"{right} of {len(CASES)} right ({share:.0f} %), median {middle:.2f} s, longest {longest:.2f} s")


if __name__ == "__main__":
    main()
