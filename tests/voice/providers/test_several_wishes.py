"""Another wish of a request, over the wire: the models service says beside a call that one is left."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.voice.model_server import ModelServer, Raw
from tests.voice.providers.test_models import models, server, written
from voxbridge.services.voice.providers.cascade.models import Models
from voxbridge.shared.language.conversation import Completed, ToolRequested

__all__ = ("models", "server")


@pytest.mark.parametrize("more", [True, False])
async def test_the_service_says_of_a_call_that_another_wish_is_left(server: ModelServer, models: Models, more: bool) -> None:
    delta = {"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "current_time", "arguments": "{}"}}]}
    head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "local"}
    chunks: list[dict[str, Any]] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}], **({"more": True} if more else {})},
    ]
    body = b"".join(b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks)
    server.script("llm", [Raw(body + b"data: [DONE]\n\n", "text/event-stream")])
    requested, completed = await written(models)
    assert isinstance(requested, ToolRequested)
    assert completed == Completed(effect=5, more=more)
