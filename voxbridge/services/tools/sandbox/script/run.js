/**
 * Runs one call of a handler at a time. Its value is the function by which the process says what came: a message of the tools service, a
 * timer, or that nothing is left to do.
 */
(function (vx) {
  "use strict";
  delete globalThis.__vx;
  const { stringify, parse } = JSON;
  const evaluate = globalThis.eval;
  const { ownKeys, getOwnPropertyDescriptor, getPrototypeOf } = Reflect;
  const { freeze, is } = Object;
  const OPEN = 16, ASKS = 64, BODY = 262_144, RESULT = 65_536, MESSAGE = 2_000;
  const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
  const encoder = new TextEncoder();
  const encode = encoder.encode.bind(encoder);
  const { URL, URLSearchParams, TextDecoder, Headers, DOMException } = globalThis;
  vx.now = performance.now.bind(performance);
  let call;

  const send = (frame) => vx.host.send(stringify(frame));
  const base64 = (bytes) => {
    let text = "";
    for (let n = 0; n < bytes.length; n += 8_192) text += String.fromCharCode.apply(null, bytes.subarray(n, n + 8_192));
    return btoa(text);
  };
  const unbase64 = (text) => {
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let n = 0; n < raw.length; n += 1) bytes[n] = raw.charCodeAt(n);
    return bytes;
  };

  /** Ask the tools service; refused here beyond the limits, before it costs anything there. */
  const ask = (mine, what, question) => {
    if (mine !== call || mine.over) throw new TypeError(`The call is over: its ctx.${what} is not there any more.`);
    if (mine.asked >= ASKS) throw new TypeError(`A call may ask ${ASKS} times in all, with ctx.fetch and ctx.hmac.`);
    if (mine.asks.size >= OPEN) throw new TypeError(`A call may have ${OPEN} requests open at a time; await some first.`);
    mine.asked += 1;
    const id = mine.asked;
    return new Promise((settle, refuse) => {
      mine.asks.set(id, { settle, refuse });
      send({ op: "ask", id, what, ...question });
    });
  };

  class Response {
    #told;
    #used = false;
    constructor(told) {
      this.#told = told;
      const headers = new Headers(told.headers);
      const { status, statusText, url, redirected } = told;
      Object.assign(this, { status, statusText, url, redirected, headers, ok: status >= 200 && status < 300, type: "basic" });
    }
    get bodyUsed() { return this.#used; }
    get body() { throw new TypeError("A handler has no streams: read the answer with text(), json(), arrayBuffer() or bytes()."); }
    #take() {
      if (this.#used) throw new TypeError("Body is unusable: Body has already been read");
      this.#used = true;
      return this.#told;
    }
    async text() {
      const told = this.#take();
      return told.text ?? new TextDecoder().decode(unbase64(told.bytes));
    }
    async json() { return parse(await this.text()); }
    async bytes() {
      const told = this.#take();
      return told.text === undefined ? unbase64(told.bytes) : encode(told.text);
    }
    async arrayBuffer() { return (await this.bytes()).buffer; }
    clone() {
      if (this.#used) throw new TypeError("Response.clone: Body has already been consumed.");
      return new Response(this.#told);
    }
    async blob() { throw new TypeError("A handler has no Blob: read the answer with bytes() or arrayBuffer()."); }
    async formData() { throw new TypeError("A handler has no FormData: read the answer with text()."); }
  }
  freeze(Response.prototype);

  const bodyOf = (body) => {
    if (body === undefined || body === null) return [null, ""];
    if (typeof body === "string") return [encode(body), "text/plain;charset=UTF-8"];
    if (body instanceof URLSearchParams) return [encode(`${body}`), "application/x-www-form-urlencoded;charset=UTF-8"];
    const bytes = vx.bytesOf(body);
    if (bytes === undefined) throw new TypeError("The body of a request is a text, URLSearchParams or bytes; write an object with JSON.stringify.");
    return [bytes, ""];
  };

  const fetcher = (mine) => async function fetch(target, init = {}) {
    const options = init ?? {};
    for (const name of ["signal", "window", "dispatcher", "duplex", "integrity"]) {
      if (options[name] !== undefined && options[name] !== null) throw new TypeError(`ctx.fetch has no \`${name}\`; it has \`timeout\`, in ms.`);
    }
    const url = `${new URL(typeof target === "object" && target !== null && "url" in target ? target.url : target)}`;
    const method = `${options.method ?? "GET"}`.toUpperCase();
    if (!METHODS.includes(method)) throw new TypeError(`ctx.fetch has no method ${stringify(method)}; it has ${METHODS.join(", ")}.`);
    const headers = new Headers(options.headers ?? undefined);
    const [body, type] = bodyOf(options.body);
    if (body !== null && (method === "GET" || method === "HEAD")) throw new TypeError("Request with GET/HEAD method cannot have body.");
    if (body !== null && body.length > BODY) throw new TypeError(`The body of a request has at most ${BODY} bytes; this one has ${body.length}.`);
    if (type && !headers.has("content-type")) headers.set("content-type", type);
    const redirect = options.redirect ?? "follow";
    if (!["follow", "error", "manual"].includes(redirect)) throw new TypeError(`\`redirect\` is "follow", "error" or "manual".`);
    const timeout = options.timeout === undefined ? 0 : Number(options.timeout);
    const question = { url, method, headers: [...headers], body: body === null ? null : base64(body), redirect, timeout };
    return new Response(await ask(mine, "fetch", question));
  };

  const hmac = (mine) => async function hmac(name, data, options = {}) {
    const bytes = typeof data === "string" ? encode(data) : vx.bytesOf(data);
    if (bytes === undefined) throw new TypeError("ctx.hmac signs a text or bytes.");
    if (bytes.length > BODY) throw new TypeError(`ctx.hmac signs at most ${BODY} bytes; these are ${bytes.length}.`);
    const { algorithm = "SHA-256", encoding = "hex" } = options ?? {};
    return (await ask(mine, "hmac", { name: `${name}`, data: base64(bytes), algorithm: `${algorithm}`, encoding: `${encoding}` })).text;
  };

  const secretsOf = (names) => new Proxy(freeze({ __proto__: null, ...names }), {
    get(held, name) {
      if (typeof name !== "string" || name in held) return held[name];
      if (name === "toJSON" || name === "then") return undefined;
      throw new ReferenceError(`There is no secret ${stringify(name)}; an administrator sets it with \`voxbridge secrets set ${name}\`.`);
    },
  });

  const cut = (text) => (text.length > MESSAGE ? `${text.slice(0, MESSAGE - 1)}…` : text);
  const told = (error) => {
    if (error === null) return "out of memory"; // what the engine throws when there is none left for an error
    try {
      if (error instanceof Error || error instanceof DOMException) return cut(`${error.name}: ${error.message}`);
      return cut(typeof error === "string" ? error : stringify(error) ?? String(error));
    } catch {
      return "an error that cannot be shown";
    }
  };
  const over = (mine, outcome) => {
    if (mine !== call || mine.over) return;
    mine.over = true;
    const { kept, seen } = vx.lines;
    send({ op: "done", ...outcome, console: kept, lines: seen });
  };
  const failed = (mine, kind, message) => over(mine, { kind, message });
  const finished = (mine, value) => {
    let text;
    try {
      text = stringify(value);
    } catch (error) {
      failed(mine, "result", `What it returns cannot be written as JSON: ${told(error)}`);
      return;
    }
    if (text === undefined) {
      if (value !== undefined) {
        failed(mine, "result", `It returns a ${typeof value}, which cannot be written as JSON.`);
        return;
      }
      text = "null";
    }
    const size = encode(text).length;
    if (size > RESULT) failed(mine, "too_large", `It returns ${size} bytes of JSON; ${RESULT} is the most.`);
    else over(mine, { value: text });
  };

  const functionOf = (source) => {
    try {
      return evaluate(`"use strict";(\n${source}\n)`);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      const held = evaluate(`"use strict";({\n${source}\n})`);
      return held[ownKeys(held)[0]];
    }
  };

  const drive = async (mine, message) => {
    try {
      const handler = functionOf(message.source);
      const secrets = secretsOf(message.secrets);
      const ctx = freeze({ secrets, fetch: fetcher(mine), hmac: hmac(mine) });
      finished(mine, await handler(parse(message.arguments), ctx));
    } catch (error) {
      failed(mine, "thrown", told(error));
    }
  };

  const answered = (message) => {
    const waiting = call?.asks.get(message.id);
    if (waiting === undefined) return;
    call.asks.delete(message.id);
    if (message.ok) waiting.settle(message);
    else waiting.refuse(new TypeError(message.message));
  };

  /** Run the timers that are due, the earliest first. */
  const fire = () => {
    const now = vx.now();
    const due = [...vx.timers].filter(([, timer]) => timer.due <= now).sort(([, a], [, b]) => a.due - b.due);
    for (const [id, timer] of due) {
      if (!vx.timers.delete(id)) continue;
      try {
        timer.callback(...timer.values);
      } catch (error) {
        if (call) failed(call, "thrown", told(error));
      }
    }
  };

  /** Return the ms after which a timer is due, -1 to wait for a message, -2 when the call is over. */
  const rest = () => {
    if (call === undefined) return -1;
    if (call.over) return -2;
    let next = Infinity;
    for (const [, timer] of vx.timers) if (timer.due < next) next = timer.due;
    if (next !== Infinity) return Math.max(0, next - vx.now());
    if (call.asks.size > 0) return -1;
    failed(call, "stuck", "It waits for a promise that nothing will settle any more.");
    return -2;
  };

  // ---- what a call left behind ----
  const roots = [
    globalThis, (async () => 1).constructor, (function* () {}).constructor, (async function* () {}).constructor, getPrototypeOf([][Symbol.iterator]()),
    getPrototypeOf(new Map()[Symbol.iterator]()), getPrototypeOf(new Set()[Symbol.iterator]()), getPrototypeOf(""[Symbol.iterator]()),
    getPrototypeOf("".matchAll(/./g)), getPrototypeOf(new URLSearchParams()[Symbol.iterator]()),
  ];
  const taken = () => {
    const found = new Map();
    const open = [...roots];
    // Functions that make nothing are frozen, which nobody notices, so that they need not be looked at after each call.
    const isLeaf = (one) => typeof one === "function" && getOwnPropertyDescriptor(one, "prototype") === undefined;
    while (open.length > 0) {
      const one = open.pop();
      if ((typeof one !== "object" && typeof one !== "function") || one === null || found.has(one)) continue;
      const properties = ownKeys(one).map((key) => [key, getOwnPropertyDescriptor(one, key)]);
      const above = getPrototypeOf(one);
      found.set(one, [above, properties]);
      open.push(above);
      for (const [, property] of properties) open.push(property.value, property.get, property.set);
    }
    const rest = [...found].filter(([one]) => !isLeaf(one) || freeze(one) === undefined);
    const image = rest.map(([one, [above, properties]]) => [one, above, properties.flatMap(([key, p]) => [key, p.value, p.get, p.set])]);
    return image.filter(([one]) => !Object.isFrozen(one));
  };
  let image;
  const clean = () => {
    if (vx.timers.size > 0 || call.asks.size > 0) return false;
    for (let n = 0; n < image.length; n += 1) {
      const [one, above, properties] = image[n];
      if (getPrototypeOf(one) !== above) return false;
      const keys = ownKeys(one);
      if (keys.length * 4 !== properties.length) return false;
      for (let k = 0; k < keys.length; k += 1) {
        const p = getOwnPropertyDescriptor(one, keys[k]);
        const at = 4 * k;
        if (keys[k] !== properties[at] || !is(p.value, properties[at + 1]) || p.get !== properties[at + 2] || p.set !== properties[at + 3]) return false;
      }
    }
    return true;
  };

  return function entry(what, text) {
    if (what === "message") {
      const message = parse(text);
      if (message.op === "answer") answered(message);
      else {
        call = { asks: new Map(), asked: 0, over: false };
        vx.lines = { kept: [], seen: 0, size: 0 };
        drive(call, message);
      }
    } else if (what === "timers") fire();
    else if (what === "rest") return rest();
    else if (what === "failed") {
      if (call) failed(call, "engine", text);
    } else if (what === "clean") {
      const left = clean();
      call = undefined;
      return left;
    } else if (what === "image") image = taken();
    return undefined;
  };
})(globalThis.__vx);
