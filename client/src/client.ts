/** client.js: everything a page needs for a voice agent, in one file. */
export { type AgentEvents, VoiceAgent } from "./agent";
export type { Interruption } from "./resume/backoff";
export { AgentError, type AgentErrorFields, type Closed } from "./errors";
export type { Unsubscribe } from "./events";
export type { VoiceAgentOptions } from "./options";
export type { Marks, Recording } from "./measuring/probe";
export { type Json, type Latency, type Mode, type ServerMessage, type SessionState, type Speaker, type Stamp, STAMPS, type Usage } from "./socket/protocol";
export type { Levels } from "./audio/agent-audio";
export type { AgentState, Call, Connection, Entry, Handoff, Microphone, Notice, Said, Snapshot, Task } from "./state";
export type { Run, Tool, Tools } from "./tools";
