"""Instances of every declared event: a fixed sample of each for the golden logs, and strategies for the property tests."""

from __future__ import annotations

import types
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec
from hypothesis import strategies as st

from voxbridge.shared import events
from voxbridge.shared.events import Event
from voxbridge.shared.events.journal import Taken

INT64 = st.integers(-(2**63), 2**63 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | INT64 | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
OBJECT = st.dictionaries(st.text(max_size=5), JSON, max_size=3)
E = TypeVar("E")


def strategy(kind: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for values of a field's type."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Taken:
        raw = JSON.map(lambda value: msgspec.Raw(msgspec.msgpack.encode(value)))
        return st.builds(Taken, INT64, st.none(), raw) | st.builds(Taken, INT64, INT64)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return instances(kind)
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, types.UnionType):
        return st.one_of(*(strategy(arg) for arg in args))
    if origin is tuple:
        return st.lists(strategy(args[0]), max_size=4).map(tuple)
    if origin is list:
        return st.lists(strategy(args[0]), max_size=4)
    if origin is dict:
        return OBJECT
    simple: dict[Any, st.SearchStrategy[Any]] = {
        str: st.text(max_size=20),
        bytes: st.binary(max_size=20),
        int: INT64,
        float: st.floats(allow_nan=False),
        bool: st.booleans(),
        type(None): st.none(),
        msgspec.UnsetType: st.just(msgspec.UNSET),
        Any: JSON,
    }
    return simple[kind]


def instances(cls: type[E]) -> st.SearchStrategy[E]:
    """Return a strategy for instances of a Struct, with and without its optional fields."""
    fields = msgspec.structs.fields(cast("Any", cls))
    needed = {f.name: strategy(f.type) for f in fields if f.required}
    optional = {f.name: strategy(f.type) for f in fields if not f.required}
    return st.fixed_dictionaries(needed, optional=optional).map(lambda values: cls(**values))


def sample(cls: type[E]) -> E:
    """Return the fixed sample of a Struct, every field filled."""
    return cls(**{f.name: _sample(f.type, f.name) for f in msgspec.structs.fields(cast("Any", cls))})


def samples() -> dict[str, Event]:
    """Return a sample of every declared event, by type."""
    return {name: sample(kind.cls) for name, kind in sorted(events.KINDS.items())}


def _sample(kind: Any, name: str) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if origin is tuple and args[0] is Taken:
        return (
            Taken(1_700_000_000_000_001, 41),
            Taken(1_700_000_000_000_002, None, msgspec.Raw(msgspec.msgpack.encode({"type": "timer"}))),
        )
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return sample(kind)
    if origin is Literal:
        return args[-1]
    if origin in (Union, types.UnionType):
        return _sample(args[0], name)
    if origin in (tuple, list):
        return origin((_sample(args[0], name),))
    if origin is dict:
        return {"text": "Grüße", "number": 42, "list": [1, 2.5, None, True]}
    return {str: f"a {name}: ü", int: 7 + len(name), float: 0.25, bool: True, bytes: b"\x81\xa1a\x01"}[kind]
