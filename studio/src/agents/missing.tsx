/** The keys that an agent or a pipeline waits for, and the way to set them. */
import type { ReactElement } from "react";
import { Link } from "wouter";
import { providerName } from "../words";

export function Missing({ providers }: { providers: readonly string[] }): ReactElement | null {
  if (providers.length === 0) return null;
  return (
    <p className="missing">
      Needs a key: {providers.map(providerName).join(", ")}. <Link to="/keys">Set one</Link>
    </p>
  );
}
