"""The peers: name, release and settings of each framework that is measured beside the product.

The releases are pinned in `locks/`. This module installs and runs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

LOCKS: Final = Path(__file__).resolve().parent / "locks"
SDK: Final = "google-genai"


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """A framework. Its adapter is `bench.peers.adapters.NAME`, its lock `locks/NAME.txt`."""

    name: str
    title: str
    package: str
    python: tuple[int, int]
    """Oldest Python it runs on."""

    settings: str
    """Settings that were changed and those that keep their default."""

    handoff: str = ""
    """Mechanism that hands a call over to another agent; empty: `no_handoff` says why nothing is timed."""

    no_handoff: str = ""

    @property
    def lock(self) -> Path:
        """Lock file: every package of its environment with its release and digests."""
        return LOCKS / f"{self.name}.txt"

    @property
    def version(self) -> str:
        """Locked release of the framework."""
        return pinned(self.lock, self.package)

    @property
    def sdk(self) -> str:
        """Release of the vendor's SDK that is locked with it."""
        return pinned(self.lock, SDK)


PEERS: Final[Mapping[str, Peer]] = {
    peer.name: peer
    for peer in (
        Peer(
            name="pipecat",
            title="Pipecat",
            package="pipecat-ai",
            python=(3, 11),
            settings="FastAPI WebSocket transport, context aggregators, GeminiLiveLLMService; 20 ms pieces up, "
            "40 ms chunks out as it comes; no local VAD, no turn model",
            no_handoff="its Gemini Live service stores changed settings and does not apply them to the open connection",
        ),
        Peer(
            name="roomkit",
            title="RoomKit",
            package="roomkit",
            python=(3, 12),
            settings="WebSocketRealtimeTransport, RealtimeVoiceChannel, GeminiLiveProvider, a room a call; 20 ms pieces up, "
            "out as they come; no pipeline of audio",
            handoff="ConversationPipeline",
        ),
        Peer(
            name="livekit",
            title="LiveKit AgentSession",
            package="livekit-agents",
            python=(3, 11),
            settings="AgentSession on the Google realtime model, audio on a WebSocket: no room, no server, no WebRTC, no job process; "
            "50 ms pieces up as it comes, out as they come; vad=None, no echo warm-up",
            handoff="AgentSession, a tool that returns the next Agent",
        ),
    )
}


def pinned(lock: Path, package: str) -> str:
    """Return the release of a package in a lock; raises `ValueError` when it is not there."""
    found = re.search(rf"^{re.escape(package)}==(\S+)", lock.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise ValueError(f"{lock.name} has no {package}")
    return found[1]
