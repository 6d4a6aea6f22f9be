import assert from "node:assert/strict";
import { test } from "node:test";
import { createElement, type ReactElement, StrictMode } from "react";
import { renderToString } from "react-dom/server";
import type { Entry } from "../src/entries";
import { AgentError, messagesOf, useVoiceAgent, VoiceAgent } from "../src/react";

function Page(): ReactElement {
  const { connection, state, microphone, approvals, tasks } = useVoiceAgent({ mode: "echo" });
  return createElement("p", null, `${connection}/${state}/${microphone}/${approvals.length + tasks.length}`);
}

test("a server renders the hook without touching a window or a device", () => {
  assert.equal(renderToString(createElement(StrictMode, null, createElement(Page))), "<p>idle/idle/off/0</p>");
});

test("an agent that was not started can be muted, interrupted and ended without harm", () => {
  const agent = new VoiceAgent();
  agent.mute(true);
  agent.interrupt();
  agent.pushToTalk(true);
  agent.end();
  assert.equal(agent.getSnapshot().connection, "idle");
});

test("the snapshot is the same object until something changes", () => {
  const agent = new VoiceAgent();
  assert.equal(agent.getSnapshot(), agent.getSnapshot());
});

test("an error says what to do", () => {
  assert.match(AgentError.of("MIC_DENIED").action, /type instead/);
});

test("the conversation is told as messages, each with what was done for it, and what is being said apart", () => {
  const said = (role: "user" | "assistant", text: string, final = true, unheard = ""): Entry =>
    ({ kind: "said", key: text, role, text, final, typed: false, interrupted: unheard !== "", cut: false, unheard, turn: 1, generation: null, seq: null, agent: "" });
  const called: Entry = { kind: "call", key: "c", id: "c", name: "get_weather", args: {}, status: "done", result: {}, ms: 1, startedAt: null, undo: null };
  const { messages, transcript } = messagesOf([said("user", "How is it in Rome?"), called, said("assistant", "Sunny."), said("user", "Thanks."), said("assistant", "", true, "With pleasure."), said("user", "And in", false)]);
  assert.deepEqual(messages, [
    { role: "user", text: "How is it in Rome?", unheard: "", steps: [] },
    { role: "assistant", text: "Sunny.", unheard: "", steps: ["Using get_weather"] },
    { role: "user", text: "Thanks.", unheard: "", steps: [] },
    { role: "assistant", text: "", unheard: "With pleasure.", steps: [] },
  ]);
  assert.equal(transcript, "And in");
});
