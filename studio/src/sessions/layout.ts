/**
 * A session's events as lanes over one clock. Pure: events in, spans and marks in ms since the first event out.
 * Owns what becomes a span and where; canvas and pointer know only what comes out of here.
 */
import { type Latency, STAMPS } from "voxbridge/react";
import { agentName, duration, functionName } from "../words";
import { stages } from "../talk/waterfall";
import type { LogEvent } from "./api";

export interface View {
  /** Milliseconds since the first event. */
  from: number;
  to: number;
}

export type LaneName = "You" | "Agent" | "Who" | "Tools" | "Latency" | "Worker" | "Client" | "Events";
export const LANES: readonly LaneName[] = ["You", "Agent", "Who", "Tools", "Latency", "Worker", "Client", "Events"];

export type Kind = "speech" | "typed" | "thinking" | "speaking" | "cut" | "tool" | "task" | "failed" | "stage" | "held" | "connected" | "heard" | "handoff";

export interface Span {
  lane: LaneName;
  from: number;
  to: number;
  label: string;
  kind: Kind;
  /** The row in its lane: calls that run at once lie below each other. */
  row: number;
  /** More for the pointer than the label says. */
  note?: string;
}

export interface Mark {
  at: number;
  index: number;
  failed: boolean;
}

export interface Turn {
  number: number;
  /** When the person had finished. */
  from: number;
  latency: Latency;
}

export interface Timeline {
  spans: Span[];
  marks: Mark[];
  turns: Turn[];
  /** Of each event, in the order of the log. */
  times: number[];
  /** µs of the Unix clock at 0. */
  start: number;
  end: number;
}

export const TOOL_ROWS = 2;
const RESULTS = new Set(["completed", "failed", "interrupted", "cancelled"]);

export function text(event: LogEvent, name: string): string {
  const value = event.data[name];
  return typeof value === "string" ? value : "";
}

export function number(event: LogEvent, name: string): number {
  const value = event.data[name];
  return typeof value === "number" ? value : -1;
}

/** Builds the spans in one pass over the log. */
class Weaver {
  readonly spans: Span[] = [];
  readonly turns: Turn[] = [];
  #speech: Span | null = null;
  #thinking: Span | null = null;
  #worker: Span | null = null;
  #client: Span | null = null;
  #who: Span | null = null;
  #handoff: Span | null = null;
  readonly #speaking = new Map<number, Span>();
  readonly #calls = new Map<string, Span>();
  readonly #asked = new Map<number, { at: number; typed: boolean }>();
  readonly #rows: number[] = Array.from({ length: TOOL_ROWS }, () => Number.NEGATIVE_INFINITY);

