"""Plain orders to terminals, which need no model: templates by function, with the captain's own words as arguments."""

from __future__ import annotations

from typing import Final

_THING: Final = "(diff|answer|output|result|results|plan|reply|response|text|changes|code|work|findings|error|errors|log|logs|screen)"
_GIVE: Final = "(paste|give|send|hand|forward|copy|pass|put|show)"
_INTO: Final = "(into|to|in to|on to|over to)"
_START: Final = "(start|open|launch|run|fire up|bring up) [me] [up] [a|another|one more] [new]"
_DONE: Final = "(finishes|is finished|has finished|is done|is through|is ready|ends its turn|completes)"
_OVER: Final = "(stops|has stopped|ends|has ended|exits|has exited)"
_ASKS: Final = "(asks|asks something|asks for something|asks anything|asks me something|has a question|needs me|wants something)"
_STOP: Final = "(stop|interrupt|cancel|break off|halt|abort|kill)"
_TELL_ME: Final = "(tell me|let me know|say|say so|notify me|wait|wake me|ping me|call me|give me a shout|shout|warn me)"

LIST: Final = (
    "(which|what) terminals (are there|do I have|are open|are running|have we got)",
    "[list|show me|name] [all] [the|my] terminals",
    "who (needs me|is waiting|is waiting for me|needs an answer|is stuck|is blocked|is busy|is done)",
    "what are [all] (the terminals|my terminals|the agents|my agents|they) doing",
    "[give me] [a|the] (report|status|status report) [of|on] [the] [fleet|crew|terminals|agents|everybody]",
    "how many (terminals|agents|shells) (are there|are open|are running|do I have)",
    "(is|is there) (anybody|anyone|somebody|someone|anything) (stuck|blocked|waiting|waiting for me|that needs me|that needs my attention)",
    "[which|what] (agents|terminals|programs) are (busy|idle|done|working|waiting|stuck|blocked) [right] [now]",
    "anything that needs (me|my attention)",
)
READ: Final = (
    "what does {terminal} (say|show|read)",
    "what did {terminal} (say|answer|write|print|reply)",
    "read [me] {terminal} [to me]",
    "what is on [the screen of] {terminal}",
    "what does it (say|show)",
    "what did it (say|answer|write|print)",
    "(read|show) [me] the (screen|output|last lines|answer|text) (of|in|from) {terminal}",
    "(what is|what's) {terminal!} (asking|asking for|asking me|saying|showing)",
    "(how far is|how is|what about|look at|check on|check) {terminal!} [now|doing|getting on]",
    "(what went wrong|what happened|is there an error) in {terminal}",
    "(what's|what is) on the screen of {terminal}",
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
    f"{_START} claude [code] and call it {{name}} {{program=claude}}",
    f"{_START} codex and call it {{name}} {{program=codex}}",
    "(I need|I want|give me|get me) (a|another|one more) [new] (terminal|shell)",
    "(I need|I want|give me|get me) a python [prompt|shell] {program=python}",
)
SEND: Final = (
    "(tell|ask|get|order|instruct) {terminal} to {text}",
    "(tell|ask|get|order|instruct) {terminal!} to {text}",
    "say to {terminal} that it should {text}",
    "(tell|ask|remind|inform|have|let|make|message|text) {terminal!} {text}",
    "(tell|remind|inform) {terminal!} that {text}",
    "let {terminal!} know [that] {text}",
    "ask {terminal!} for {text}",
    "{terminal!} [please] (please|should|must|shall|would you please|would you|could you|can you|will you) {text}",
    "{terminal!} (needs|has) to know [that] {text}",
    "(I want|I need|we need|I would like|I'd like) {terminal!} to {text}",
    "(say|type|write) {text} (to|into|in) {terminal!}",
    "(pass|give|hand) (this|it|that) [on] to {terminal!} {text}",
)
FORWARD: Final = (
    f"(when|once|as soon as|after) {{source}} {_DONE} {_GIVE} (its|the|his|her) {_THING} {_INTO} {{terminal}} {{when=done}}",
    f"(when|once|as soon as|after) it {_DONE} {_GIVE} (its|the|his|her) {_THING} {_INTO} {{terminal}} {{when=done}} {{source=it}}",
    f"(when|once|as soon as|after) {{source!}} {_DONE} {_GIVE} (its|the|his|her) * {_INTO} {{terminal!}} {{when=done}}",
    f"(when|once|as soon as|after) it {_DONE} {_GIVE} (its|the|his|her) * {_INTO} {{terminal!}} {{when=done}} {{source=it}}",
    f"(when|once|as soon as|after) {{source}} {_OVER} {_GIVE} (its|the|his|her) {_THING} {_INTO} {{terminal}} {{when=done}}",
    f"{_GIVE} {{source}}'s [last|latest] {_THING} {_INTO} {{terminal}}",
    f"{_GIVE} {{source!}}'s * {_INTO} {{terminal!}}",
    f"{_GIVE} (the|that) [last|latest|whole] {_THING} (of|from) {{source}} {_INTO} {{terminal}}",
    f"{_GIVE} what {{source}} (says|said|wrote|answered|printed|shows) {_INTO} {{terminal}}",
    f"{_GIVE} {{terminal}} what {{source}} (says|said|wrote|answered|printed|shows)",
    f"{{terminal!}} (should|must|can) (see|read|look at) the {_THING} (of|from|in) {{source!}}",
    "(let|have) {terminal!} (see|read|look at) what {source!} *",
)
RUN: Final = ("(run|execute) {command} in {terminal!}", "(in|on) {terminal!} (run|execute) {command}")
KEY: Final = (
    "(press|hit|push) [the] {key} [arrow] [key] in {terminal}",
    "(press|hit|push) [the] {key} [arrow] [key]",
    "(press|hit|push) [the] {key} [arrow] [key] (twice|two times) in {terminal} {times=2}",
    "(press|hit|push) [the] {key} [arrow] [key] three times in {terminal} {times=3}",
    "(stop|interrupt|cancel) (it|the program|the command|what runs) {key=ctrl-c}",
    f"{_STOP} {{terminal!}} {{key=ctrl-c}}",
    f"{_STOP} (the program|the command|the process|what runs|whatever runs) in {{terminal!}} {{key=ctrl-c}}",
    f"{_STOP} what {{terminal!}} is doing {{key=ctrl-c}}",
)
WAIT: Final = (
    f"{_TELL_ME} (when|until|till|as soon as|once) {{terminal}} {_DONE} {{until=done}}",
    f"{_TELL_ME} (when|as soon as|if|once) {{terminal}} {_ASKS} {{until=question}}",
    f"{_TELL_ME} (when|until|till|as soon as|once) it {_DONE} {{until=done}}",
    f"{_TELL_ME} (when|until|till|as soon as|once) {{terminal}} {_OVER} {{until=end}}",
    "wait for {terminal} {until=done}",
)
CLOSE: Final = ("close [the] {terminal} terminal", "close {terminal}", "(shut|shut down|get rid of) {terminal!}")
