/**
 * The globals of a handler that the engine lacks, beside those in vendor/web.js: structuredClone, crypto, console, timers, Headers. What they
 * need of the engine is taken first, so a handler that changes a prototype changes nothing here.
 */
(function (vx) {
  "use strict";
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const { ownKeys, getOwnPropertyDescriptor, getPrototypeOf, apply } = Reflect;
  const { freeze, defineProperty, create, is } = Object;
  const slice = uncurry(String.prototype.slice);
  const lower = uncurry(String.prototype.toLowerCase);
  const test = uncurry(RegExp.prototype.test);
  const tag = uncurry(Object.prototype.toString);
  const { stringify } = JSON;
  const isArray = Array.isArray;
  const host = { send: globalThis.__send, random: globalThis.__random, digest: globalThis.__digest };
  for (const name of ["__send", "__random", "__digest"]) delete globalThis[name];

  const refusal = (what) => `${what} is not there in a handler: the sandbox has no data of languages and regions. Format by hand, or on the page.`;
  /** Locale methods that would answer in the engine's own way, which is nobody's locale. */
  const LOCALE = [
    [String.prototype, ["localeCompare", "toLocaleLowerCase", "toLocaleUpperCase"]],
    [Number.prototype, ["toLocaleString"]],
    [BigInt.prototype, ["toLocaleString"]],
    [Date.prototype, ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"]],
    [Array.prototype, ["toLocaleString"]],
    [getPrototypeOf(Uint8Array.prototype), ["toLocaleString"]],
  ];
  for (const [prototype, names] of LOCALE) {
    for (const name of names) {
      const refuse = { [name]() { throw new TypeError(refusal(name)); } }[name];
      defineProperty(prototype, name, { value: refuse, writable: true, configurable: true, enumerable: false });
    }
  }
  for (const name of ["WeakRef", "FinalizationRegistry", "SharedArrayBuffer", "Atomics"]) delete globalThis[name];

  // ---- bytes ----
  const HEX = [];
  for (let n = 0; n < 256; n += 1) HEX[n] = (n < 16 ? "0" : "") + n.toString(16);
  const bytesOf = (source) => {
    if (source instanceof ArrayBuffer) return new Uint8Array(source);
    if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
    return undefined;
  };
  const toHex = (bytes) => {
    let text = "";
    for (let n = 0; n < bytes.length; n += 1) text += HEX[bytes[n]];
    return text;
  };
  const fromHex = (text) => {
    const bytes = new Uint8Array(text.length / 2);
    for (let n = 0; n < bytes.length; n += 1) bytes[n] = parseInt(slice(text, 2 * n, 2 * n + 2), 16);
    return bytes;
  };

  // ---- structuredClone ----
  const uncloneable = (value) => {
    const what = typeof value === "function" ? "A function" : typeof value === "symbol" ? "A symbol" : `An object ${slice(tag(value), 8, -1)}`;
    return new DOMException(`${what} could not be cloned.`, "DataCloneError");
  };
  const ERRORS = { EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
  const clone = (value, seen) => {
    if (typeof value === "function" || typeof value === "symbol") throw uncloneable(value);
    if (typeof value !== "object" || value === null) return value;
    if (seen.has(value)) return seen.get(value);
    const keep = (made) => { seen.set(value, made); return made; };
    const kind = slice(tag(value), 8, -1);
    if (value instanceof Date) return keep(new Date(+value));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof Boolean || value instanceof Number || value instanceof String || kind === "BigInt") return keep(Object(value.valueOf()));
    if (value instanceof ArrayBuffer) return keep(value.slice(0));
    if (ArrayBuffer.isView(value)) {
      const buffer = clone(value.buffer, seen);
      return keep(value instanceof DataView ? new DataView(buffer, value.byteOffset, value.byteLength)
        : new globalThis[kind](buffer, value.byteOffset, value.length));
    }
    if (value instanceof Map) {
      const made = keep(new Map());
      for (const [key, one] of [...value]) made.set(clone(key, seen), clone(one, seen));
      return made;
    }
    if (value instanceof Set) {
      const made = keep(new Set());
      for (const one of [...value]) made.add(clone(one, seen));
      return made;
    }
    if (value instanceof Error) {
      const Kind = ERRORS[value.name] ?? Error;
      const made = keep(create(Kind.prototype));
      for (const name of ["stack", "message", "cause"]) {
        const own = getOwnPropertyDescriptor(value, name);
        if (own && "value" in own) {
          const copied = name === "cause" ? clone(own.value, seen) : String(own.value);
          defineProperty(made, name, { value: copied, writable: true, configurable: true, enumerable: false });
        }
      }
      return made;
    }
    if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet) throw uncloneable(value);
    const made = keep(isArray(value) ? new Array(value.length) : {});
    for (const key of Object.keys(value)) made[key] = clone(value[key], seen);
    return made;
  };
  const structuredClone = function structuredClone(value, options = undefined) {
    if (arguments.length === 0) throw new TypeError("The \"value\" argument must be specified");
    const transfer = options?.transfer ?? [];
    const made = clone(value, new Map());
    for (const one of transfer) {
      if (!(one instanceof ArrayBuffer)) throw uncloneable(one);
      one.transfer();
    }
    return made;
  };

  // ---- crypto ----
  const INTEGERS = ["Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array", "BigInt64Array", "BigUint64Array"];
  const random = (count) => fromHex(host.random(count));
  const subtle = freeze({
    async digest(algorithm, data) {
      const name = String(typeof algorithm === "object" && algorithm !== null ? algorithm.name : algorithm).toUpperCase();
      const known = { "SHA-1": "sha1", "SHA-256": "sha256", "SHA-384": "sha384", "SHA-512": "sha512" };
      if (!Object.hasOwn(known, name)) throw new DOMException("Unrecognized algorithm name", "NotSupportedError");
      const bytes = bytesOf(data);
      if (bytes === undefined) throw new TypeError("The data to digest is an ArrayBuffer, a typed array or a DataView.");
      return fromHex(host.digest(known[name], toHex(bytes))).buffer;
    },
  });
  const crypto = freeze({
    subtle,
    getRandomValues(array) {
      const kind = slice(tag(array), 8, -1);
      if (!INTEGERS.includes(kind)) throw new DOMException("The data argument must be an integer-type TypedArray", "TypeMismatchError");
      if (array.byteLength > 65536) {
        throw new DOMException(`The requested length exceeds 65,536 bytes`, "QuotaExceededError");
      }
      bytesOf(array).set(random(array.byteLength));
      return array;
    },
    randomUUID() {
      const bytes = random(16);
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      const hex = toHex(bytes);
      return `${slice(hex, 0, 8)}-${slice(hex, 8, 12)}-${slice(hex, 12, 16)}-${slice(hex, 16, 20)}-${slice(hex, 20)}`;
    },
  });

  // ---- console: kept for the call, within limits ----
  const LINES = 100, CHARACTERS = 16_384;
  const shown = (value) => {
    if (typeof value === "string") return value;
    if (value instanceof Error) return `${value.name}: ${value.message}`;
    if (typeof value === "function") return `[Function: ${value.name || "(anonymous)"}]`;
    try {
      return (typeof value === "object" ? stringify(value) : undefined) ?? String(value);
    } catch {
      return slice(tag(value), 8, -1);
    }
  };
  const write = (level) => function (...values) {
    vx.lines.seen += 1;
    if (vx.lines.kept.length >= LINES || vx.lines.size >= CHARACTERS) return;
    let text = "";
    for (let n = 0; n < values.length; n += 1) text += (n ? " " : "") + slice(shown(values[n]), 0, CHARACTERS);
    text = slice(text, 0, CHARACTERS - vx.lines.size);
    vx.lines.size += text.length;
    vx.lines.kept.push([level, text]);
  };
  vx.lines = { kept: [], seen: 0, size: 0 };
  const console = freeze({ log: write("log"), info: write("info"), warn: write("warn"), error: write("error"), debug: write("debug"), trace: write("debug") });

  // ---- timers ----
  const TIMERS = 256;
  vx.timers = new Map();
  let last = 0;
  const setTimeout = function setTimeout(callback, delay = 0, ...values) {
    if (typeof callback !== "function") throw new TypeError("The \"callback\" argument must be of type function.");
    if (vx.timers.size >= TIMERS) throw new RangeError(`A handler has at most ${TIMERS} timers.`);
    const ms = +delay >= 1 && +delay <= 2147483647 ? Math.trunc(+delay) : 1;
    last += 1;
    vx.timers.set(last, { due: vx.now() + ms, callback, values });
    return last;
  };
  const clearTimeout = function clearTimeout(id) { vx.timers.delete(Number(id)); };

  // ---- Headers ----
  const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
  const trimmed = (value) => `${value}`.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
  const named = (name) => {
    if (!test(NAME, `${name}`)) throw new TypeError(`Headers: ${stringify(`${name}`)} is an invalid header name.`);
    return lower(`${name}`);
  };
  class Headers {
    #list = [];
    constructor(given = undefined) {
      if (given === undefined) return;
      if (typeof given !== "object" || given === null) throw new TypeError("Headers: the argument is an object, or a list of pairs.");
      if (typeof given[Symbol.iterator] === "function") {
        for (const pair of given) {
          const [name, value, ...more] = pair;
          if (more.length > 0 || value === undefined) throw new TypeError("Headers: a pair has a name and a value.");
          this.append(name, value);
        }
      } else for (const key of ownKeys(given)) if (typeof key === "string") this.append(key, given[key]);
    }
    append(name, value) {
      const text = trimmed(value);
      if (/[\0\r\n]/.test(text)) throw new TypeError(`Headers: the value of ${stringify(`${name}`)} has a line break.`);
      this.#list.push([named(name), text]);
    }
    delete(name) { const key = named(name); this.#list = this.#list.filter((pair) => pair[0] !== key); }
    get(name) {
      const key = named(name);
      const found = this.#list.filter((pair) => pair[0] === key).map((pair) => pair[1]);
      return found.length === 0 ? null : found.join(", ");
    }
    getSetCookie() { return this.#list.filter((pair) => pair[0] === "set-cookie").map((pair) => pair[1]); }
    has(name) { const key = named(name); return this.#list.some((pair) => pair[0] === key); }
    set(name, value) { const key = named(name); this.delete(key); this.append(key, value); }
    forEach(callback, self = undefined) { for (const [name, value] of this) apply(callback, self, [value, name, this]); }
    *entries() {
      const names = [...new Set(this.#list.map((pair) => pair[0]))].sort();
      for (const name of names) {
        if (name === "set-cookie") for (const cookie of this.getSetCookie()) yield [name, cookie];
        else yield [name, this.get(name)];
      }
    }
    *keys() { for (const [name] of this.entries()) yield name; }
    *values() { for (const [, value] of this.entries()) yield value; }
    [Symbol.iterator]() { return this.entries(); }
    get [Symbol.toStringTag]() { return "Headers"; }
  }

  // esbuild wraps inner functions in this to keep their names.
  const __name = (value) => value;
  const made = { structuredClone, crypto, console, setTimeout, clearTimeout, Headers, __name };
  for (const name of Object.keys(made)) {
    defineProperty(globalThis, name, { value: made[name], writable: true, configurable: true, enumerable: false });
  }
  freeze(Headers.prototype);
  Object.assign(vx, { host, bytesOf, fromHex, is });
})((globalThis.__vx = {}));