  #open(span: Omit<Span, "to" | "row">, row = 0): Span {
    const opened = { ...span, row, to: Number.NaN };
    this.spans.push(opened);
    return opened;
  }

  #think(at: number): void {
    this.#thinking ??= this.#open({ lane: "Agent", from: at, label: "Thinking", kind: "thinking" });
  }

  #stopThinking(at: number): void {
    if (this.#thinking !== null) this.#thinking.to = at;
    this.#thinking = null;
  }

  take(event: LogEvent, at: number): void {
    switch (event.type) {
      case "speech.started":
        this.#stopThinking(at);
        this.#speech = this.#open({ lane: "You", from: at, label: "", kind: "speech" });
        break;
      case "speech.ended":
        if (this.#speech !== null) this.#speech.to = at;
        this.#think(at);
        break;
      case "user.said":
        this.#say(event, at);
        break;
      case "playback.reported":
        this.#play(event, at);
        break;
      case "agent.said":
        this.#name(event);
        break;
      case "turn.completed":
        this.#stopThinking(at);
        this.#turn(event);
        break;
      case "session.ended":
        this.#stopThinking(at);
        this.#worker = close(this.#worker, at);
        this.#client = close(this.#client, at);
        this.#who = close(this.#who, at);
        this.#handoff = close(this.#handoff, at);
        break;
      default:
        this.#takeOther(event, at);
    }
  }

  #takeOther(event: LogEvent, at: number): void {
    switch (event.type) {
      case "session.owned":
        close(this.#worker, at);
        this.#worker = this.#open({ lane: "Worker", from: at, label: text(event, "worker"), kind: "held", note: `term ${number(event, "term")}` });
        break;
      case "session.restored":
        this.#restored(event, at);
        break;
      case "session.released":
        this.#worker = close(this.#worker, at);
        break;
      case "client.connected":
        close(this.#client, at);
        this.#client = this.#open({ lane: "Client", from: at, label: text(event, "gateway"), kind: "connected", note: text(event, "connection") });
        break;
      case "client.disconnected":
        if (this.#client?.note === text(event, "connection")) this.#client = close(this.#client, at);
        break;
      case "session.started":
        this.#who = this.#speaker(text(event, "agent"), event, at);
        break;
      case "handoff.started":
        close(this.#handoff, at);
        this.#handoff = this.#open({ lane: "Who", from: at, label: `to ${agentName(text(event, "target"))}`, kind: "handoff", note: text(event, "reason") });
        break;
      case "handoff.completed":
        this.#who = close(this.#who, this.#handoff?.from ?? at);
        this.#handoff = close(this.#handoff, at);
        this.#who = this.#speaker(text(event, "target"), event, at);
        break;
      default:
        this.#takeTool(event, at);
    }
  }

  /** Whoever has no name is known by the model. */
  #speaker(agent: string, event: LogEvent, at: number): Span | null {
    const [voice, model] = [text(event, "voice"), text(event, "model")];
    if (agent === "" && model === "") return null;
    const note = [voice === "" ? "" : `voice ${voice}`, agent === "" ? "" : model].filter((part) => part !== "").join(" · ");
    return this.#open({ lane: "Who", from: at, label: agent === "" ? model : agentName(agent), kind: "heard", note });
  }

  /** The worker before was gone for so long when the next one took over. */
  #restored(event: LogEvent, at: number): void {
    if (text(event, "worker") === "") return; // only the model's connection was opened anew
    const before = this.spans.findLast((span) => span.lane === "Worker" && span !== this.#worker);
    const gone = at - Math.max(0, number(event, "gap_ms"));
    if (before !== undefined) before.to = Math.max(before.from, Math.min(before.to, gone));
  }

  #say(event: LogEvent, at: number): void {
    const typed = event.data["source"] === "text";
    this.#asked.set(number(event, "turn"), { at, typed });
    if (this.#speech !== null && !typed) {
      this.#speech.label = text(event, "text");
      if (Number.isNaN(this.#speech.to)) this.#speech.to = at;
      this.#speech = null;
    } else {
      const said = this.#open({ lane: "You", from: at, label: text(event, "text"), kind: "typed" });
      said.to = at;
    }
    this.#think(at);
  }

  #play(event: LogEvent, at: number): void {
    const generation = number(event, "generation");
    let span = this.#speaking.get(generation);
    if (span === undefined) {
      if (number(event, "played_ms") <= 0 && event.data["state"] !== "playing") return;
      this.#stopThinking(at);
      span = this.#open({ lane: "Agent", from: at, label: "", kind: "speaking" });
      this.#speaking.set(generation, span);
    }
    if (event.data["state"] !== "playing") {
      span.to = at;
      if (event.data["state"] === "flushed") span.kind = "cut";
    }
  }

  #name(event: LogEvent): void {
    const span = this.#speaking.get(number(event, "generation"));
    if (span !== undefined) span.label = text(event, "text");
    const unheard = text(event, "unheard");
    if (span !== undefined && unheard !== "") span.note = `not heard: ${unheard}`;
  }

  #turn(event: LogEvent): void {
    const turn = number(event, "number");
    const asked = this.#asked.get(turn);
    const latency = latencyOf(event);
    const bars = stages(latency);
    if (asked === undefined || bars.length === 0) return;
    // What was said is in the log once it was both heard out and understood.
    const from = asked.typed ? asked.at : asked.at - Math.max(latency.end_of_turn ?? 0, latency.stt_final ?? 0);
    this.turns.push({ number: turn, from, latency });
    for (const [row, bar] of bars.entries()) {
      const span = this.#open({ lane: "Latency", from: from + bar.from, label: bar.name, kind: "stage", note: `${duration(bar.to - bar.from)} · turn ${turn}` }, row);
      span.to = from + bar.to;
    }
  }

  #takeTool(event: LogEvent, at: number): void {
    const found = workOf(event);
    if (found === null) return;
    const { id, kind, label, outcome } = found;
    if (outcome === "") {
      const free = this.#rows.findIndex((until) => until <= at);
      const row = free < 0 ? this.#rows.indexOf(Math.min(...this.#rows)) : free;
      this.#rows[row] = Number.POSITIVE_INFINITY;
      this.#calls.set(id, this.#open({ lane: "Tools", from: at, label, kind, note: label.endsWith("?") ? "waits for approval" : "running" }, row));
      return;
    }
    const span = this.#calls.get(id);
    if (span === undefined || !Number.isNaN(span.to)) return;
    span.to = at;
    this.#rows[span.row] = at;
    span.note = outcome;
    if (RESULTS.has(outcome) && outcome !== "completed") span.kind = "failed";
  }
}

interface Work {
  id: string;
  kind: "tool" | "task";
  label: string;
  /** Empty where it begins. */
  outcome: string;
}

