"""ChatML: turns a conversation into a prompt, and the model's output into text or one tool call.

Pure: no clock, no I/O, no randomness. With tools, an answer is either words to be spoken or `{"tool": "NAME", "args": {…}}`; its first
character decides, so words stream at once. Earlier calls are rendered in the same form, so that the model follows it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from voxbridge.services.models.core import grammar
from voxbridge.shared.errors import Code, VoxbridgeError

MAX_TOOLS: Final = 128
MAX_MESSAGES: Final = 512
CALL_CHARACTERS: Final = 480
"""Characters of one call's arguments, after which the answer is cut off with the reason `length`."""

_CALL: Final = '{"tool": "'

LINE_CHARACTERS: Final = 110
"""Characters of a tool's description in the brief list; the rest of it is left out."""

AFTER_RESULT_BIAS: Final = -3.0
WORDS_TEACH: Final = 3
AFTER_WORDS_BIAS: Final = 6.0
"""Bias for a conversation with `WORDS_TEACH` answers and no call, which teaches the model to guess instead of calling a function: 7 of 11
right without it, 9 to 10 with it, and no needless call."""

AFTER_CALLS_BIAS: Final = -5.0
"""Bias for a conversation with calls, which make the next call more likely whatever is asked. By `bench/tool_choice.py`: 9 of 14 right
without it, 13 with -5, fewer with -3 and with -7."""
DEFAULT_SYSTEM: Final = "You are a helpful assistant."

_TELL: Final = "Tell me this in one short sentence. If it is empty, say that you found nothing."
_SPECIAL: Final = re.compile(r"<\|[A-Za-z0-9_]+\|>")
_TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_.\-]{1,64}")
_CALL_HEAD: Final = re.compile(r'\{"tool": "([^"]+)", "args": ')


class Tool(msgspec.Struct, frozen=True):
    """A function that the model may call; `parameters` is a JSON Schema of an object."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    utterances: tuple[str, ...] = ()
    """Things that people say when they want it. With them the caller leaves it to the router whether a tool is used, and which."""

    listed: bool = True
    """False for a tool that may be called and is not told of in the prompt."""

    names: Mapping[str, Sequence[str]] = {}
    """Things that there are now, by the argument that names one."""

    orders: tuple[str, ...] = ()
    """Templates of requests that are calls of it as they stand (`choice.orders`)."""

    reads: bool = False
    """True if it changes nothing: what the user asks about what was done may be a call of it."""


class Call(msgspec.Struct, frozen=True):
    """A call of a tool, with its arguments as JSON text."""

    id: str
    name: str
    arguments: str


class Message(msgspec.Struct, frozen=True):
    """A message: `system`, `user`, `assistant` (words, or a call), or `tool` (the result of the call `answers`)."""

    role: str
    text: str = ""
    call: Call | None = None
    answers: str = ""


class Choice(msgspec.Struct, frozen=True):
    """The choice of a tool: calling one is allowed (`auto`), required (`required`) or forbidden (`none`); `name` fixes the tool."""

    mode: str = "auto"
    name: str = ""


class Prompt(msgspec.Struct, frozen=True):
    """The engine's input. `family` is the beginning that conversations of the same agent share."""

    family: str
    text: str


class Form(msgspec.Struct, frozen=True):
    """The form of an answer: `brief` lists the tools with a line each and no examples, `begun` is the text that the answer begins with,
    `schema` is that of an answer in JSON."""

    brief: bool = False
    begun: str = ""
    schema: Mapping[str, Any] | None = None


_USUAL: Final = Form()


