"""A person approves all that a run will do: the strictest wish of what it runs counts, and an approval is of that as it was then."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec
import pytest

from voxbridge.services.tools.core.inputs import Accepted
from voxbridge.services.tools.core.outputs import Resolve
from voxbridge.services.tools.registry import load
from voxbridge.services.tools.runs.document import Document, parse
from voxbridge.services.tools.session.lookup import look_up
from voxbridge.services.tools.session.standing import Standing
from voxbridge.shared.events.tools import ApprovalStanding

TOOLS = load(("tests.tools.pack", "voxbridge.services.tools.packs.macros.functions"), timeout_s=30)


def document(name: str, *steps: Any, confirm: str = "never") -> Document:
    return parse({"name": name, "steps": list(steps), "confirm": confirm})


def documents(inner: str, outer: str, *, text: str = "hello") -> dict[str, Document]:
    """Return a macro that runs another one, which runs a third, with these wishes of the last and the first."""
    known = (
        document("outer", {"run": "middle"}, confirm=outer),
        document("middle", {"run": "inner"}),
        document("inner", {"call": "echo", "arguments": {"text": text}}, confirm=inner),
    )
    return {one.name: one for one in known}


def decided(known: dict[str, Document], standing: Standing | None = None) -> Accepted:
    """Return the decision on a call that runs the outer macro."""
    wanted = Resolve("c1", "run_macro", {"name": "outer"}, "local")
    accepted = look_up(TOOLS, wanted, standing or Standing(), {"macro": known})
    assert isinstance(accepted, Accepted), accepted
    return accepted


@pytest.mark.parametrize(
    ("inner", "outer", "wanted"),
    [
        ("never", "never", "never"),
        ("first", "never", "first"),
        ("always", "never", "always"),
        ("always", "first", "always"),
        ("first", "always", "always"),
        ("never", "first", "first"),
    ],
)
def test_a_run_is_approved_as_the_strictest_of_what_it_runs_wants(inner: str, outer: str, wanted: str) -> None:
    assert decided(documents(inner, outer)).approval == wanted


def test_an_approval_that_stands_is_of_all_that_ran_then() -> None:
    known = documents("first", "never")
    first = decided(known)
    stands = Standing([ApprovalStanding(name="run_macro", arguments={"name": "outer"}, definition=first.definition)])
    assert decided(known, stands).approval == "never"
    replaced = decided(documents("first", "never", text="something else"), stands)
    assert (replaced.approval, replaced.definition == first.definition) == ("first", False)
    stricter = decided(documents("always", "never"), stands)
    assert stricter.approval == "always"


def test_an_approval_of_a_macro_that_runs_no_other_is_of_its_document_as_before() -> None:
    alone = document("outer", {"call": "echo", "arguments": {"text": "x"}}, confirm="first")
    digest = sha256(msgspec.json.encode(alone, order="deterministic")).hexdigest()[:32]
    assert decided({"outer": alone}).definition == digest
