"""Plain orders to terminals, which need no model: templates by function, with the captain's own words as arguments."""

from __future__ import annotations

from typing import Final

_THING: Final = "(diff|answer|output|result|results|plan|reply|response|text|changes|code|work|findings|error|errors)"
_GIVE: Final = "(paste|give|send|hand|forward|copy|pass|put|show)"
_INTO: Final = "(into|to|in to|on to|over to)"
_START: Final = "(start|open|launch|run|fire up|bring up) [me] [up] [a|another|one more] [new]"
_DONE: Final = "(finishes|is finished|has finished|is done|is through|is ready|ends its turn|completes)"

LIST: Final = (
    "(which|what) terminals (are there|do I have|are open|are running|have we got)",
    "[list|show me|name] [all] [the|my] terminals",
    "who (needs me|is waiting|is waiting for me|needs an answer)",
    "what are [all] (the terminals|my terminals|the agents|my agents|they) doing",
)
READ: Final = (
    "what does {terminal} (say|show|read)",
    "what did {terminal} (say|answer|write|print|reply)",
    "read [me] {terminal} [to me]",
    "what is on [the screen of] {terminal}",
    "what does it (say|show)",
    "what did it (say|answer|write|print)",
)
START: Final = (
    f"{_START} (terminal|shell|bash)",
    f"{_START} (terminal|shell|bash) (called|named) {{name}}",
    f"{_START} claude [code] {{program=claude}}",
    f"{_START} codex {{program=codex}}",
    f"{_START} [the] gemini [cli] {{program=gemini}}",
    f"{_START} (opencode|open code) {{program=opencode}}",
    f"{_START} aider {{program=aider}}",
    f"{_START} python {{program=python}}",
)
SEND: Final = ("(tell|ask|get|order|instruct) {terminal} to {text}", "say to {terminal} that it should {text}")
FORWARD: Final = (
    f"(when|once|as soon as|after) {{source}} {_DONE} {_GIVE} (its|the|his|her) {_THING} {_INTO} {{terminal}} {{when=done}}",
    f"{_GIVE} {{source}}'s {_THING} {_INTO} {{terminal}}",
    f"{_GIVE} (the|that) {_THING} (of|from) {{source}} {_INTO} {{terminal}}",
    f"{_GIVE} what {{source}} (says|said|wrote|answered|printed|shows) {_INTO} {{terminal}}",
    f"{_GIVE} {{terminal}} what {{source}} (says|said|wrote|answered|printed|shows)",
)
KEY: Final = (
    "(press|hit) [the] {key} [key] in {terminal}",
    "(press|hit) [the] {key} [key]",
    "(stop|interrupt|cancel) (it|the program|the command|what runs) {key=ctrl-c}",
)
WAIT: Final = (
    f"(tell me|let me know|say|say so|notify me|wait) (when|until|till|as soon as|once) {{terminal}} {_DONE} {{until=done}}",
    "(tell me|let me know|say|notify me) (when|as soon as|if) {terminal} (asks|asks something|has a question|needs me) {until=question}",
    f"(tell me|let me know|say|wait) (when|until|till|as soon as) it {_DONE} {{until=done}}",
    "wait for {terminal} {until=done}",
)
CLOSE: Final = ("close [the] {terminal} terminal", "close {terminal}")
