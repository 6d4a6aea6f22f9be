// Handlers of a page in the syntax of today, as a developer writes them. `build.mjs` sends them through bundlers.
import { shared } from "./shared.js";

const base = 100;

export const handlers = {
  arrow: async ({ city, days = 3 }, ctx) => ({ city: city?.toUpperCase() ?? "nowhere", days, fetches: typeof ctx.fetch }),
  async method({ items }) {
    let total = 0;
    for (const { price, count = 1 } of items) total += price * count;
    return { total, names: [...new Set(items.map((one) => one.name))].sort() };
  },
  plain: function (args) {
    const { text, ...rest } = args;
    return { words: text.split(/\s+/u).length, rest: { ...rest, seen: true } };
  },
  counted: async function ({ upTo }) {
    class Counter {
      #sum = 0;
      add(n) {
        this.#sum += n;
        return this;
      }
      get sum() {
        return this.#sum;
      }
    }
    function* numbers() {
      for (let n = 1; n <= upTo; n++) yield n;
    }
    const counter = new Counter();
    for (const n of numbers()) counter.add(n);
    return counter.sum;
  },
  failing: async ({ id }) => {
    try {
      JSON.parse(`{${id}`);
    } catch (error) {
      throw new Error(`No order ${id}: ${error.name}`);
    }
  },
  closed: async ({ n }) => n + base,
  imported: async ({ n }) => shared(n),
};

globalThis.exported = handlers;
