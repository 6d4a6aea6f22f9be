"""Shorthand of documents, written out: steps named by their action, and the `policy` and `trigger` of `create_macro`. Pure.

A step may be a function's name, or an object with one of `call`, `say`, `ask`, `wait`, `stop`, `run` beside its other fields:

    "check_thermal"
    {"call": "create_note", "arguments": {"text": "${prev.spoken}"}}
    {"say": "Done.", "when": "${input.aloud}"}

What is not shorthand is left as it is, for the types to judge.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_MAIN: Final = {"call": "function", "say": "text", "ask": "question", "wait": "seconds", "stop": "reason", "run": "name"}
"""Actions of steps, and the field that the shorthand's value stands for."""

_CALLS: Final = ("function", "tool", "name")
"""Other names under which a step may hold its function."""

_FIELDS: Final = frozenset({"id", "when", "on_error"})
_POLICIES: Final = frozenset({"mode", "limit", "on_error", "timeout_s", "confirm"})
_WORDS: Final = {"single", "restart", "queued", "parallel"}


def expanded(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a document without shorthand."""
    full = dict(data)
    if "trigger" in full:
        trigger = full.pop("trigger")
        triggers = [trigger] if isinstance(trigger, str) else trigger
        full.setdefault("triggers", [one for one in triggers if one != ""] if isinstance(triggers, list) else triggers)
    if "policy" in full:
        full.update(policy(full.pop("policy")))
    if "on_error" in full:
        full["on_error"] = _on_error(full["on_error"])
    steps = full.get("steps")
    if isinstance(steps, list | tuple):
        full["steps"] = [_numbered(step(one), number) for number, one in enumerate(steps, 1)]
    return full


def policy(given: Any) -> dict[str, Any]:
    """Return the fields of a document that a `policy` stands for: an error policy or a mode by name, or an object of both."""
    if given is None or given == "":
        return {}
    if isinstance(given, str):
        return {"mode": given} if given in _WORDS else {"on_error": _on_error(given)}
    if isinstance(given, Mapping) and given.keys() <= _POLICIES:
        return dict(given)
    return {"on_error": _on_error(given)}


def step(given: Any) -> Any:
    """Return a step without shorthand."""
    if isinstance(given, str):
        return {"action": {"do": "call", "function": given}}
    if not isinstance(given, Mapping) or "action" in given:
        return _with_policy(given)
    fields = {name: value for name, value in given.items() if name in _FIELDS}
    rest = {name: value for name, value in given.items() if name not in _FIELDS}
    action = _action(rest, fields)
    return _with_policy({**fields, "action": action})


def _action(rest: dict[str, Any], fields: dict[str, Any]) -> Any:
    if "do" not in rest:
        named = [name for name in _MAIN if name in rest]
        if len(named) == 1:
            rest = _of(named[0], rest)
        elif not named and (name := next((one for one in _CALLS if one in rest), None)):
            rest["do"] = "call"
            rest["function"] = rest.pop(name)
    if rest.get("do") == "call":
        for other in ("args", "params"):
            if other in rest and "arguments" not in rest:
                rest["arguments"] = rest.pop(other)
    if rest.get("do") != "ask" and "timeout_s" in rest:
        fields["timeout_s"] = rest.pop("timeout_s")
    return rest


def _of(name: str, rest: dict[str, Any]) -> dict[str, Any]:
    value = rest.pop(name)
    if isinstance(value, Mapping):
        return {**rest, **value, "do": name}
    return {**rest, "do": name, _MAIN[name]: value}


def _numbered(given: Any, number: int) -> Any:
    return {"id": f"step{number}", **given} if isinstance(given, dict) else given


def _with_policy(given: Any) -> Any:
    if isinstance(given, Mapping) and given.get("on_error") is not None:
        return {**given, "on_error": _on_error(given["on_error"])}
    return given


_RETRY: Final = re.compile(r"retry(?:[ _]?(?P<n>\d{1,2}))?")


def _on_error(given: Any) -> Any:
    """Return an error policy in full: `retry`, `{"retry": {...}}` and `{"fallback": step}` are shorthand."""
    if isinstance(given, str) and (found := _RETRY.fullmatch(given)):
        return {"do": "retry", **({"n": int(found["n"])} if found["n"] else {})}
    if isinstance(given, Mapping) and len(given) == 1:
        ((name, value),) = given.items()
        if name == "retry" and (value is None or isinstance(value, Mapping)):
            return {"do": "retry", **(value or {})}
        if name == "retry" and isinstance(value, int):
            return {"do": "retry", "n": value}
        if name == "fallback":
            expanded_step = step(value)
            return {"do": "fallback", "step": expanded_step.get("action") if isinstance(expanded_step, Mapping) else expanded_step}
    return given
