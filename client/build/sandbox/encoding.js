import { TextDecoder, TextEncoder } from "@exodus/bytes/encoding-lite.js";

// whatwg-url takes both from the global object as it loads.
globalThis.TextEncoder = TextEncoder;
globalThis.TextDecoder = TextDecoder;
