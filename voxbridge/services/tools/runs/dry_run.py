"""A dry run: what a document would do, with as much of its arguments as is known before anything runs. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from voxbridge.services.tools.runs.conditions import holds
from voxbridge.services.tools.runs.document import DEPTH_LIMIT, Action, Ask, Call, Document, RunMacro, Say, Stop, Wait
from voxbridge.services.tools.runs.pipes import Missing, Outcome, Resolver, Scope
from voxbridge.services.tools.runs.values import given
from voxbridge.shared.errors import VoxbridgeError

PLANNED_LIMIT: Final = 200
"""Steps of a plan."""


class Planned(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step as it would be run. Texts whose pipes lead to results that are not there yet keep them."""

    step: str
    action: str
    target: str = ""
    arguments: Any = None
    when: str = ""
    """Its condition, where that depends on what is not known yet."""


def plan(document: Document, macros: Mapping[str, Document], inputs: Mapping[str, Any]) -> list[Planned]:
    """Return the steps that a run with these inputs would make, in order. Raises `INVALID_ARGUMENT` for inputs that do not fit."""
    found: list[Planned] = []
    _plan(document, macros, given(document, inputs), "", found)
    return found


def _plan(document: Document, macros: Mapping[str, Document], inputs: Mapping[str, Any], prefix: str, found: list[Planned]) -> None:
    steps: dict[str, Outcome] = {}
    for step in document.steps:
        if len(found) >= PLANNED_LIMIT:
            return
        resolver = Resolver(Scope(inputs=inputs, steps=steps))
        when = ""
        if step.when:
            try:
                if not holds(step.when, resolver):
                    steps[step.id] = Outcome(state="skipped")
                    continue
            except VoxbridgeError:
                when = step.when
        path = f"{prefix}{step.id}"
        kind = str(step.action.__struct_config__.tag)
        target, arguments = _shown(step.action, resolver)
        found.append(Planned(step=path, action=kind, target=target, arguments=arguments, when=when))
        inner = macros.get(target) if isinstance(step.action, RunMacro) else None
        if inner is not None and prefix.count(".") < DEPTH_LIMIT - 1:
            _plan(inner, macros, {**_defaults(inner), **(arguments or {})}, f"{path}.", found)
        if isinstance(step.action, Stop) and not when:
            return


def _shown(action: Action, resolver: Resolver) -> tuple[str, Any]:
    match action:
        case Call():
            return action.function, known(action.arguments, resolver)
        case RunMacro():
            return action.name, known(action.inputs, resolver)
        case Say():
            return "", known(action.text, resolver)
        case Ask():
            return "", known(action.question, resolver)
        case Wait():
            return "", action.seconds
        case Stop():
            return "", known(action.reason, resolver)


def known(value: Any, resolver: Resolver) -> Any:
    """Return a value with the pipes replaced whose values are known."""
    if isinstance(value, Mapping):
        return {name: known(one, resolver) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [known(one, resolver) for one in value]
    try:
        return resolver.value(value)
    except Missing:
        return value


def _defaults(document: Document) -> dict[str, Any]:
    return {name: one.default for name, one in document.inputs.items() if one.default is not None}
