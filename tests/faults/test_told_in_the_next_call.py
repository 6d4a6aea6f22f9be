"""A timer that rings after its call: the installation tells it in the account's next call, once, whichever process is killed then."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.stack import Talker, stack, talker
from tests.ports import free_port
from tests.voice.model_server import ModelServer, call
from voxbridge.shared.config import Config

TOLD = "From an earlier call: Your tea timer is done."


def heard(person: Talker) -> list[str]:
    return [one["text"] for one in person.told if one["type"] == "transcript" and one["role"] == "assistant" and one["final"]]


@pytest.mark.parametrize("victim", ["", "voice", "tools"])
async def test_a_timer_that_rings_after_its_call_is_told_once_in_the_next(
    config: Config, model_server: ModelServer, tmp_path: Path, victim: str
) -> None:
    whole = replace(config, port=free_port(), models_port=free_port(), tool_packs="built-in", workspace_dirs=str(tmp_path))
    env = {name: value for name, value in os.environ.items() if not name.startswith("VOXBRIDGE_")} | whole.as_env()
    successor = None
    async with stack(whole) as running:
        try:
            async with talker(whole) as first:
                await first.start()
                model_server.script("llm", call("set_timer", json.dumps({"seconds": 1, "label": "tea"})))
                await first.say("Set a tea timer for one second.")
                await first.until("async_task_started")
                await first.send({"type": "end"})
                await first.until("session_ended")
            async with talker(whole) as second:
                await second.start()
                done = await second.until("async_task_complete", function="set_timer")
                if victim:
                    running[victim].kill()
                    await running[victim].wait()
                    successor = await asyncio.create_subprocess_exec(
                        sys.executable, "-m", f"voxbridge.services.{victim}", env=env, stderr=asyncio.subprocess.DEVNULL
                    )
                await second.until("transcript", role="assistant", final=True)
                model_server.script("llm", "It was for your tea.")
                await second.say("What was that?")
                await second.until("turn_complete", turn=1)
                await second.send({"type": "end"})
                await second.until("session_ended")
            async with talker(whole) as third:
                await third.start()
                model_server.script("llm", "Good morning.")
                await third.say("Good morning.")
                await third.until("turn_complete", turn=1)
        finally:
            if successor is not None:
                successor.kill()
                await successor.wait()
    assert done["result"]["label"] == "tea"
    assert heard(second)[0] == TOLD
    assert sum("timer" in text for text in heard(second)) == 1
    assert any(TOLD in json.dumps(body) for body in model_server.asked("llm")), "the model knows what the agent said"
    assert [one for one in third.told if one["type"].startswith("async_task")] == []
    assert not any("timer" in text for text in [*heard(first), *heard(third)] if "done" in text)
