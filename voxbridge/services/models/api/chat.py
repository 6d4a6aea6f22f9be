"""Chat completions: the request becomes a prompt and a grammar, and the engine's text becomes OpenAI's objects, in one piece or streamed.

Owns the shapes of the answers and the decision when a request is refused. The engine stops when the client disconnects, because closing the
generators here closes its connection.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from voxbridge.services.models.api import routers
from voxbridge.services.models.api.bodies import ChatRequest
from voxbridge.services.models.choice import commands, orders, reckoning
from voxbridge.services.models.choice.arguments import narrowed, takes_rest, with_rest, written
from voxbridge.services.models.choice.router import Router
from voxbridge.services.models.choice.several import besides, is_said, wishes
from voxbridge.services.models.core import chatml, grammar
from voxbridge.services.models.engines.background import collected
from voxbridge.services.models.engines.llm import CONTEXT_TOKENS, Llm, Sampling, Step
from voxbridge.services.models.engines.readings import Readings

DEFAULT_MAX_TOKENS: Final = 512


RECENT: Final = 4
"""Messages in words that a short prompt has of what was said before; the calls and their results are left out."""

RECENT_CHARACTERS: Final = 300
"""Characters of each of them."""


_NAME: Final = re.compile(r"^[a-z][a-z0-9_]*: ")
"""Name of the function before what its result says."""

REFUSAL_LIMIT: Final = 300
"""Characters of an error that is told as it stands; the model sums up a longer one."""


UNABLE: Final = "I can't do that or look it up here."
"""Answer to a wish in English that no function serves. A small model says of the weather that it is sunny, of the lamp that it is off, and
also if it is told to make nothing up."""

_ENGLISH: Final = re.compile(
    r"\b(?:a|an|and|for|how|i|in|is|it|me|my|of|on|please|some|the|to|up|what|what's|who|will|with|you)\b", re.IGNORECASE
)


class _Result(msgspec.Struct):
    """The parts of a result that are read."""

    success: bool | None = None
    error: str = ""


class Plan(msgspec.Struct, frozen=True):
    """The prepared input of the engine."""

    prompt: chatml.Prompt
    sampling: Sampling
    tools: bool
    short: chatml.Prompt | None = None
    """The same request with only the tools that it may be about, and the last words before it: for an answer that cannot wait until
    `prompt` has been read."""

    begun: str = ""
    """Beginning of the answer that stands at the end of the prompt."""

    only: str = ""
    """The answer, if no other one is possible: the model is not asked."""

    more: bool = False
    """True if the request has another wish, for which the caller asks again with the result of this one's call."""

    closes: bool = False
    """True if words are a reply that somebody hears or reads, whose last sentence is to have its end."""


ROUTED_BIAS: Final = -1.4
"""Added to a model's bias where a router could not tell: what is surely a call is sorted out by then, and the whole bias makes needless
ones."""


def plan(request: ChatRequest, call_bias: float = 0.0, router: Router | None = None) -> Plan:
    """Check a request and prepare it for a model with this bias. With a router, it says whether a tool is used and among which.
    Raises `INVALID_ARGUMENT` or `TOO_LARGE` naming the field."""
    messages, tools, schema = request.conversation(), request.offered(), request.answer_schema()
    choice, gbnf = request.choice(), ""
    favour: tuple[tuple[str, float], ...] = ()
    among: Sequence[chatml.Tool] = tools
    few: Sequence[chatml.Tool] = tools
    more, words = False, ""
    if router is not None:
        terminals = list(dict.fromkeys(name for tool in tools for name in tool.names.get(commands.TERMINAL, ())))
        messages = [_as_written(message, terminals) for message in messages]
    if router is not None and choice.mode == "auto":
        choice, among, odds, few, more, messages, words = _chosen(router, messages, tools)
        call_bias += ROUTED_BIAS + odds
    begun, only = (chatml.begun(among, choice), chatml.only_answer(among, choice)) if tools else ("", "")
    if router is not None and choice.mode == "none":
        only = words or _refusal(messages[-1])
    if tools:
        gbnf = chatml.tool_grammar(among, choice, begun)
        favour = chatml.favoured(messages, tools, call_bias) if choice.mode == "auto" else ()
    elif schema is not None:
        gbnf = grammar.for_schema(schema) if schema else grammar.for_any_object()
    form = chatml.Form(brief=router is not None, begun=begun, schema=schema)
    return Plan(
        chatml.render(messages, tools, form),
        Sampling(
            grammar=gbnf,
            max_tokens=min(request.max_completion_tokens or request.max_tokens or DEFAULT_MAX_TOKENS, CONTEXT_TOKENS),
            temperature=request.temperature,
            top_p=request.top_p,
            seed=request.seed,
            stop=request.stops(),
            favour=favour,
        ),
        tools=bool(tools),
        short=_short(messages, few, form) if len(few) < len(tools) else None,
        begun="" if only else begun,
        only=only,
        more=more,
        closes=router is not None and not request.stops(),
    )


