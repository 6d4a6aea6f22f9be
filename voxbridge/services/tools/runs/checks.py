"""Checks of a document before it is saved or run: its functions, its pipes, its conditions, and the documents that it runs.

Owns what is refused, and the rule that a document may call only what its author may. Does not own its form (`document`). Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from voxbridge.services.tools.runs import conditions, schemas
from voxbridge.services.tools.runs.document import (
    BUNDLE_BYTES,
    DEPTH_LIMIT,
    Action,
    Ask,
    Call,
    Document,
    Fallback,
    OnError,
    RunMacro,
    Say,
    Step,
    Stop,
)
from voxbridge.services.tools.runs.pipes import PIPES_LIMIT, Pipe, pipes_in
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.errors import Code, VoxbridgeError

HIDDEN: Final = frozenset({"change_macro", "create_macro", "delete_macro", "run_macro", "run_tool", "run_workflow"})
"""Functions that no step calls: they would hide what is run from these checks."""


def check(
    document: Document,
    functions: Mapping[str, Function],
    documents: Mapping[str, Document],
    *,
    allowed: Collection[str] | None = None,
) -> dict[str, Document]:
    """Check a document against the functions there are and the documents that it may run; return those that it does run, by name.

    `allowed` names the functions that its author may call; None stands for all. Raises `INVALID_ARGUMENT`, `NOT_FOUND`, `TOO_LARGE` and
    `PERMISSION_DENIED`, naming the field.
    """
    bundle = bundled(document, documents)
    for one in (document, *bundle.values()):
        _Checker(one, functions, {**bundle, document.name: document}, allowed).check()
    return bundle


def bundled(document: Document, documents: Mapping[str, Document]) -> dict[str, Document]:
    """Return all documents that a document runs, by name. Raises `NOT_FOUND`, and `TOO_LARGE` for those that run one another too deep, in
    a circle, or have too many bytes in all."""
    bundle: dict[str, Document] = {}
    _follow(document, {**documents, document.name: document}, (document.name,), bundle)
    bundle.pop(document.name, None)
    if sum(len(msgspec.json.encode(one)) for one in (document, *bundle.values())) > BUNDLE_BYTES:
        message = f"{document.name} and what it runs have more than {BUNDLE_BYTES} bytes."
        raise VoxbridgeError(Code.TOO_LARGE, message, field="steps", limit=BUNDLE_BYTES)
    return bundle


def check_rights(documents: Iterable[Document], allowed: Collection[str] | None) -> None:
    """Check that documents call only what whoever runs them may call. Raises `PERMISSION_DENIED`."""
    for document in documents if allowed is not None else ():
        policies = (document.on_error, *(step.on_error for step in document.steps))
        actions = (*(step.action for step in document.steps), *(one.step for one in policies if isinstance(one, Fallback)))
        refused = next((one.function for one in actions if isinstance(one, Call) and one.function not in (allowed or ())), None)
        if refused is not None:
            message = f"{document.name} calls {refused}, which may not be called here, so it was not run."
            raise VoxbridgeError(Code.PERMISSION_DENIED, message, field="name")


def _follow(document: Document, documents: Mapping[str, Document], way: tuple[str, ...], bundle: dict[str, Document]) -> None:
    for number, step in enumerate(document.steps):
        if not isinstance(step.action, RunMacro):
            continue
        name = step.action.name
        field = f"steps[{number}].name"
        if name in way:
            message = f"{' runs '.join((*way, name))}: that would never end."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=field)
        if name not in documents:
            hint = _hint(name, documents)
            raise VoxbridgeError(Code.NOT_FOUND, f"The step {step.id!r} runs {name!r}, which is not there.{hint}", field=field)
        if len(way) >= DEPTH_LIMIT:
            message = f"{' runs '.join((*way, name))}: {DEPTH_LIMIT} within one another is the most."
            raise VoxbridgeError(Code.TOO_LARGE, message, field=field, limit=DEPTH_LIMIT)
        bundle[name] = documents[name]
        _follow(documents[name], documents, (*way, name), bundle)


class _Checker:
    """The check of one document, step by step, with the steps before it."""

    def __init__(
        self,
        document: Document,
        functions: Mapping[str, Function],
        documents: Mapping[str, Document],
        allowed: Collection[str] | None,
    ) -> None:
        self._document = document
        self._functions = functions
        self._documents = documents
        self._allowed = allowed
        self._before: dict[str, Step] = {}

    def check(self) -> None:
        self._policy(self._document.on_error, "on_error")
        for number, step in enumerate(self._document.steps):
            field = f"steps[{number}]"
            if step.when:
                condition = conditions.read(step.when)
                for pipe in condition.pipes.values():
                    self._pipe(pipe, f"{field}.when")
            self._action(step.action, field)
            if step.on_error is not None:
                self._policy(step.on_error, f"{field}.on_error")
            self._before[step.id] = step

    def _policy(self, policy: OnError, field: str) -> None:
        if isinstance(policy, Fallback):
            self._action(policy.step, f"{field}.step")

    def _action(self, action: Action, field: str) -> None:
        match action:
            case Call():
                self._call(action, field)
            case RunMacro():
                self._run(action, field)
            case Say(text=text) | Ask(question=text):
                self._pipes(text, field)
            case Stop():
                self._pipes([action.reason, action.result], field)
            case _:
                pass

    def _call(self, call: Call, field: str) -> None:
        if call.function in HIDDEN:
            message = f"A step cannot call {call.function}; name what is to run: a function with call, a macro with run."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=f"{field}.function")
        function = self._functions.get(call.function)
        if function is None:
            hint = _hint(call.function, self._functions)
            raise VoxbridgeError(Code.NOT_FOUND, f"There is no function {call.function!r}.{hint}", field=f"{field}.function")
        if function.kind == "browser":
            message = f"{call.function} needs a page, so no step can call it."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=f"{field}.function")
        if self._allowed is not None and call.function not in self._allowed:
            message = f"{call.function} may not be called here, so no macro made here may call it."
            raise VoxbridgeError(Code.PERMISSION_DENIED, message, field=f"{field}.function")
        self._pipes(call.arguments, f"{field}.arguments")
        self._fits(call.arguments, function.parameters, call.function, f"{field}.arguments")

    def _run(self, run: RunMacro, field: str) -> None:
        self._pipes(run.inputs, f"{field}.inputs")
        inputs = self._documents[run.name].inputs
        schema = {
            "type": "object",
            "properties": {name: {"type": one.type} for name, one in inputs.items()},
            "required": [name for name, one in inputs.items() if one.default is None],
            "additionalProperties": False,
        }
        self._fits(run.inputs, schema, run.name, f"{field}.inputs")

    def _fits(self, values: Mapping[str, Any], schema: Mapping[str, Any], name: str, field: str) -> None:
        found = next(schemas.problems(values, schema, self._type), None)
        if found is not None:
            where, what = found
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{name}: {where or 'its arguments'} {what}.", field=f"{field}.{where}".rstrip("."))

    def _pipes(self, value: Any, field: str) -> None:
        found = list(pipes_in(value, field=field))
        if len(found) > PIPES_LIMIT:
            message = f"A step has at most {PIPES_LIMIT} pipes, and this one {len(found)}."
            raise VoxbridgeError(Code.TOO_LARGE, message, field=field, limit=PIPES_LIMIT)
        for where, pipe in found:
            self._pipe(pipe, where)

    def _pipe(self, pipe: Pipe, field: str) -> None:
        head = pipe.parts[0]
        if head == "input" and pipe.parts[1] not in self._document.inputs:
            known = ", ".join(self._document.inputs) or "none"
            message = f"${{{pipe.text}}}: there is no such input. The inputs are: {known}."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=field)
        if head == "steps" and pipe.step not in self._before:
            later = any(step.id == pipe.step for step in self._document.steps)
            why = "runs later" if later else "does not exist"
            message = f"${{{pipe.text}}}: the step {pipe.step!r} {why}; a pipe leads to a step before its own."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=field)
        if head == "prev" and not self._before and pipe.default is None:
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"${{{pipe.text}}}: there is no step before the first.", field=field)

    def _type(self, pipe: Pipe) -> str:
        """Return the JSON type of a pipe's value as far as it is known before the run."""
        if pipe.default is not None:
            return ""
        if pipe.parts[0] == "input":
            return self._document.inputs[pipe.parts[1]].type
        if pipe.parts[0] == "steps" and pipe.parts[2] == "state":
            return "string"
        if pipe.parts[0] == "steps" and pipe.parts[2] == "error":
            return "object" if len(pipe.parts) == 3 else "string"
        whole = pipe.parts == ("prev",) or (pipe.parts[0] == "steps" and pipe.parts[2:] == ("result",))
        before = [self._before[pipe.step]] if pipe.step else list(self._before.values())
        return "object" if whole and all(isinstance(step.action, Call | Say | Ask) for step in before) else ""


def _hint(name: str, known: Mapping[str, Any]) -> str:
    near = get_close_matches(name, list(known), n=2)
    return f" Did you mean {' or '.join(near)}?" if near else ""
