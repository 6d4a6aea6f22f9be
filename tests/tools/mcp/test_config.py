"""The file of servers, and the rules that follow from it for a tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from voxbridge.services.tools.mcp import config
from voxbridge.services.tools.mcp.config import Hints, Policy, Server, parse, policy, read, wants, with_variables
from voxbridge.shared.errors import Code, VoxbridgeError

FILE = b"""
servers:
  files:
    command: npx
    args: [-y, server]
    timeout_s: 10
    tools:
      - {match: "read_*", effect: read, listed: true}
      - {match: "read_all", timeout_s: 60, task: true}
      - {match: write_file, effect: write, approval: never}
  web: {url: "https://example.com/mcp", headers: {Authorization: "Bearer ${KEY}"}, effect: read, only: ["find_*"]}
"""


def rules(server: Server, tool: str, **hints: bool) -> Policy:
    return policy(server, tool, Hints(**hints))


def test_rules_that_match_add_up_and_the_later_one_counts() -> None:
    files = parse(FILE)["files"]
    assert rules(files, "read_one") == Policy(effect="read", approval="never", timeout_s=10, listed=True, idempotent=True, task=False)
    assert rules(files, "read_all") == Policy(effect="read", approval="never", timeout_s=60, listed=True, idempotent=True, task=True)
    other = rules(files, "move")
    assert (other.effect, other.approval, other.listed, other.idempotent) == ("write", "first", False, False)


@pytest.mark.parametrize(
    ("server", "tool", "hints", "expected"),
    [
        ("files", "move", {"read_only": True}, ("write", "first")),  # a stranger's word makes nothing laxer
        ("files", "move", {"destructive": True}, ("destructive", "always")),
        ("files", "read_one", {"read_only": False}, ("write", "first")),
        ("files", "read_one", {"read_only": True, "destructive": True}, ("read", "never")),
        ("files", "write_file", {"destructive": True}, ("write", "never")),  # this very tool was looked at
        ("web", "find_it", {}, ("read", "never")),
        ("web", "find_it", {"destructive": True}, ("destructive", "always")),
    ],
)
def test_annotations_make_a_rule_stricter_and_never_laxer(
    server: str, tool: str, hints: dict[str, bool], expected: tuple[str, str]
) -> None:
    found = rules(parse(FILE)[server], tool, **hints)
    assert (found.effect, found.approval) == expected


def test_what_people_say_for_a_tool_is_the_later_rules() -> None:
    server = parse(b"servers: {a: {command: x, tools: [{match: '*', examples: [do it]}, {match: pay, examples: [settle it, pay up]}]}}")[
        "a"
    ]
    assert rules(server, "pay").examples == ("settle it", "pay up")
    assert rules(server, "other").examples == ("do it",)


def test_only_the_tools_that_are_wanted_are_taken() -> None:
    web = parse(FILE)["web"]
    assert wants(web, "find_it")
    assert not wants(web, "create")


def test_variables_are_given_by_name_and_a_setting_of_ours_to_nobody() -> None:
    web = parse(FILE)["web"]
    assert with_variables("web", web, {"KEY": "k"}).headers == {"Authorization": "Bearer k"}
    with pytest.raises(VoxbridgeError, match="name it in VOXBRIDGE_TOOL_KEYS"):
        with_variables("web", web, {})
    with pytest.raises(VoxbridgeError, match="given to no server"):
        with_variables("x", Server(command="x", env={"A": "${VOXBRIDGE_NATS_URL}"}), {"VOXBRIDGE_NATS_URL": "nats://"})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"servers: {a: {}}", "either a `command` or a `url`"),
        (b"servers: {a: {command: x, url: 'http://x'}}", "either a `command` or a `url`"),
        (b"servers: {A_b: {command: x}}", "name of a server"),
        (b"servers: {a: {url: 'file:///etc/passwd'}}", "http:// or https://"),
        (b"servers: {a: {command: x, secret: 1}}", "secret"),
        (b"servers: {a: {command: x, timeout_s: 0}}", "timeout_s"),
        (b"servers: {a: {command: x, memory_mb: 31}}", "memory_mb"),
        (b"servers: {a: {command: x, tools: [{match: y, effect: none}]}}", "effect"),
        (b"servers: {a: {command: x, tools: [{match: y, examples: ['']}]}}", "examples"),
        (
            b"servers: {a: {command: x, tools: [{match: y, examples: [%s]}]}}" % b",".join([b"say"] * (config.EXAMPLES_LIMIT + 1)),
            "examples",
        ),
        (b"servers: {a: {command: x, env: {'A=B': c}}}", "A=B"),
        (b"servers: [", "the file"),
        (b"[" * 100_000, "the file"),
        (b"servers: {" + b",".join(b"s%d: {command: x}" % number for number in range(33)) + b"}", "more than 32"),
    ],
)
def test_a_mistake_is_refused_with_its_place(text: bytes, says: str) -> None:
    with pytest.raises(VoxbridgeError) as refused:
        parse(text)
    assert refused.value.code == Code.INVALID_ARGUMENT
    assert refused.value.field == config.SETTING
    assert says in refused.value.message


def test_a_file_has_a_bound_and_an_empty_one_names_no_server(tmp_path: Path) -> None:
    file = tmp_path / "mcp.yaml"
    file.write_bytes(b"#" * config.FILE_LIMIT)
    assert read(file) == {}
    file.write_bytes(b"#" * (config.FILE_LIMIT + 1))
    with pytest.raises(VoxbridgeError, match="more than"):
        read(file)
    with pytest.raises(VoxbridgeError, match="cannot be read"):
        read(tmp_path / "other.yaml")


def test_what_a_person_approves_names_the_program_and_no_secret() -> None:
    assert Server(command="npx", args=("a", "b"), env={"TOKEN": "s3cret"}).origin == "npx a b"
    assert Server(url="https://a/mcp", headers={"A": "s3cret"}).origin == "https://a/mcp"
