"""Notes in what a language model is told as the user's."""

from __future__ import annotations

import pytest

from voxbridge.shared.agents.notes import note, without_notes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Good morning.", "Good morning."),
        (note("Greet the caller."), ""),
        (f"That is all. {note('It is yours (again).')} {note('Sum up.')}", "That is all."),
        (f"{note('Before.')}\n\nAnd now (please) go on.", "And now (please) go on."),
        (f"One {note('two')} three", "One three"),
        (f"Well. {note('a smile :( of somebody')} lost with it", "Well."),
        ("", ""),
    ],
)
def test_what_the_user_said_is_what_is_no_note(text: str, said: str) -> None:
    assert without_notes(text) == said
