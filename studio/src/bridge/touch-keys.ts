/** Keys that the keyboards of phones lack. */

export interface TouchKey {
  name: string;
  /** What it types; empty for Ctrl, which is for the next letter. */
  bytes: string;
  /** What it types where a program asked for application cursor keys. */
  application?: string;
}

export const KEYS: readonly TouchKey[] = [
  { name: "Esc", bytes: "\x1b" },
  { name: "Tab", bytes: "\t" },
  { name: "Ctrl", bytes: "" },
  { name: "↑", bytes: "\x1b[A", application: "\x1bOA" },
  { name: "↓", bytes: "\x1b[B", application: "\x1bOB" },
  { name: "←", bytes: "\x1b[D", application: "\x1bOD" },
  { name: "→", bytes: "\x1b[C", application: "\x1bOC" },
  { name: "Enter", bytes: "\r" },
];
