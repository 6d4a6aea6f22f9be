/** The web's own objects that the sandbox of handlers has: `URL` by whatwg-url, `TextEncoder` and `TextDecoder` by @exodus/bytes. */
import "./encoding.js";
import { URL, URLSearchParams } from "whatwg-url";

globalThis.URL = URL;
globalThis.URLSearchParams = URLSearchParams;
