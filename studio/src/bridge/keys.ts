/** Keys of the Bridge, which no program in a terminal is given. */

export const BRIDGE_KEYS: [key: string, meaning: string][] = [
  ["F6", "On to the list, or to the next open terminal"],
  ["⇧ F6", "Back"],
  ["Alt ⇧ 1…9", "Open the terminal at this place of the list"],
];

/** Carry out a key of the Bridge, before a terminal takes it. */
export function onBridgeKey(event: KeyboardEvent, open: (index: number) => void): void {
  const digit = event.altKey && event.shiftKey ? /^Digit([1-9])$/.exec(event.code) : null;
  if (event.key !== "F6" && digit === null) return;
  event.preventDefault();
  event.stopPropagation();
  if (digit === null) move(event.shiftKey ? -1 : 1);
  else open(Number(digit[1]) - 1);
}

function move(by: 1 | -1): void {
  const stops = [...document.querySelectorAll<HTMLElement>(".fleet, .pane")];
  const now = stops.findIndex((stop) => stop.contains(document.activeElement));
  const next = stops[(now + by + stops.length) % stops.length];
  next?.querySelector<HTMLElement>(".xterm-helper-textarea, [aria-pressed='true'], .row-open, select")?.focus();
}
