"""LiveKit Agents: two agents behind one call, the second returned by a tool of the first; the history goes along as its chat context.

python -m bench.peers.adapters.livekit_handoff 18435
"""

from __future__ import annotations

import logging

from livekit.agents import Agent, ChatContext, function_tool
from livekit.plugins.google.realtime import RealtimeModel
from websockets.asyncio.server import ServerConnection

from bench.peers.adapters.livekit import converse
from bench.peers.adapters.wire import FIRST, KEY, RESUMABLE_MODEL, SECOND, run


def model() -> RealtimeModel:
    """Return the model of one agent."""
    return RealtimeModel(model=RESUMABLE_MODEL, api_key=KEY)


class First(Agent):
    """Agent that takes the call and hands it over."""

    def __init__(self) -> None:
        super().__init__(instructions=FIRST, llm=model())

    @function_tool
    async def hand_over(self, reason: str) -> Agent:  # noqa: ARG002 - the model is told of it
        """Hand the conversation over to the second agent."""
        return Second(self.chat_ctx)


class Second(Agent):
    """Agent that speaks as soon as it has the call."""

    def __init__(self, chat_ctx: ChatContext) -> None:
        super().__init__(instructions=SECOND, llm=model(), chat_ctx=chat_ctx)

    async def on_enter(self) -> None:
        """Have the agent speak as soon as it is there."""
        self.session.generate_reply()


async def call(socket: ServerConnection) -> None:
    """Run one call."""
    await converse(socket, First())


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    run(call)