def _refusal(message: chatml.Message) -> str:
    """Return why the call before failed, in the words of its result; empty for anything else. A small model says of most refusals that it
    found nothing, where the user was asked what they mean."""
    if message.role != "tool":
        return ""
    try:
        result = msgspec.json.decode(message.text, type=_Result)
    except msgspec.DecodeError:
        return ""
    if result.success is not False or len(result.error) > REFUSAL_LIMIT:
        return ""
    said = _NAME.sub("", result.error)
    return said[:1].upper() + said[1:]


def _short(messages: Sequence[chatml.Message], few: Sequence[chatml.Tool], form: chatml.Form) -> chatml.Prompt:
    # Short prompts share nothing but a slot: in slots of their own they would drive out the one in which the whole prompt is being read.
    return msgspec.structs.replace(chatml.render(_recent(messages), few, form), family="")


def _recent(messages: Sequence[chatml.Message]) -> list[chatml.Message]:
    """Return what a short prompt has of a conversation: the instructions, the last words of both, and all since the agent spoke last."""
    words = [index for index, message in enumerate(messages) if message.role in ("user", "assistant") and message.text and not message.call]
    spoken = max((index for index in words if messages[index].role == "assistant"), default=-1)
    before = [messages[index] for index in words if index <= spoken][-RECENT:]
    return [
        *(message for message in messages if message.role == "system"),
        *(msgspec.structs.replace(message, text=message.text[:RECENT_CHARACTERS]) for message in before),
        *(message for message in messages[spoken + 1 :] if message.role != "system"),
    ]


def _as_written(message: chatml.Message, terminals: Sequence[str]) -> chatml.Message:
    return msgspec.structs.replace(message, text=commands.unbroken(written(message.text), terminals)) if message.role == "user" else message


class _Chosen(NamedTuple):
    """Decision for a request: whether a tool is to be called, which may be, the logarithm of the odds that one is, the few tools that this
    part of the conversation is about, whether another wish of the request is left, the messages with each wish where it is served, and the
    answer if no model is asked for it."""

    choice: chatml.Choice
    among: list[chatml.Tool]
    odds: float
    few: list[chatml.Tool]
    more: bool
    messages: list[chatml.Message]
    words: str = ""


