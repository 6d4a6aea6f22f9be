"""Client of a session: its socket, its microphone, and what it reports of playback."""

from __future__ import annotations

import msgspec


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """Position of one microphone frame: it ends at this sample of the session."""

    samples: int
    sequence: int
    time_ms: int


class Client(msgspec.Struct, kw_only=True):
    """The client, as the session knows it."""

    gateway: str = ""
    connection: str = ""
    """Connection of the client's socket at `gateway`; both are empty before the first `client.connected`."""

    away_since: int = 0
    """Time the client was lost, µs; 0 while it is connected. No reply is spoken while the client is away."""

    presumed: bool = False
    """True if the loss was inferred from missed gateway heartbeats; any message from the client clears it."""

    reports_playback: bool = False
    """True if the client's protocol includes playback reports."""

    reported: bool = False
    """True once it has reported playback. A client that never does is assumed to play in real time."""

    typed_at: int = 0
    """Time of the newest typed text to a realtime model, µs."""

    microphone: Mark | None = None
    """Newest microphone frame whose position is known."""

    heard_ms: int = 0
    """Milliseconds of its microphone that a realtime model heard which takes no part any more."""

    begun_until: int = 0
    """Time until which the connections that were begun to realtime models count against their rate, µs."""

    sequence: int = 0
    """Sequence number of the first frame of the newest generation that was sent."""
