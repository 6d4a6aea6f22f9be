/** The text box, which always works: without a call it begins one, in text. */
import { type ReactElement, type RefObject, type SyntheticEvent, useEffect, useRef, useState } from "react";
import type { UseVoiceAgent } from "voxbridge/react";
import { Icon } from "../icons";
import { draftOf } from "./mode";

/** The protocol's limit of `text.text`. */
const MAX_TEXT = 8192;

export function Composer({ call, field, onStart }: { call: UseVoiceAgent; field: RefObject<HTMLInputElement | null>; onStart: (text: string) => void }): ReactElement {
  const [text, setText] = useState("");
  const draft = draftOf(call)?.text ?? "";
  const taken = useRef("");
  useEffect(() => {
    if (call.state === "user_speaking") taken.current = ""; // what is said now is another one, also if it is the same
    if (draft === "" || draft === taken.current) return;
    taken.current = draft;
    setText((before) => (before.trim() === "" ? draft : `${before.trimEnd()} ${draft}`).slice(0, MAX_TEXT));
    field.current?.focus();
  }, [draft, call.state, field]);
  // Without a socket the words wait, and are sent as soon as the call is back.
  const inCall = call.connection === "connected" || call.connection === "reconnecting";
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    if (text.trim() === "" || call.connection === "connecting") return;
    if (inCall) void call.agent.sendText(text);
    else onStart(text);
    setText("");
  };
  return (
    <form className="composer" onSubmit={submit}>
      <input
        ref={field}
        value={text}
        onChange={(event) => setText(event.target.value)}
        maxLength={MAX_TEXT}
        placeholder={inCall ? "Type a message" : "Or type here, no microphone needed"}
        aria-label="Message"
        autoComplete="off"
        enterKeyHint="send"
      />
      <button type="submit" className="send" aria-label="Send" disabled={text.trim() === "" || call.connection === "connecting"}>
        <Icon name="send" />
      </button>
    </form>
  );
}