def render(messages: Sequence[Message], tools: Sequence[Tool] = (), form: Form = _USUAL) -> Prompt:
    """Return the prompt of a conversation; system messages are moved to its beginning."""
    system = "\n\n".join(_clean(message.text) for message in messages if message.role == "system" and message.text.strip())
    section = (_brief_section(tools) if form.brief else _tool_section(tools)) if tools else ""
    if form.schema is not None:
        section += f"\n\nAnswer with JSON that fits this schema: {_clean(json.dumps(form.schema, ensure_ascii=False))}"
    family = _block("system", (system or DEFAULT_SYSTEM) + section)
    names = {message.call.id: message.call.name for message in messages if message.call}
    turns = [_turn(message, names) for message in messages if message.role != "system"]
    return Prompt(family, family + "".join(turns) + "<|im_start|>assistant\n" + form.begun)


def _clean(text: str) -> str:
    return _SPECIAL.sub(" ", text).strip()


def _block(role: str, text: str) -> str:
    return f"<|im_start|>{role}\n{text}<|im_end|>\n"


def _turn(message: Message, names: Mapping[str, str]) -> str:
    if message.role == "tool":
        name = names.get(message.answers, "the tool")
        return _block("user", f"<result of {name}>\n{_clean(message.text)}\n</result>\n{_TELL}")
    if message.call is not None:
        return _block("assistant", call_text(message.call.name, message.call.arguments))
    return _block(message.role, _clean(message.text))


def call_text(name: str, arguments: str) -> str:
    """Return a call in the form that the model writes it."""
    try:
        args = json.loads(arguments or "{}")
    except ValueError:
        args = {}
    return _clean(f'{{"tool": {json.dumps(name)}, "args": {json.dumps(args, ensure_ascii=False)}}}')


def _tool_section(tools: Sequence[Tool]) -> str:
    lines = ["\n\nYou have these tools:"]
    lines += [f"- {tool.name}({_signature(tool)}): {_clean(' '.join(tool.description.split()))}" for tool in tools]
    lines.append("To use a tool, answer with its JSON and nothing else:")
    lines += [call_text(tool.name, json.dumps(_example(tool.parameters))) for tool in tools]
    lines.append(
        "Use a tool whenever the request is about what it does; never guess what a tool can tell you. "
        "For greetings, thanks, small talk and everything else, answer in one or two short spoken sentences without a tool. "
        "After a result, say it in words."
    )
    return "\n".join(lines)


def _brief_section(tools: Sequence[Tool]) -> str:
    lines = ["\n\nYou have these tools:"]
    lines += [f"- {tool.name}({_signature(tool)}): {_clean(_first(tool))}" for tool in tools if tool.listed]
    lines.append(
        'To use one, answer with its JSON and nothing else: {"tool": NAME, "args": {...}}. Take arguments from what the user says, '
        "word for word where they are text; leave out what was not said. "
        "For greetings, thanks, small talk and general knowledge, answer in one or two short spoken sentences without a tool. "
        "After a result, say it in words."
    )
    return "\n".join(lines)


def _first(tool: Tool) -> str:
    """Return the beginning of a description; all of it if there are no utterances that say more."""
    text = " ".join(tool.description.split())
    if len(text) <= LINE_CHARACTERS or not tool.utterances:
        return text
    sentence, end, _ = text[:LINE_CHARACTERS].rpartition(". ")
    return sentence + end.strip() if end else text[:LINE_CHARACTERS].rpartition(" ")[0]


def _signature(tool: Tool) -> str:
    properties = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", ())
    return ", ".join(name if name in required else f"{name}?" for name in properties)


def _example(schema: object, depth: int = 0) -> Any:
    """Return a value of a schema's shape: its first example or enum value, its constant, or a placeholder of its type."""
    if not isinstance(schema, Mapping) or depth > 4:
        return "..."
    for word in ("examples", "enum"):
        if isinstance(schema.get(word), list) and schema[word]:
            return schema[word][0]
    if "const" in schema:
        return schema["const"]
    match schema.get("type"):
        case "object":
            required = schema.get("required", ())
            return {name: _example(sub, depth + 1) for name, sub in schema.get("properties", {}).items() if name in required}
        case "array":
            return [_example(schema.get("items"), depth + 1)]
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
    return "..."


_ARGS: Final = '{}", "args": '