/** What an event begins or ends: a call, a task, a request for approval, a step of a run. */
function workOf(event: LogEvent): Work | null {
  const [family, verb = ""] = event.type.split(".");
  const made = (id: string, kind: Work["kind"], label: string, begins: boolean, outcome: string): Work | null =>
    begins || outcome !== "" ? { id: `${family}:${id}`, kind, label, outcome: begins ? "" : outcome } : null;
  const ended = RESULTS.has(verb) ? verb : "";
  if (family === "tool") return made(text(event, "call_id"), "tool", functionName(text(event, "name")), verb === "called", ended);
  if (family === "task") return made(text(event, "task_id"), "task", functionName(text(event, "function")), verb === "started", ended);
  if (family === "approval") return made(text(event, "approval_id"), "task", `${functionName(text(event, "name"))}?`, verb === "requested", verb === "ended" ? text(event, "outcome") : "");
  if (family !== "run" || !verb.startsWith("step_")) return null;
  const step = text(event, "step");
  const outcome = verb.slice("step_".length);
  return made(`${text(event, "run_id")} ${step} ${number(event, "attempt")}`, "tool", step, outcome === "started", RESULTS.has(outcome) ? outcome : "");
}

function close(span: Span | null, at: number): null {
  if (span !== null && Number.isNaN(span.to)) span.to = at;
  return null;
}

export function latencyOf(event: LogEvent): Latency {
  const given = event.data["latency"];
  if (typeof given !== "object" || given === null) return {};
  const stamped = given as Record<string, unknown>;
  return Object.fromEntries(STAMPS.flatMap((stamp) => (typeof stamped[stamp] === "number" ? [[stamp, stamped[stamp]]] : [])));
}

/** What the turns cost that are over: tokens, in and out, and millionths of a US$. */
export function spentIn(events: readonly LogEvent[]): { tokens: number; microdollars: number } {
  const used = events.filter(({ type }) => type === "turn.completed" || type === "session.ended").map(({ data }) => (data["usage"] ?? {}) as Record<string, number>);
  const sum = (name: string): number => used.reduce((total, usage) => total + (usage[name] ?? 0), 0);
  return { tokens: sum("input_tokens") + sum("output_tokens"), microdollars: sum("microdollars") };
}

/** Lay out a session's events, which are in the order of the log. What has no end yet lasts until the end, `since` ms after the last event. */
export function layout(events: readonly LogEvent[], since = 0): Timeline {
  const first = events.reduce((least, { ts }) => Math.min(least, ts), Number.POSITIVE_INFINITY);
  const start = Number.isFinite(first) ? first : 0;
  const times = events.map(({ ts }) => (ts - start) / 1000);
  const end = Math.max(1000, times.reduce((most, time) => Math.max(most, time), 0) + since);
  const weaver = new Weaver();
  const marks = events.map((event, index) => {
    const at = times[index] as number;
    weaver.take(event, at);
    return { at, index, failed: event.type === "provider.failed" || event.type === "provider.lost" || /[._]failed$/.test(event.type) };
  });
  for (const span of weaver.spans) if (Number.isNaN(span.to)) span.to = end;
  return { spans: weaver.spans, marks, turns: weaver.turns, times, start, end };
}

/** The index of the last event at or before `at`; -1 where none is. Times grow with the log, but for a clock's jitter. */
export function lastBefore(times: readonly number[], at: number): number {
  return times.findLastIndex((time) => time <= at + 0.5);
}

/** The state that the session was in after the events up to `index`, as far as the facts tell. */
export function stateAt(events: readonly LogEvent[], index: number): string {
  let connected = false;
  for (let i = index; i >= 0; i--) {
    const { type, data } = events[i] as LogEvent;
    if (type === "provider.connected" || type === "handoff.completed" || type === "provider.failed") connected = true;
    if (type === "provider.lost" && !connected) return "restoring";
    if (type === "session.ended" || type === "session.erased") return "ended";
    if (type === "session.released") return "restoring";
    if (type === "speech.started") return "user_speaking";
    if (type === "tool.called") return "calling_tool";
    if (type === "playback.reported") return data["state"] === "playing" ? "speaking" : "listening";
    if (type === "speech.ended" || type === "user.said" || type === "tool.completed" || type === "tool.failed") return "thinking";
    if (type === "turn.completed" || type === "session.started") return "listening";
  }
  return "connecting";
}

/** Round steps for a time axis, in ms, so that labels are at least `minimum` pixels apart. */
export function ticks({ from, to }: View, width: number, minimum = 90): number[] {
  const least = ((to - from) * minimum) / Math.max(1, width);
  const step = STEPS.find((candidate) => candidate >= least) ?? Math.ceil(least / 3_600_000) * 3_600_000;
  const first = Math.ceil(from / step) * step;
  return Array.from({ length: Math.max(0, Math.floor((to - first) / step) + 1) }, (_, i) => first + i * step);
}

/** Seconds and minutes count by sixties, so steps above a second are those of a clock. */
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...[1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600].map((s) => s * 1000)];