def _chosen(router: Router, messages: list[chatml.Message], tools: Sequence[chatml.Tool]) -> _Chosen:
    """Choose for the last thing that the user said, or for the wish in it that is next. After the last result the model speaks."""
    decision = routers.decide(router, messages, {tool.name for tool in tools if tool.reads})
    called = {message.call.name for message in _recent(messages) if message.call is not None}
    answers = messages[-1].role == "tool"
    said, made, answered = routers.asked(messages)
    decision = routers.on_leash(decision, said, {tool.name for tool in tools if tool.orders and not tool.reads})
    ordered = [] if answered else orders.read(said, tools) or reckoning.read(said, tools) or commands.read(said, tools)
    if ordered:
        return _ordered(ordered, made, messages, tools)
    wanted = partial(routers.wanted, router)
    takers = {tool.name for tool in tools if takes_rest(tool.parameters)}
    taken = None if answered else besides(said, wanted, takers)
    parts = [taken.part] if taken is not None else [said] if answered else wishes(said, wanted)
    another = parts != [said] and made < len(parts) and (not answers or is_said(messages[-1].text))
    if parts != [said] and (another or made >= len(parts)):
        messages = routers.in_parts(messages, parts)
    if another:
        said = parts[made]
        decision = router.decide(said)
    near = decision.among if decision.mode == "call" else decision.shortlist
    few = [tool for tool in tools if tool.name in called or tool.name in near or (taken is not None and tool.name == taken.function)]
    if decision.mode == "words" and not called:
        few = []  # words need to know of no tool, and a machine that reads ten tokens a second answers in a few seconds then
    unable = UNABLE if decision.unserved and not called and not answers and _ENGLISH.search(said) else ""
    if decision.mode == "words" or (answers and not another):
        return _Chosen(chatml.Choice("none"), [], 0.0, few, more=False, messages=messages, words=unable)
    likely = [taken.function] if taken else decision.among if decision.mode == "call" else decision.shortlist
    among = [_for(tool, said, taken.rest if taken else "") for tool in tools if tool.name in likely]
    choice = chatml.Choice("required" if decision.mode == "call" else "auto")
    return _Chosen(choice, among, decision.odds, few, another and made + 1 < len(parts), messages)


def _ordered(ordered: Sequence[orders.Order], made: int, messages: list[chatml.Message], tools: Sequence[chatml.Tool]) -> _Chosen:
    """Choose the next of the calls that a request orders as it stands; behind the last one, and a result that was not said, words."""
    few = [tool for tool in tools if any(tool.name == order.function for order in ordered)]
    if len(ordered) > 1:
        messages = routers.in_parts(messages, [order.part for order in ordered])
    if made >= len(ordered) or (messages[-1].role == "tool" and not is_said(messages[-1].text)):
        return _Chosen(chatml.Choice("none"), [], 0.0, few, more=False, messages=messages)
    order = ordered[made]
    tool = next(one for one in few if one.name == order.function)
    return _Chosen(chatml.Choice("required"), [_fixed(tool, order)], 0.0, few, made + 1 < len(ordered), messages)


def _for(tool: chatml.Tool, said: str, rest: str) -> chatml.Tool:
    """Return a tool as one request may call it; `rest` is what the request asks for besides."""
    if whole := reckoning.read(said, [tool]):
        return _fixed(tool, whole[0])
    known = narrowed(tool.parameters, said, tool.names)
    return msgspec.structs.replace(tool, parameters=with_rest(tool.parameters, known, rest) if takes_rest(tool.parameters) else known)


def _fixed(tool: chatml.Tool, order: orders.Order) -> chatml.Tool:
    """Return a tool that can only be called as an order says."""
    values = {name: {"enum": [value]} for name, value in order.arguments.items()}
    return msgspec.structs.replace(tool, parameters={"type": "object", "properties": values, "required": list(values)})


def _usage(step: Step) -> dict[str, Any]:
    return {
        "prompt_tokens": step.prompt_tokens,
        "completion_tokens": step.answer_tokens,
        "total_tokens": step.prompt_tokens + step.answer_tokens,
        "prompt_tokens_details": {"cached_tokens": step.cached_tokens},
    }


async def _these(steps: Sequence[Step]) -> AsyncGenerator[Step]:
    for step in steps:
        yield step