def begun(tools: Sequence[Tool], choice: Choice) -> str:
    """Return the beginning that every answer with this choice has. It is put into the prompt: reading costs less than writing. It ends
    where a token ends, so that the model reads what it would have written."""
    if choice.mode != "required":
        return ""
    allowed = _allowed(tools, choice)
    return _CALL if len(allowed) > 1 else _head(allowed[0]).rstrip()


def _head(tool: Tool) -> str:
    """Return the text that every call of a tool begins with."""
    return _CALL + _ARGS.format(tool.name) + grammar.first_key(tool.parameters)


def only_answer(tools: Sequence[Tool], choice: Choice) -> str:
    """Return the answer if no other one is possible: a required call of one tool whose arguments are none, or have one value each; else an
    empty text."""
    if choice.mode != "required":
        return ""
    allowed = _allowed(tools, choice)
    fixed = _fixed(allowed[0].parameters) if len(allowed) == 1 else None
    return call_text(allowed[0].name, json.dumps(fixed)) if fixed is not None else ""


def _fixed(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the only arguments that fit a schema, or None."""
    schema = {"additionalProperties": False, **schema}
    properties, required = schema.get("properties") or {}, schema.get("required", ())
    if schema.get("type", "object") != "object" or not (properties or schema["additionalProperties"] is False):
        return None
    fixed: dict[str, Any] = {}
    for name, sub in properties.items():
        choices = sub.get("enum") if isinstance(sub, Mapping) and name in required else None
        if not isinstance(choices, list) or len(choices) != 1:
            return None
        fixed[name] = choices[0]
    return fixed


def _allowed(tools: Sequence[Tool], choice: Choice) -> list[Tool]:
    allowed = [tool for tool in tools if not choice.name or tool.name == choice.name]
    if not allowed:
        raise VoxbridgeError(
            Code.INVALID_ARGUMENT, f"tool_choice names {choice.name!r}, which is not among the tools.", field="tool_choice"
        )
    return allowed


def tool_grammar(tools: Sequence[Tool], choice: Choice, begun: str = "") -> str:
    """Return the grammar of an answer: words, or one call with arguments that fit its tool's schema. `begun` is what the prompt ends with
    of a required call."""
    if choice.mode == "none":
        return grammar.Grammar().text(_SPEECH)
    rules = grammar.Grammar()
    calls = [_call(rules, tool, begun) for tool in _allowed(tools, choice)]
    call = " | ".join(calls)
    return rules.text(call if choice.mode == "required" else f"{call} | {_SPEECH}")


def _call(rules: grammar.Grammar, tool: Tool, begun: str) -> str:
    """Return the expression of a tool's call after what was begun of it."""
    head, key = _CALL + _ARGS.format(tool.name), grammar.first_key(tool.parameters)
    schema = {"type": "object", "additionalProperties": False, **tool.parameters}
    whole = bool(key) and begun == (head + key).rstrip()
    rest = (head + key if whole else head).removeprefix(begun)
    return f"{grammar.literal(rest)} {grammar.compile_into(rules, schema, after_key=whole)} {grammar.literal('}')}"


# Spoken words begin with none of the characters that begin JSON, code or markup.
_SPEECH: Final = r"[^{}\[\]`<>*#|\x00-\x20] [^`{}<>\x00-\x08]*"


def favoured(messages: Sequence[Message], tools: Sequence[Tool], bias: float) -> tuple[tuple[str, float], ...]:
    """Return the texts to make more likely, with their biases. `bias` belongs to the model: positive if it tends to guess instead of
    calling a tool, negative if it tends to call one needlessly. The other biases correct what the model learns too strongly from the
    conversation."""
    if not tools or not messages:
        return ()
    if messages[-1].role == "tool":
        return (('{"', min(bias, 0.0) + AFTER_RESULT_BIAS),)
    answers = [message.call is not None for message in messages if message.role == "assistant"]
    if any(answers):
        return (('{"', bias + AFTER_CALLS_BIAS),)
    return (('{"', bias + AFTER_WORDS_BIAS if len(answers) >= WORDS_TEACH else bias),)


def check_tools(tools: Sequence[Tool]) -> None:
    """Raise `INVALID_ARGUMENT` or `TOO_LARGE` unless the tools can be offered."""
    if len(tools) > MAX_TOOLS:
        raise VoxbridgeError(Code.TOO_LARGE, f"At most {MAX_TOOLS} tools can be offered, not {len(tools)}.", field="tools", limit=MAX_TOOLS)
    for tool in tools:
        if _TOOL_NAME.fullmatch(tool.name) is None:
            raise VoxbridgeError(
                Code.INVALID_ARGUMENT,
                f"The tool name {tool.name!r} is not 1 to 64 letters, digits, dots, dashes or underscores.",
                field="tools",
                limit=64,
            )
    if len({tool.name for tool in tools}) != len(tools):
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "Two tools have the same name.", field="tools")


