/** The keyboard in Talk. Owns which key means what; leaves every key to a field, a button or a dialog that has the focus. */
import { useEffect, useEffectEvent } from "react";
import type { UseVoiceAgent } from "voxbridge/react";
import { toAsking } from "./asking";

export const KEYS: [key: string, meaning: string][] = [
  ["Space", "Start talking, also in the middle of a typed conversation; in a call, hold to talk and release to end your turn"],
  ["M", "Mute or unmute"],
  ["Esc", "Stop the agent's speech"],
  ["/", "Type a message"],
  ["A", "Go to what waits for your approval"],
  ["?", "This help"],
];

function isTaken(target: EventTarget | null, key: string): boolean {
  if (document.querySelector("dialog[open]") !== null) return true;
  if (!(target instanceof HTMLElement)) return false;
  if (target.closest("input, textarea, select, [contenteditable]") !== null) return key !== "Escape";
  return key === " " && target.closest("button, a, summary") !== null;
}

export function useKeys({ agent, connection, microphone, state }: UseVoiceAgent, focusText: () => void, start: () => void): void {
  const down = useEffectEvent((event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTaken(event.target, event.key)) return;
    if (event.key === " ") {
      event.preventDefault();
      if (event.repeat) return;
      if (connection !== "idle" && connection !== "closed") {
        if (microphone === "off" && connection === "connected") void agent.startVoice().catch(() => undefined); // the snapshot says why not
        else agent.pushToTalk(true);
      } else if (state !== "elsewhere") start();
    } else if (event.key === "Escape") {
      if (state === "speaking" || state === "thinking" || state === "calling_tool") agent.interrupt();
    } else if (event.key === "/") {
      event.preventDefault();
      focusText();
    } else if (event.key === "a" && !event.repeat) {
      toAsking();
    } else if (event.key === "m" && !event.repeat) {
      agent.mute(microphone === "on");
    }
  });
  const up = useEffectEvent((event: KeyboardEvent) => {
    if (event.key === " ") agent.pushToTalk(false);
  });
  const away = useEffectEvent(() => agent.pushToTalk(false));
  useEffect(() => {
    const onDown = (event: KeyboardEvent): void => down(event);
    const onUp = (event: KeyboardEvent): void => up(event);
    const onAway = (): void => away();
    addEventListener("keydown", onDown);
    addEventListener("keyup", onUp);
    addEventListener("blur", onAway);
    return () => {
      removeEventListener("keydown", onDown);
      removeEventListener("keyup", onUp);
      removeEventListener("blur", onAway);
    };
  }, []);
}
