/** Who is speaking: voice and model, as the session's own log states them. */
import { type ReactElement, useEffect, useState } from "react";
import type { Snapshot } from "voxbridge/react";
import { fetchEvents } from "../sessions/api";

interface Speaker {
  sessionId: string;
  model: string;
  voice: string;
}

export function Who({ snapshot }: { snapshot: Snapshot }): ReactElement | null {
  const { sessionId, mode } = snapshot;
  const connected = snapshot.connection === "connected";
  const [speaker, setSpeaker] = useState<Speaker | null>(null);
  useEffect(() => {
    if (sessionId === null || !connected) return;
    const leaving = new AbortController();
    fetchEvents(sessionId, 0, leaving.signal)
      .then(({ events }) => {
        const started = events.find(({ type }) => type === "session.started");
        const text = (name: string): string => (typeof started?.data[name] === "string" ? started.data[name] : "");
        setSpeaker({ sessionId, model: text("model"), voice: text("voice") });
      })
      .catch(() => setSpeaker(null));
    return () => leaving.abort();
  }, [sessionId, connected]);
  if (sessionId === null) return null;
  const known = speaker?.sessionId === sessionId ? speaker : null;
  const parts = [mode === "echo" ? "Echo" : "Voxbridge", known?.voice && `voice ${known.voice}`, known?.model].filter(Boolean);
  return <p className="who">{parts.join(" · ")}</p>;
}
