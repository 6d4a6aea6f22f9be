/** The catalogue as it is listed: found by words, in categories. Pure. */
import type { FunctionCard } from "./api";

export interface Category {
  name: string;
  functions: FunctionCard[];
}

/** The functions that have every word of the query, by category; those of the page come last, as those without a category do. */
export function categories(functions: readonly FunctionCard[], query: string): Category[] {
  const words = query.toLowerCase().split(/[\s_]+/).filter((word) => word !== "");
  const found = functions.filter((one) => {
    const text = `${one.name.replaceAll("_", " ")} ${one.description} ${one.category} ${one.effect} ${one.kind}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const names = [...new Set(found.map(({ category }) => category))].sort((one, other) => one.localeCompare(other));
  return names.map((name) => ({
    name: name === "" ? "other" : name,
    functions: found.filter(({ category }) => category === name).sort((one, other) => one.name.localeCompare(other.name)),
  }));
}
