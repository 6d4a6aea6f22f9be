"""Real coding agents, Codex and the Gemini CLI, from npm at the versions that `agents/` pins, and stand-ins for the models behind them.

The stand-ins answer as the services do, as far as the agents look: the first request that offers tools and names the file is answered
with a call that needs approval, the one with the call's result with a sentence, and all others with a short text. Nothing here needs
an account, and nothing is sent to a vendor.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.fakes.sse import Answer, Body, Request, SseServer
from tests.npm import installed

PINNED: Final = Path(__file__).with_name("agents")
FILE: Final = "hello.txt"
DONE: Final = "I created the file that you wanted."
COMMAND: Final = f"echo hello > {FILE}"


def programs() -> Path:
    """Return the folder of the agents' programs."""
    return installed(PINNED) / "node_modules" / ".bin"


class CodexModel(SseServer):
    """OpenAI's `POST /v1/responses`, streamed."""

    def answer(self, request: Request) -> Answer:
        if not request.path.startswith("/v1/responses"):
            return Body(404, {"error": {"message": "not here"}})
        entries = request.body["input"]
        if any(one["type"] == "function_call_output" for one in entries):
            return _responses(_text(DONE))
        if request.body.get("tools") and FILE in json.dumps(entries):
            arguments = {"cmd": COMMAND, "sandbox_permissions": "require_escalated", "justification": "the captain wants this file"}
            call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "exec_command", "status": "completed"}
            return _responses({**call, "arguments": json.dumps(arguments)})
        return _responses(_text("A title"))

    def configure(self, home: Path, work: Path) -> None:
        """Write the settings by which Codex asks this server."""
        (home / ".codex").mkdir()
        (home / ".codex" / "config.toml").write_text(
            f'model = "gpt-5"\nmodel_provider = "here"\ncheck_for_update_on_startup = false\n'
            f'[model_providers.here]\nname = "here"\nbase_url = "{self.url}/v1"\nwire_api = "responses"\n'
            f'[analytics]\nenabled = false\n[projects."{work}"]\ntrust_level = "trusted"\n'
        )


class GeminiModel(SseServer):
    """Google's `POST /v1beta/models/<model>:streamGenerateContent`, and `:generateContent`."""

    def __init__(self) -> None:
        super().__init__()
        self._work = Path()

    def answer(self, request: Request) -> Answer:
        _, _, method = request.path.partition(":")
        if not method.lower().endswith(("generatecontent", "generatecontent?alt=sse")):
            return Body(404, {"error": {"code": 404, "message": "not here", "status": "NOT_FOUND"}})
        contents = json.dumps(request.body["contents"])
        part: dict[str, Any] = {"text": "{}"}
        if "functionResponse" in contents:
            part = {"text": DONE}
        elif request.body.get("tools") and FILE in contents:
            part = {"functionCall": {"name": "write_file", "args": {"file_path": str(self._work / FILE), "content": "hello\n"}}}
        answer = {
            "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        }
        return [f"data: {json.dumps(answer)}\n\n".encode()] if "stream" in method else Body(200, answer)

    def configure(self, home: Path, work: Path) -> None:
        """Write the settings by which the Gemini CLI asks this server."""
        self._work = work
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
            "privacy": {"usageStatisticsEnabled": False},
            "general": {"disableAutoUpdate": True, "disableUpdateNag": True},
        }
        (home / ".gemini").mkdir()
        (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
        (home / ".gemini" / ".env").write_text(f"GEMINI_API_KEY=of-the-tests\nGOOGLE_GEMINI_BASE_URL={self.url}\n")


def _text(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


def _responses(item: dict[str, Any]) -> Iterator[bytes]:
    base = {"id": "resp_1", "object": "response"}
    usage: dict[str, Any] = {
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15,
    }  # fmt: skip
    whole = {**base, "status": "completed", "output": [item], "usage": usage}
    for event in (
        {"type": "response.created", "response": {**base, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ):
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
