/** Says that this installation records, before a call and all through it: whoever is heard must know. */
import { type ReactElement, useEffect, useState } from "react";

function useRecording(): boolean {
  const [recording, setRecording] = useState(false);
  useEffect(() => {
    const leaving = new AbortController();
    fetch("/api/vox/status", { signal: leaving.signal, headers: { accept: "application/json" } })
      .then((answer) => answer.json() as Promise<{ recording?: boolean }>)
      .then((status) => setRecording(status.recording === true))
      .catch(() => undefined); // a gateway that does not answer is said by what needs it
    return () => leaving.abort();
  }, []);
  return recording;
}

export function Recorded({ fresh }: { fresh: boolean }): ReactElement | null {
  if (!useRecording()) return null;
  return (
    <p className="recorded">
      <span aria-hidden="true" />
      {fresh ? "Calls are recorded here: both voices are kept for the timeline. Start only if everybody who is heard agrees." : "Recorded"}
    </p>
  );
}
