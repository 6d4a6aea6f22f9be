/** Live captions of both sides, with tool calls between them. Follows the newest line until the person scrolls away. */
import { type ReactElement, useEffect, useMemo, useRef } from "react";
import type { Said, UseVoiceAgent } from "voxbridge/react";
import { agentName, handedOver } from "../words";
import { Asking } from "./asking";
import { ApprovalCard, CallCard, TaskCard } from "./cards";
import { draftOf } from "./mode";
import { shown, type Shown } from "./work";

function Line({ said }: { said: Said }): ReactElement {
  const who = said.role === "user" ? "You" : said.agent === "" ? "Voxbridge" : agentName(said.agent);
  return (
    <div className="line" data-role={said.role} data-partial={!said.final} aria-busy={!said.final}>
      <span className="line-who">
        {who}
        {said.typed && <span className="line-note"> typed</span>}
      </span>
      <p>
        {said.text}
        {said.unheard !== "" && !said.cut && <span className="unheard" title="Made, but not heard">{said.text === "" ? "" : " "}{said.unheard}</span>}
        {!said.final && <span className="caret" aria-hidden="true" />}
      </p>
      {said.interrupted && <span className="line-note">{said.cut ? "The connection broke here. The rest is said again." : said.text === "" ? "This was not heard." : said.unheard === "" ? "You interrupted here." : "You interrupted here. The rest was not heard."}</span>}
    </div>
  );
}

function EntryView({ entry, cancel }: { entry: Shown; cancel: ((id: string) => void) | null }): ReactElement {
  switch (entry.kind) {
    case "said":
      return <Line said={entry} />;
    case "handoff":
      return <p className="handoff">{handedOver(entry.from, entry.to, entry.reason, entry.ms !== null)}</p>;
    case "call":
      return <CallCard entry={entry} />;
    case "approval":
      return <ApprovalCard entry={entry} />;
    case "task":
      return <TaskCard entry={entry} cancel={cancel} />;
  }
}

export function Conversation({ call, empty }: { call: UseVoiceAgent; empty: string }): ReactElement {
  const { agent, approvals, connection, conversation } = call;
  const draft = draftOf(call);
  const entries = useMemo(() => shown(conversation, approvals).filter((entry) => entry.key !== draft?.key), [conversation, approvals, draft]);
  const live = connection === "connected" || connection === "reconnecting";
  const cancel = live ? (id: string): void => void agent.cancelTask(id) : null;
  const box = useRef<HTMLDivElement>(null);
  const following = useRef(true);
  useEffect(() => {
    if (following.current && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [entries]);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    // A notice above takes height away; the newest line stays in sight.
    const observer = new ResizeObserver(() => {
      if (following.current) element.scrollTop = element.scrollHeight;
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const onScroll = (): void => {
    const element = box.current;
    if (element !== null) following.current = element.scrollHeight - element.scrollTop - element.clientHeight < 48;
  };
  return (
    <section className="conversation" aria-label="Conversation">
      <div className="conversation-scroll" ref={box} onScroll={onScroll} tabIndex={0} role="log" aria-live="polite" aria-relevant="additions text" aria-label="Captions" data-after-asking>
        {entries.length === 0 && <p className="empty-line">{empty}</p>}
        {entries.map((entry) => <EntryView key={entry.key} entry={entry} cancel={cancel} />)}
      </div>
      <Asking call={call} />
    </section>
  );
}
