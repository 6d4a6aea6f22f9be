/** What a function does to the world, and whether somebody is asked first: in words, not by colour alone. */
import type { ReactElement } from "react";
import type { FunctionCard } from "./api";

const EFFECTS: Record<FunctionCard["effect"], string> = { read: "reads", write: "changes", destructive: "destroys" };
const APPROVALS: Record<FunctionCard["approval"], string> = { never: "", first: "asks once", always: "asks each time" };

export function Badges({ card: { effect, approval, kind } }: { card: FunctionCard }): ReactElement {
  return (
    <span className="badges">
      <span className="badge" data-effect={effect}>{EFFECTS[effect]}</span>
      {approval !== "never" && <span className="badge">{APPROVALS[approval]}</span>}
      {kind === "async" && <span className="badge">task</span>}
      {kind === "browser" && <span className="badge">page</span>}
    </span>
  );
}
