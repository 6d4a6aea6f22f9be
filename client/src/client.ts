/** client.js: everything a page needs for a voice agent, in one file. */
export { type AgentEvents, type Levels, type Tool, VoiceAgent, type VoiceAgentOptions } from "./agent";
export { AgentError, type AgentErrorFields, type Closed } from "./errors";
export type { Unsubscribe } from "./events";
export type { Marks, Recording } from "./probe";
export { type Json, type Latency, type Mode, type ServerMessage, type SessionState, type Stamp, STAMPS } from "./protocol";
export type { AgentState, Call, Connection, Entry, Microphone, Said, Snapshot, Task } from "./state";
