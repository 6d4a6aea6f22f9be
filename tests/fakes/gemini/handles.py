"""The conversations that the fake Gemini keeps for resumption, each in its state when the handle was issued."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.fakes.gemini.rules import Options, Refused
from tests.fakes.gemini.turns import Line

if TYPE_CHECKING:
    from tests.fakes.gemini.session import Session


@dataclass
class Kept:
    """The conversation behind a handle."""

    model: str
    instruction: str
    history: tuple[Line, ...]
    session: Session
    expired: bool = False
    poisoned: bool = False
    """The session can be resumed, but ends at the first input, each time."""


class Handles:
    """Issued handles, by their names. `all_refused`: none is known any more, as after a fault of the service."""

    def __init__(self, options: Options) -> None:
        self.issued: dict[str, Kept] = {}
        self.all_refused = False
        self._options = options
        self._count = 0

    def issue(self, session: Session) -> str:
        """Issue a handle for the conversation in its present state. Earlier handles stay valid for their earlier states."""
        self._count += 1
        handle = f"handle-{self._count:06d}"
        self.issued[handle] = Kept(session.model_name, session.first_instruction, tuple(session.history), session)
        return handle

    def take(self, handle: str, model: str) -> Kept:
        """Return the conversation to resume. Raises `Refused`."""
        kept = self.issued.get(handle)
        if kept is None or self.all_refused:
            raise Refused("unknown_handle")
        if kept.expired:
            raise Refused("expired_handle")
        if kept.model != model:
            raise Refused("changed_model")
        if self._options.reject_resume_while_open and kept.session.open:
            raise Refused("resume_while_open")
        return kept

    def expire(self, *handles: str) -> None:
        """Make handles expire; without any, all that were issued."""
        for handle in handles or tuple(self.issued):
            self.issued[handle].expired = True

    def poison(self, *handles: str) -> None:
        """Make conversations end at the first input after they are resumed; without any, all that were issued."""
        for handle in handles or tuple(self.issued):
            self.issued[handle].poisoned = True

    def forget(self, *handles: str) -> None:
        """Make handles unknown; without any, all that were issued."""
        for handle in handles or tuple(self.issued):
            del self.issued[handle]
