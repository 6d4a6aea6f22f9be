/** Says that a call is recorded, before it and all through it: whoever is heard must know. */
import type { ReactElement } from "react";
import { useLoaded } from "../http";

/** What the installation does with the audio of calls (`VOXBRIDGE_RECORDING`). */
export type Recording = "off" | "allow" | "on";

export function useRecording(): Recording {
  return useLoaded<{ recording?: Recording }>("/api/vox/status").value?.recording ?? "off";
}

/** Whether the next call is to be recorded, as far as the person and the installation decide it; an agent may refuse, or ask for it. */
export function isWanted(recording: Recording, wish: boolean | undefined): boolean {
  return recording !== "off" && (wish ?? recording === "on");
}

interface RecordedProps {
  fresh: boolean;
  /** Whether the next call is to be recorded. */
  wanted: boolean;
  /** Whether this call is. */
  recorded: boolean;
}

export function Recorded({ fresh, wanted, recorded }: RecordedProps): ReactElement | null {
  if (fresh ? !wanted : !recorded) return null;
  return (
    <p className="recorded">
      <span aria-hidden="true" />
      {fresh ? "Calls are recorded here: both voices are kept for the timeline. Start only if everybody who is heard agrees." : "Recorded"}
    </p>
  );
}