class Words(msgspec.Struct, frozen=True):
    """Further text of an answer."""

    text: str


class CallBegun(msgspec.Struct, frozen=True):
    """The start of a call of this tool."""

    name: str


class CallArguments(msgspec.Struct, frozen=True):
    """Further text of the call's arguments."""

    text: str


Piece = Words | CallBegun | CallArguments


_FULL_STOPS: Final = {"CJK": "。", "HIRAGANA": "。", "KATAKANA": "。", "DEVANAGARI": "।", "BENGALI": "।", "THAI": ""}
"""Ends of a sentence by the script of its last letter; those of all others end with a full stop."""


class Reader:
    """An incremental reader of an answer. With tools, the first character tells a call from words. With `closes`, words that the model
    ends within a sentence get its end: a small model answers who wrote Hamlet with a name alone."""

    def __init__(self, *, tools: bool, closes: bool = False) -> None:
        self._tools, self._closes = tools, closes
        self._buffer = ""
        self._last = ""
        self._mode = "undecided" if tools else "words"
        self._arguments = 0

    @property
    def called(self) -> bool:
        """True when the answer is a call."""
        return self._mode == "arguments"

    @property
    def lost(self) -> bool:
        """True when a call's arguments are longer than any sensible request: a small model may never stop writing."""
        return self._arguments > CALL_CHARACTERS

    def feed(self, text: str) -> list[Piece]:
        """Return the pieces that are certain after this text."""
        self._last = text[-1:] or self._last
        if self._mode == "words":
            return [Words(text)] if text else []
        self._buffer += text
        pieces: list[Piece] = []
        if self._mode == "undecided":
            if not self._buffer:
                return []
            if self._buffer[0] != "{":
                self._mode = "words"
                pieces, self._buffer = [Words(self._buffer)], ""
                return pieces
            head = _CALL_HEAD.match(self._buffer)
            if head is None:
                return []
            self._mode = "arguments"
            self._buffer = self._buffer[head.end() :]
            pieces.append(CallBegun(head[1]))
        # Hold back the last character: it may be the brace that closes the call, which is not part of the arguments.
        ready, self._buffer = self._buffer[:-1], self._buffer[-1:]
        self._arguments += len(ready)
        if ready:
            pieces.append(CallArguments(ready))
        return pieces

    def end(self, *, cut: bool = False) -> list[Piece]:
        """Return what is left of an answer that is complete, or that was cut off."""
        rest, self._buffer = self._buffer, ""
        if self._mode == "arguments":
            return [] if rest in {"}", ""} else [CallArguments(rest)]
        if self._closes and not cut and self._mode == "words":
            rest += _end_of_sentence(self._last)
        return [Words(rest)] if rest else []


def _end_of_sentence(last: str) -> str:
    """Return what closes a sentence whose last character this is; nothing if that is not part of a word or number."""
    if not last or unicodedata.category(last)[0] not in "LMN":
        return ""
    script = unicodedata.name(last, "").partition(" ")[0]
    return _FULL_STOPS.get(script, ".")
