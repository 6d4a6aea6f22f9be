"""JSON Schemas of the bodies of `/api/keys` and `/api/approvals`. Data alone."""

from __future__ import annotations

from typing import Any, Final

from voxbridge.shared.platform import handlers, keys
from voxbridge.shared.secrets.access_tokens import ACCOUNT

_ACCOUNT: Final = {"type": "string", "pattern": f"^{ACCOUNT.pattern}$"}
_LABEL: Final = r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?"
_PORT: Final = r"(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}))?"
_ORIGIN: Final = {"type": "string", "pattern": rf"^https?://{_LABEL}(\.{_LABEL}){{0,3}}{_PORT}$"}
_NAME: Final = {"type": "string", "maxLength": keys.NAME_LIMIT}
_LIMITS: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "concurrent": {"type": "integer", "minimum": 1, "maximum": 1_000},
        "seconds_a_day": {"type": "integer", "minimum": 1, "maximum": 10_000_000},
        "tokens_a_day": {"type": "integer", "minimum": 1, "maximum": 1_000_000_000},
        "seconds_a_call": {"type": "integer", "minimum": 1, "maximum": 21_600},
        "tokens_a_call": {"type": "integer", "minimum": 1, "maximum": 10_000_000},
    },
}
_COMMON: Final = {
    "account": _ACCOUNT,
    "name": _NAME,
    "mode": {"type": "string", "enum": ["local", "gemini", "openai", "claude"]},
    "model": _NAME,
    "voice": _NAME,
    "agent": _NAME,
    "functions": {"type": "array", "items": {**_NAME, "minLength": 1}, "maxItems": keys.FUNCTIONS_LIMIT},
    "seconds": {"type": "integer", "minimum": 0, "maximum": 1_000_000_000},
    "limits": _LIMITS,
}


def _kind(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": required, "properties": {**_COMMON, **properties}}


KEY: Final[dict[str, Any]] = {
    "description": "A live publishable key names its origins, exactly.",
    "anyOf": [
        _kind(
            [],
            kind={"type": "string", "enum": ["public", "secret"]},
            environment={"type": "string", "enum": ["test"]},
            origins={"type": "array", "items": {"anyOf": [_ORIGIN, {"enum": [keys.NULL]}]}, "maxItems": keys.ORIGINS_LIMIT},
        ),
        _kind(
            ["environment", "origins"],
            kind={"type": "string", "enum": ["public"]},
            environment={"type": "string", "enum": ["live"]},
            origins={"type": "array", "items": _ORIGIN, "minItems": 1, "maxItems": keys.ORIGINS_LIMIT},
        ),
        _kind(
            ["environment", "kind"],
            kind={"type": "string", "enum": ["secret"]},
            environment={"type": "string", "enum": ["live"]},
            origins={"type": "array", "items": _ORIGIN, "maxItems": keys.ORIGINS_LIMIT},
        ),
    ],
    "example": {"account": "shop", "environment": "live", "origins": ["https://shop.example"]},
}
ROTATION: Final[dict[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"overlap": {"type": "integer", "minimum": 0, "maximum": keys.OVERLAP_LIMIT_S, "default": 86_400}},
}
_TOOL: Final = {
    "type": "object",
    "additionalProperties": False,
    "required": ["handler"],
    "properties": {
        "handler": {"type": "string", "pattern": r"^[a-z(][ -~]*$", "maxLength": handlers.SOURCE_LIMIT},
        "description": {"type": "string", "maxLength": handlers.DESCRIPTION_LIMIT},
        "parameters": {
            "type": "object",
            "propertyNames": {"pattern": "^[a-z_]{1,32}$", "not": {"enum": ["type"]}},
            "additionalProperties": {"type": "string", "enum": ["string", "number", "boolean", "string?", "number?", "boolean?"]},
            "maxProperties": 8,
        },
    },
}
APPROVAL: Final[dict[str, Any]] = {
    "description": "Either the digest of what a page asked for, or what a page configures.",
    "anyOf": [
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["digest"],
            "properties": {"account": _ACCOUNT, "digest": {"type": "string", "pattern": "^[0-9a-f]{64}$"}},
        },
        {
            "type": "object",
            "additionalProperties": False,
            "required": ["configuration"],
            "properties": {
                "account": _ACCOUNT,
                "configuration": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "instructions": {"type": "string", "maxLength": handlers.INSTRUCTIONS_LIMIT},
                        "greeting": {"type": "string", "maxLength": handlers.GREETING_LIMIT},
                        "tools": {
                            "type": "object",
                            "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$"},
                            "additionalProperties": _TOOL,
                            "maxProperties": 4,
                        },
                    },
                },
            },
        },
    ],
    "example": {"account": "shop", "configuration": {"instructions": "You are a helpful weather assistant."}},
}
