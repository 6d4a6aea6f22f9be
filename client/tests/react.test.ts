import assert from "node:assert/strict";
import { test } from "node:test";
import { createElement, type ReactElement, StrictMode } from "react";
import { renderToString } from "react-dom/server";
import { AgentError, useVoiceAgent, VoiceAgent } from "../src/react";

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
