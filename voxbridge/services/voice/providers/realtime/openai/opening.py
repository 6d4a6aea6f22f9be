"""The opening of a session with OpenAI Realtime: its settings and its history are sent, and accepted before anything else is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from openai.types.realtime import ConversationItemParam, RealtimeClientEventParam

from voxbridge.services.voice.providers.realtime.base import Setup
from voxbridge.services.voice.providers.realtime.openai import payloads
from voxbridge.services.voice.providers.realtime.openai.wire import Kind, Wire, named, unreadable


async def set_up(wire: Wire, setup: Setup) -> None:
    """Send the session and its history, and wait until both are accepted. Raises `ConnectionLost` if any part is refused."""
    items = payloads.history(setup.history)
    events: list[RealtimeClientEventParam] = [{"type": "session.update", "session": payloads.session(setup)}]
    for number, item in enumerate(items):
        item["id"] = f"past_item_{number}"
        events.append({"type": "conversation.item.create", "item": item})
    # Sent while reading: each item is answered, so a long history would otherwise fill the socket both ways.
    sending = asyncio.create_task(_send_all(wire, events))
    try:
        await _until_accepted(wire, items)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _send_all(wire: Wire, events: Sequence[RealtimeClientEventParam]) -> None:
    for event in events:
        await wire.send(event)


async def _until_accepted(wire: Wire, items: Sequence[ConversationItemParam]) -> None:
    """Wait until the session and all items are accepted. Items are accepted in order, so only the last one is looked for."""
    last = items[-1].get("id") if items else ""
    updated = False
    while not updated or last:
        kind, message = await wire.receive()
        if not isinstance(kind, Kind):
            continue
        try:
            if kind.type == "session.updated":
                updated = True
            elif kind.type in ("conversation.item.added", "conversation.item.created"):
                last = "" if wire.parse(message).item.id == last else last
            elif kind.type == "error":
                raise payloads.unset(*named(wire.parse(message)))
        except (AttributeError, TypeError, ValueError) as error:
            raise unreadable() from error
