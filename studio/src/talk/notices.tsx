/** What is wrong, why, and what to do next: one notice at a time, the most useful one. */
import type { ReactElement } from "react";
import type { UseVoiceAgent } from "voxbridge/react";
import { Notice } from "../notice";
import type { Readiness } from "./readiness";

export function Notices({ call, readiness }: { call: UseVoiceAgent; readiness: Readiness }): ReactElement | null {
  if (call.audioBlocked && call.connection === "connected") {
    const button = <button type="button" className="button" onClick={() => void call.agent.resumeAudio()}>Resume sound</button>;
    return <Notice title="The sound is paused." button={button}><p>The browser or another call on this device paused it.</p></Notice>;
  }
  if (call.error !== null) {
    const button = <button type="button" className="button" onClick={() => call.agent.clearError()}>Dismiss</button>;
    return <Notice title={call.error.message} button={button}><p>{call.error.action}</p></Notice>;
  }
  if (readiness.kind === "unreachable") {
    return (
      <Notice title="The gateway does not answer.">
        <p>Start Voxbridge with <code>make up</code>. This page looks again every 5 seconds.</p>
      </Notice>
    );
  }
  if (readiness.kind === "degraded") {
    return (
      <Notice title="Calls still work, but something needs attention.">
        <ul>
          {readiness.failing.map(({ name, detail }) => (
            <li key={name}><b>{name}</b>{detail === "" ? "" : `: ${detail}`}</li>
          ))}
        </ul>
      </Notice>
    );
  }
  if (readiness.kind === "not_ready") {
    return (
      <Notice title="Voxbridge is starting, or a part of it is missing.">
        <ul>
          {readiness.failing.map(({ name, detail }) => (
            <li key={name}><b>{name}</b>{detail === "" ? "" : `: ${detail}`}</li>
          ))}
        </ul>
        <p>
          <code>make up</code> starts every part; if it runs already, <code>voxbridge doctor</code> says what is wrong and what to do. This page looks again every 5 seconds.
        </p>
      </Notice>
    );
  }
  return null;
}