class Answer:
    """An answer in progress. `begin` returns when its first text is there, so that a refusal can still set the HTTP status."""

    def __init__(self, llm: Llm, request: ChatRequest, made: Plan, readings: Readings) -> None:
        self._llm, self._request, self._plan, self._readings = llm, request, made, readings
        self._reader = chatml.Reader(tools=made.tools, closes=made.closes)
        self._begun = self._reader.feed(made.begun)
        self._id, self._created = f"chatcmpl-{uuid.uuid4().hex}", int(time.time())
        self._call_id = f"call_{uuid.uuid4().hex[:24]}"
        self._steps: AsyncGenerator[Step] | None = None
        self._first: Step | None = None

    async def begin(self) -> None:
        """Wait for the first text. Raises the engine's errors."""
        if self._plan.only:
            self._steps = _these([Step(self._plan.only, reason="stop")])
            if not self._request.ahead:  # the next answer of the conversation, if it takes a model, would have to read this one first
                self._readings.want_conversation(self._plan.prompt)
        elif self._request.background:
            self._steps = _these(await self._readings.background.made(lambda: collected(self._generated())))
        else:
            self._steps = self._generated()
        self._first = await anext(self._steps, None)

    def _generated(self) -> AsyncGenerator[Step]:
        family = self._plan.prompt.family
        if self._request.ahead and (self._request.background or not self._request.said()):
            return self._read(family)
        if not self._request.background:
            self._readings.forget_conversation(family)
        if self._plan.short is None or self._request.background or self._llm.knows(family):
            return self._llm.generate(self._plan.prompt, self._plan.sampling, keep=self._request.keep_prompt)
        # Reading the whole prompt would take longer than anybody waits for an answer.
        self._readings.want(family, keep=self._request.keep_prompt)
        return self._llm.generate(self._plan.short, self._plan.sampling)

    async def _read(self, family: str) -> AsyncGenerator[Step]:
        """Read what conversations begin with, which leaves alone what was read behind it, and then the conversation, if there is one."""
        await self._llm.read(family, keep=self._request.keep_prompt)
        if self._request.said():
            await self._llm.read_on(self._plan.prompt)
        yield Step("", reason="stop")

    async def close(self) -> None:
        """Stop the engine's work on this answer."""
        if self._steps is not None:
            await self._steps.aclose()

    async def _all(self) -> AsyncIterator[Step]:
        if self._steps is None or self._first is None:
            return
        yield self._first
        async for step in self._steps:
            if self._reader.lost and not step.reason:
                await self._steps.aclose()
                yield msgspec.structs.replace(step, text="", reason="length")
                return
            yield step

    def _pieces(self, step: Step) -> list[chatml.Piece]:
        """Return what a step adds to the answer; the first one adds what stood in the prompt already."""
        begun, self._begun = self._begun, []
        return begun + self._reader.feed(step.text) + (self._reader.end(cut=step.reason != "stop") if step.reason else [])

    async def whole(self) -> dict[str, Any]:
        """Return the `chat.completion` object."""
        words, name, arguments, last = "", "", "", Step("", reason="stop")
        async for step in self._all():
            pieces = self._pieces(step)
            for piece in pieces:
                match piece:
                    case chatml.Words(text):
                        words += text
                    case chatml.CallBegun(tool):
                        name = tool
                    case chatml.CallArguments(text):
                        arguments += text
            last = step
        message: dict[str, Any] = {"role": "assistant", "content": None if name else words.strip(), "refusal": None}
        if name:
            message["tool_calls"] = [{"id": self._call_id, "type": "function", "function": {"name": name, "arguments": arguments}}]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._reason(last)}
        return {**self._head("chat.completion"), "choices": [choice], "usage": _usage(last), **self._more()}

    async def chunks(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the `chat.completion.chunk` objects in order."""
        yield self._chunk({"role": "assistant", "content": None if self._plan.tools else ""})
        async for step in self._all():
            pieces = self._pieces(step)
            for piece in pieces:
                yield self._chunk(self._delta(piece))
            if step.reason:
                yield {**self._chunk({}, self._reason(step)), **self._more()}
                if self._request.stream_options and self._request.stream_options.include_usage:
                    yield {**self._head("chat.completion.chunk"), "choices": [], "usage": _usage(step)}

    def _more(self) -> dict[str, Any]:
        return {"more": True} if self._plan.more and self._reader.called else {}

    def _delta(self, piece: chatml.Piece) -> dict[str, Any]:
        match piece:
            case chatml.Words(text):
                return {"content": text}
            case chatml.CallBegun(name):
                call = {"index": 0, "id": self._call_id, "type": "function", "function": {"name": name, "arguments": ""}}
                return {"tool_calls": [call]}
            case chatml.CallArguments(text):
                return {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}

    def _reason(self, step: Step) -> str:
        return "tool_calls" if self._reader.called and step.reason == "stop" else step.reason

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._request.model, "system_fingerprint": None}

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return {**self._head("chat.completion.chunk"), "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]}
