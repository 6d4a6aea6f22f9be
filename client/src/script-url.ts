/** The address of a script for another thread that is in this file as text. Owns which kind of address a page may load. */

export interface ScriptUrl {
  href: string;
  revoke: () => void;
}

/** A page without an origin of its own, such as a file from the disk, may not load a `blob:` into a worklet. */
export function scriptUrl(source: string): ScriptUrl {
  if (self.origin === "null") return { href: `data:text/javascript;charset=utf-8,${encodeURIComponent(source)}`, revoke: () => undefined };
  const href = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  return { href, revoke: () => URL.revokeObjectURL(href) };
}
