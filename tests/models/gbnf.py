"""A GBNF parser for tests: matches texts against a grammar and generates random ones. Covers what our grammars use."""

from __future__ import annotations

import random as randomness
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

_RULE = re.compile(r"^([a-z0-9]+) ::= (.*)$", re.MULTILINE)
_REPEAT = re.compile(r"\{(\d+)(,?)(\d*)\}")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "]": "]", "[": "["}
_SAMPLES = "aZ09 .,'é-"


@dataclass(frozen=True)
class Node:
    """A node of a rule: `literal`, `set`, `rule`, `seq`, `alt` or `repeat`."""

    kind: str
    value: Any


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def peek(self) -> str:
        while self.at < len(self.text) and self.text[self.at] == " ":
            self.at += 1
        return self.text[self.at] if self.at < len(self.text) else ""

    def alternatives(self) -> Node:
        options = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            options.append(self.sequence())
        return options[0] if len(options) == 1 else Node("alt", tuple(options))

    def sequence(self) -> Node:
        items = []
        while self.peek() not in {"", "|", ")"}:
            items.append(self.repeated(self.atom()))
        return Node("seq", tuple(items))

    def atom(self) -> Node:
        char = self.peek()
        if char == "(":
            self.at += 1
            inner = self.alternatives()
            assert self.peek() == ")"
            self.at += 1
            return inner
        if char == '"':
            self.at += 1
            out = []
            while self.text[self.at] != '"':
                out.append(self.character())
            self.at += 1
            return Node("literal", "".join(out))
        if char == "[":
            return self.set()
        name = re.compile(r"[a-z0-9]+").match(self.text, self.at)
        assert name, self.text[self.at :]
        self.at = name.end()
        return Node("rule", name[0])

    def set(self) -> Node:
        self.at += 1
        negated = self.text[self.at] == "^"
        self.at += negated
        ranges = []
        while self.text[self.at] != "]":
            low = high = self.character()
            if self.text[self.at] == "-" and self.text[self.at + 1] != "]":
                self.at += 1
                high = self.character()
            ranges.append((low, high))
        self.at += 1
        return Node("set", (negated, tuple(ranges)))

    def character(self) -> str:
        char = self.text[self.at]
        self.at += 1
        if char != "\\":
            return char
        kind = self.text[self.at]
        self.at += 1
        digits = {"x": 2, "u": 4, "U": 8}.get(kind)
        if digits is None:
            return _ESCAPES[kind]
        code = self.text[self.at : self.at + digits]
        self.at += digits
        return chr(int(code, 16))

    def repeated(self, node: Node) -> Node:
        while self.at < len(self.text) and self.text[self.at] in "*+?{":
            mark = self.text[self.at]
            if mark == "{":
                found = _REPEAT.match(self.text, self.at)
                assert found
                low = int(found[1])
                high = int(found[3]) if found[3] else None if found[2] else low
                self.at = found.end()
            else:
                low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[mark]
                self.at += 1
            node = Node("repeat", (node, low, high))
        return node


class Gbnf:
    """A grammar."""

    def __init__(self, text: str) -> None:
        self.rules: dict[str, Node] = {}
        for name, body in _RULE.findall(text):
            parser = _Parser(body)
            self.rules[name] = parser.alternatives()
            assert parser.peek() == "", f"{name}: {body[parser.at :]}"

    def check(self) -> None:
        """Fail unless every rule that is used is defined."""
        for node in self.rules.values():
            self._check(node)

    def _check(self, node: Node) -> None:
        match node.kind:
            case "rule":
                assert node.value in self.rules
            case "seq" | "alt":
                for each in node.value:
                    self._check(each)
            case "repeat":
                self._check(node.value[0])

    def ends(self, node: Node, text: str, at: int) -> Iterator[int]:
        """Yield the positions at which a match of `node` from `at` may end."""
        match node.kind:
            case "literal":
                if text.startswith(node.value, at):
                    yield at + len(node.value)
            case "set":
                negated, ranges = node.value
                if at < len(text) and any(low <= text[at] <= high for low, high in ranges) != negated:
                    yield at + 1
            case "rule":
                yield from self.ends(self.rules[node.value], text, at)
            case "alt":
                for option in node.value:
                    yield from self.ends(option, text, at)
            case "seq":
                yield from self._sequence(node.value, text, at)
            case "repeat":
                yield from self._repeat(node.value, text, at)

    def _sequence(self, items: tuple[Node, ...], text: str, at: int) -> Iterator[int]:
        positions = {at}
        for item in items:
            positions = {end for position in positions for end in self.ends(item, text, position)}
        yield from positions

    def _repeat(self, value: tuple[Node, int, int | None], text: str, at: int) -> Iterator[int]:
        node, low, high = value
        positions, seen, count = {at}, set[int](), 0
        while positions and (high is None or count <= high):
            if count >= low:
                yield from positions - seen
                seen |= positions
            positions = {end for position in positions for end in self.ends(node, text, position)} - (seen if count >= low else set())
            count += 1

    def write(self, random: randomness.Random) -> str:
        """Return a random text of the grammar."""
        return self._write(self.rules["root"], random, 0)

    def _write(self, node: Node, random: randomness.Random, depth: int) -> str:
        match node.kind:
            case "literal":
                return str(node.value)
            case "set":
                negated, ranges = node.value
                if not negated:
                    low, high = random.choice(ranges)
                    return chr(random.randint(ord(low), ord(high)))
                return random.choice([char for char in _SAMPLES if not any(low <= char <= high for low, high in ranges)])
            case "rule":
                return self._write(self.rules[node.value], random, depth + 1)
            case "alt":
                return self._write(node.value[0] if depth > 40 else random.choice(node.value), random, depth)
            case "seq":
                return "".join(self._write(item, random, depth) for item in node.value)
        inner, low, high = node.value
        count = low if depth > 40 else random.randint(low, low + 2 if high is None else high)
        return "".join(self._write(inner, random, depth) for _ in range(count))


@cache
def _grammar(text: str) -> Gbnf:
    return Gbnf(text)


def accepts(grammar: str, text: str) -> bool:
    """Return whether a text matches the grammar."""
    made = _grammar(grammar)
    return len(text) in set(made.ends(made.rules["root"], text, 0))
