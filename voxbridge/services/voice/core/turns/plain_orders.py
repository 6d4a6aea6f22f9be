"""Plain words of the user that need no model: an answer to an open question, an order to a tour, what goes into a terminal
as it is, a macro's trigger. Pure."""

from __future__ import annotations

from voxbridge.services.voice.core.state.reply import Order
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import consent, spoken_macros, spoken_modes, spoken_tours
from voxbridge.shared.macros.triggers import Match


def meant(t: Transition, text: str, language: str) -> Order | str:
    """Return the call that the words make, or what the agent says to them; empty if they are for the model.

    The texts that an agent in the background is given are no words of a user, and mean none of this.
    """
    if t.state.request is not None and t.state.request.child is not None:
        return ""
    settled = (
        consent.answered(t, text, language)
        or spoken_tours.meant(t, text)
        or spoken_modes.meant(t, text)
        or spoken_macros.meant(t, text, language)
    )
    return spoken_macros.order(settled) if isinstance(settled, Match) else settled or ""
