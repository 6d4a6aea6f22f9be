/**
 * Reads the source of a handler when it is configured: is it one function that needs nothing from around it? Its value is a function that takes
 * the source and the names that there are, as JSON, and returns the problem as JSON, or an empty text.
 */
(function () {
  "use strict";
  const compile = globalThis.eval;
  const { parse } = globalThis.acorn;
  const BUNDLED = "set the bundler's target to ES2022 or later";
  /** Names that tell who wrote them, and the remedy. */
  const HELPERS = [
    [/^(_?_async_?to_?generator|_?asyncToGenerator|__async|__awaiter|__generator|_?regeneratorRuntime|_ts_generator)\d*$/i,
      `it was rewritten for old engines; ${BUNDLED}`],
    [/^_?_?(spread|assign|rest|extends|objectSpread|objectWithoutProperties|toConsumableArray|slicedToArray|defineProperty|spreadValues|spreadProps|objRest)(Array|Values|Props)?\d*$/i,
      `it was rewritten for old engines; ${BUNDLED}`],
    [/^(_define_property|_object_spread|_object_spread_props|_object_without_properties|_to_consumable_array|_sliced_to_array|_extends|_type_of|_instanceof)\d*$/,
      `it was rewritten for old engines; ${BUNDLED}`],
    [/^_?tslib/, `TypeScript's helpers are imported; set \`target\` to ES2022 or later`],
    [/^cov_|^__cov|^__coverage__$/, "it counts its coverage; leave handlers out of it (`/* istanbul ignore next */`)"],
    [/^__vite_ssr_|^__vi_import|^__vite__/, "it uses an import; write what it needs inside the handler"],
    [/^(_jsx|_jsxs|jsx|jsxs|_jsxDEV|React|_React)\d*$/, "it has JSX; return data, and draw it in the page"],
    [/^(__webpack_require__|__require|require|module|exports|_interop_require_(default|wildcard)|__toESM|__importDefault|import_\w+)$/,
      "it uses an import; write what it needs inside the handler"],
    [/^_\$\w+|^\$RefreshSig\$|^\$RefreshReg\$|^_s\d*$/, "a development tool rewrote it; keep handlers in a file without components"],
  ];
  const NAMED = {
    fetch: "use `ctx.fetch`", XMLHttpRequest: "use `ctx.fetch`", axios: "use `ctx.fetch`", WebSocket: "use `ctx.fetch`",
    process: "use `ctx.secrets.NAME` for what is secret", Deno: "a handler runs on the platform; use `ctx.secrets`", Bun: "use `ctx.secrets`",
    Buffer: "use `Uint8Array`, `TextEncoder`, `btoa` and `atob`", setInterval: "use `setTimeout` in a loop", setImmediate: "use `setTimeout`",
    window: "it runs on the platform, not in the page", document: "it runs on the platform, not in the page",
    localStorage: "it runs on the platform, not in the page", sessionStorage: "it runs on the platform, not in the page",
    navigator: "it runs on the platform, not in the page", location: "it runs on the platform, not in the page", alert: "return what to say",
    Intl: "the sandbox has no data of languages and regions; format by hand, or on the page",
    AbortController: "`ctx.fetch` takes `timeout`, in ms", AbortSignal: "`ctx.fetch` takes `timeout`, in ms",
    FormData: "send `URLSearchParams` or JSON", Blob: "use `Uint8Array`", File: "use `Uint8Array`", Request: "give `ctx.fetch` the URL and options",
    Response: "return data", eval: "write the code in the handler", Function: "write the code in the handler", ctx: "take it as the second parameter: `(args, ctx) => …`",
    args: "take it as the first parameter: `(args, ctx) => …`", secrets: "use `ctx.secrets`", WeakRef: "keep the value itself",
    SharedArrayBuffer: "use `ArrayBuffer`", Atomics: "a handler has one thread", WebAssembly: "write it in JavaScript",
  };
  const LOCALE = new Set(["toLocaleString", "toLocaleDateString", "toLocaleTimeString", "toLocaleUpperCase", "toLocaleLowerCase", "localeCompare"]);
  const FUNCTIONS = new Set(["FunctionExpression", "FunctionDeclaration", "ArrowFunctionExpression"]);

  class Problem extends Error {
    constructor(identifier, why) {
      super(why);
      this.identifier = identifier;
    }
  }

  const children = (node) => Object.keys(node).flatMap((key) => node[key]).filter((one) => one !== null && typeof one === "object" && typeof one.type === "string");

  const names = (pattern, into) => {
    if (!pattern) return;
    if (pattern.type === "Identifier") into.add(pattern.name);
    else if (pattern.type === "ObjectPattern") for (const one of pattern.properties) names(one.type === "RestElement" ? one.argument : one.value, into);
    else if (pattern.type === "ArrayPattern") for (const one of pattern.elements) names(one, into);
    else if (pattern.type === "AssignmentPattern") names(pattern.left, into);
    else if (pattern.type === "RestElement") names(pattern.argument, into);
  };
  const hoisted = (node, into) => {
    if (FUNCTIONS.has(node.type) || node.type === "ClassBody") return;
    if (node.type === "VariableDeclaration" && node.kind === "var") for (const one of node.declarations) names(one.id, into);
    for (const one of children(node)) hoisted(one, into);
  };
  const lexical = (statements, into) => {
    for (const one of statements) {
      if (one.type === "VariableDeclaration" && one.kind !== "var") for (const declared of one.declarations) names(declared.id, into);
      else if (one.type === "FunctionDeclaration" || one.type === "ClassDeclaration") names(one.id, into);
    }
  };

  const reader = (allowed) => {
    const known = (scope, name) => {
      for (let one = scope; one; one = one.above) if (one.names.has(name)) return true;
      return allowed.has(name);
    };
    const within = (above) => ({ names: new Set(), above });
    const refused = (name) => {
      const helper = HELPERS.find(([form]) => form.test(name));
      if (helper) return new Problem(name, `it uses \`${name}\`: ${helper[1]}`);
      if (Object.hasOwn(NAMED, name)) return new Problem(name, `it uses \`${name}\`, which a handler does not have: ${NAMED[name]}`);
      return new Problem(name, `it uses \`${name}\` from outside itself, and only its own text is sent: move \`${name}\` into the handler, ` +
        `or, if a bundler put it there, ${BUNDLED}`);
    };
    const all = (nodes, scope) => { for (const one of nodes) if (one) visit(one, scope); };
    const aFunction = (node, scope) => {
      const own = within(scope);
      if (node.type !== "ArrowFunctionExpression") own.names.add("arguments");
      if (node.type === "FunctionExpression") names(node.id, own.names);
      for (const one of node.params) names(one, own.names);
      hoisted(node.body, own.names);
      all(node.params, own);
      visit(node.body, own);
    };
    const visit = (node, scope) => {
      switch (node.type) {
        case "Identifier":
          if (!known(scope, node.name)) throw refused(node.name);
          return;
        case "FunctionExpression":
        case "FunctionDeclaration":
        case "ArrowFunctionExpression":
          aFunction(node, scope);
          return;
        case "BlockStatement":
        case "StaticBlock": {
          const own = within(scope);
          lexical(node.body, own.names);
          all(node.body, own);
          return;
        }
        case "SwitchStatement": {
          visit(node.discriminant, scope);
          const own = within(scope);
          for (const one of node.cases) lexical(one.consequent, own.names);
          all(node.cases, own);
          return;
        }
        case "ForStatement":
        case "ForInStatement":
        case "ForOfStatement": {
          const own = within(scope);
          lexical([node.init ?? node.left].filter(Boolean), own.names);
          all(children(node), own);
          return;
        }
        case "CatchClause": {
          const own = within(scope);
          names(node.param, own.names);
          all(children(node), own);
          return;
        }
        case "ClassDeclaration":
        case "ClassExpression": {
          const own = within(scope);
          names(node.id, own.names);
          all([node.superClass, node.body], own);
          return;
        }
        case "MemberExpression":
          visit(node.object, scope);
          if (node.computed) visit(node.property, scope);
          else if (LOCALE.has(node.property.name)) {
            throw new Problem(node.property.name, `it uses \`${node.property.name}\`, which a handler does not have: ${NAMED.Intl}`);
          }
          return;
        case "Property":
        case "MethodDefinition":
        case "PropertyDefinition":
          if (node.computed) visit(node.key, scope);
          if (node.value) visit(node.value, scope);
          return;
        case "LabeledStatement":
          visit(node.body, scope);
          return;
        case "BreakStatement":
        case "ContinueStatement":
          return;
        case "UnaryExpression":
          if (node.operator === "typeof" && node.argument.type === "Identifier") return;
          visit(node.argument, scope);
          return;
        case "MetaProperty":
          if (node.meta.name === "import") throw new Problem("import.meta", "it uses `import.meta`; write what it needs inside the handler");
          return;
        case "ImportExpression":
        case "ImportDeclaration":
          throw new Problem("import", "it imports; write what it needs inside the handler, and ask for data with `ctx.fetch`");
        case "ExportNamedDeclaration":
        case "ExportDefaultDeclaration":
        case "ExportAllDeclaration":
          throw new Problem("export", "it exports; send the function alone");
        default:
          all(children(node), scope);
      }
    };
    return visit;
  };

  const OPTIONS = { ecmaVersion: "latest", sourceType: "script", allowImportExportEverywhere: true };
  /** Return the function in the source, as an expression or as a method. */
  const functionIn = (source) => {
    let first;
    try {
      const { body } = parse(`"use strict";(\n${source}\n)`, OPTIONS);
      if (body.length !== 2 || body[1].type !== "ExpressionStatement") throw new Problem("", "it is not one function");
      return body[1].expression;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      first = error;
    }
    try {
      const { body } = parse(`"use strict";({\n${source}\n})`, OPTIONS);
      const held = body.length === 2 && body[1].type === "ExpressionStatement" ? body[1].expression : undefined;
      const [property, ...more] = held?.type === "ObjectExpression" ? held.properties : [];
      if (!property || more.length > 0 || !property.method) {
        const kind = property?.kind === "get" || property?.kind === "set" ? "it is a getter or a setter" : "it is not one function";
        throw new Problem("", `${kind}; write \`handler: async (args, ctx) => …\``);
      }
      if (property.computed && property.key.type !== "Literal") throw new Problem("", "its name is computed; write `handler: async (args, ctx) => …`");
      return property.value;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new Problem("", syntax(source, first.pos >= error.pos - 1 ? first : error));
    }
  };
  const syntax = (source, error) => {
    const { line, column } = error.loc ?? { line: 2, column: 0 };
    const text = source.split("\n")[line - 2] ?? "";
    const near = text.slice(Math.max(0, column - 10), column + 20).trim();
    const foreign = text.slice(column, column + 1) === "<" ? "; JSX has to stay in the page" : /^[:?]|^(as|satisfies)\b/.test(text.slice(column).trim()) ? "; TypeScript has to be compiled first" : "";
    return `it is no JavaScript that can be run: ${error.message.replace(/ \(\d+:\d+\)$/, "")} near ${JSON.stringify(near)}${foreign}`;
  };

  const check = (source, allowed) => {
    if (/\{\s*\[native code\]\s*\}\s*$/.test(source)) throw new Problem("", "it is bound or native, so its text is not there; pass the function itself");
    const node = functionIn(source);
    if (node.type === "ClassExpression") throw new Problem("", "it is a class; write `async (args, ctx) => …`");
    if (!FUNCTIONS.has(node.type)) throw new Problem("", "it is not a function; write `async (args, ctx) => …`");
    if (node.generator) throw new Problem("", "it is a generator, and a handler answers once; write `async (args, ctx) => …`");
    reader(new Set(allowed))(node, undefined);
    let form = `(\n${source}\n)`;
    try {
      compile(`"use strict";(function () { return ${form} })`);
    } catch {
      form = `({\n${source}\n})`;
      compile(`"use strict";(function () { return ${form} })`);
    }
  };

  return function entry(text) {
    const { source, allowed } = JSON.parse(text);
    try {
      check(source, allowed);
      return "";
    } catch (error) {
      if (error instanceof Problem) return JSON.stringify({ identifier: error.identifier, why: error.message });
      if (error instanceof SyntaxError) return JSON.stringify({ identifier: "", why: `the sandbox's engine cannot run it: ${error.message}` });
      return JSON.stringify({ identifier: "", why: "it is nested too deeply to be read" });
    }
  };
})();
