"""Things that a session is told of: names of terminals only where its agent steers them."""

from __future__ import annotations

from voxbridge.services.voice.session.offers import _told
from voxbridge.shared.agents.functions import Function

NAMES = {
    "read_terminal": {"terminal": ("Work",)},
    "forward_output": {"terminal": ("Work",), "source": ("Work",)},
    "search_kg": {"database": ("wiki",)},
}


def test_names_of_terminals_are_told_to_who_has_their_functions() -> None:
    read = Function(name="read_terminal", description="Read.", parameters={"type": "object"})
    assert _told(NAMES, (read,)).keys() == {"read_terminal", "search_kg"}
    assert _told(NAMES, ()).keys() == {"search_kg"}, "graphs are searched by name from any session"
