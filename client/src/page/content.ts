/**
 * The text that is visible on a page. Owns what is never read: fields, what is marked `data-private`, and what nobody sees.
 */

export const TEXT_LIMIT = 8_192;
export const NODES_LIMIT = 20_000;
const UNREAD = "script, style, noscript, template, iframe, object, canvas, svg, input, textarea, select, [hidden], [inert], [aria-hidden='true'], [data-private]";
const INLINE = new Set(["A", "ABBR", "B", "BDI", "CITE", "CODE", "EM", "I", "KBD", "LABEL", "MARK", "Q", "S", "SMALL", "SPAN", "STRONG", "SUB", "SUP", "TIME", "U", "VAR"]);

export interface Content {
  text: string;
  /** The page has more text than this. */
  truncated: boolean;
}

/** The text below an element, a line for each block, at most `limit` bytes of UTF-8. */
export function visibleText(root: Element, limit = TEXT_LIMIT): Content {
  const parts: string[] = [];
  let nodes = 0;
  let characters = 0;
  const walk = (node: Node, apart: boolean): void => {
    if (++nodes > NODES_LIMIT || characters > limit) return;
    if (apart) parts.push(" ");
    if (node instanceof Text) {
      const text = node.data.replace(/\s+/g, " ");
      parts.push(text);
      characters += text.length;
    } else if (node instanceof Element && !node.matches(UNREAD) && isSeen(node)) {
      const block = !INLINE.has(node.tagName);
      if (block) parts.push("\n");
      // What stands in a row or a grid is apart on the screen, with no space in the text.
      const laidOut = /flex|grid/.test(getComputedStyle(node).display);
      node.childNodes.forEach((child) => walk(child, laidOut));
      if (block) parts.push("\n");
    }
  };
  if (root.closest("[data-private]") === null) walk(root, false);
  const text = parts.join("").replace(/[ \n]*\n[ \n]*/g, "\n").replace(/ {2,}/g, " ").trim();
  const cut = cutAt(text, limit);
  return { text: cut, truncated: cut.length < text.length || nodes > NODES_LIMIT };
}

/** At most so many bytes of UTF-8, whole characters. */
export function cutAt(text: string, bytes: number): string {
  const encoded = new TextEncoder().encode(text);
  if (encoded.length <= bytes) return text;
  let end = bytes;
  while (end > 0 && ((encoded[end] ?? 0) & 0xc0) === 0x80) end--;
  return new TextDecoder().decode(encoded.subarray(0, end));
}

/** What the person has selected, unless it touches what is private. */
export function selectedText(limit: number): string {
  const selection = getSelection();
  if (selection === null || selection.isCollapsed || selection.rangeCount === 0) return "";
  const range = selection.getRangeAt(0);
  const { commonAncestorContainer: node } = range;
  const around = node instanceof Element ? node : node.parentElement;
  if (around === null || around.closest("[data-private]") !== null) return "";
  if ([...around.querySelectorAll("[data-private]")].some((one) => range.intersectsNode(one))) return "";
  return cutAt(selection.toString().trim(), limit);
}

function isSeen(element: Element): boolean {
  if (typeof element.checkVisibility === "function") return element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) || getComputedStyle(element).display === "contents";
  const { display, visibility } = getComputedStyle(element);
  return display !== "none" && visibility !== "hidden";
}
