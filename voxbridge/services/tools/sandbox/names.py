"""The globals that a handler may use. Handlers that use another are refused when they are configured; docs/platform.md lists them too."""

from __future__ import annotations

from typing import Final

VALUES: Final = ("undefined", "NaN", "Infinity", "globalThis")
LANGUAGE: Final = (
    *("Object", "Array", "String", "Number", "Boolean", "BigInt", "Symbol", "Date", "Math", "JSON", "RegExp", "Map", "Set", "WeakMap"),
    *("WeakSet", "Promise", "Proxy", "Reflect", "Iterator", "ArrayBuffer", "DataView", "Int8Array", "Uint8Array", "Uint8ClampedArray"),
    *("Int16Array", "Uint16Array", "Int32Array", "Uint32Array", "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array"),
    *("Error", "AggregateError", "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError", "URIError"),
    *("parseInt", "parseFloat", "isNaN", "isFinite", "encodeURIComponent", "decodeURIComponent", "encodeURI", "decodeURI"),
)
WEB: Final = (
    *("URL", "URLSearchParams", "TextEncoder", "TextDecoder", "crypto", "console", "structuredClone", "atob", "btoa", "setTimeout"),
    *("clearTimeout", "queueMicrotask", "Headers", "DOMException", "performance"),
)
OURS: Final = ("__name",)
"""Names that esbuild's `keepNames` puts around functions."""

ALLOWED: Final = (*VALUES, *LANGUAGE, *WEB, *OURS)
