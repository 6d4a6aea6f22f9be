/** client.js: everything a page needs for a voice agent, in one file. */
export { VoiceAgent } from "./agent";
export type { AgentEvents } from "./call/core";
export type { Approval, Call, Entry, Handoff, MacroRun, RunQuestion, Said, Task } from "./entries";
export type { Interruption } from "./resume/backoff";
export { AgentError, type AgentErrorFields, type Closed } from "./errors";
export type { Unsubscribe } from "./events";
export type { VoiceAgentOptions } from "./options";
export type { Marks, Recording } from "./measuring/probe";
export { type Decision, type Effect, type Json, type Latency, type Mode, type Scope, type ServerMessage, type SessionState, type Speaker, type Stamp, STAMPS, type Usage } from "./socket/protocol";
export type { Levels } from "./audio/agent-audio";
export type { AgentState, Connection, Microphone, Notice, Snapshot } from "./state";
export type { HandlerContext, HandlerTool, PageTool, Run, Tool, Tools } from "./tools";
export { openApprovals, openTasks } from "./work";
