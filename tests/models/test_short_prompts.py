"""Short prompts, for answers that cannot wait until a long one has been read: they stay short, and leave the long one's slot alone."""

from __future__ import annotations

from tests.models.test_choice import _plan, _request
from voxbridge.services.models.api.bodies import ChatRequest
from voxbridge.services.models.api.chat import RECENT, RECENT_CHARACTERS


def test_short_prompts_share_one_slot_so_that_none_drives_out_the_whole_prompt() -> None:
    requests = [_request("set a timer for ten minutes and call it tea"), _request("what time is it in Rome"), _request("thank you so much")]
    assert [plan.short.family for plan in map(_plan, requests) if plan.short is not None] == ["", "", ""]


def test_a_short_prompt_is_no_longer_in_a_long_conversation() -> None:
    def short(exchanges: int) -> str:
        body = _request("set a timer for ten minutes and call it tea").model_dump(exclude_none=True)
        called = {"id": "c", "type": "function", "function": {"name": "current_time", "arguments": "{}"}}
        before = [
            {"role": "user", "content": "what time is it in Rome"},
            {"role": "assistant", "content": None, "tool_calls": [called]},
            {"role": "tool", "tool_call_id": "c", "content": "{}" * 400},
            {"role": "assistant", "content": "It is noon. " * 60},
        ]
        body["messages"][-1:-1] = before * exchanges
        plan = _plan(ChatRequest.model_validate(body))
        assert plan.short is not None
        return plan.short.text

    text = short(2)
    assert len(text) < RECENT * (RECENT_CHARACTERS + 50) + len(short(0))
    assert short(9) == text
    assert "current_time" not in text
    assert text.endswith('call it tea<|im_end|>\n<|im_start|>assistant\n{"tool": "set_timer", "args": {"seconds":')
