/**
 * A session's events as lanes over one clock. Pure: events in, spans and marks in ms since the first event out.
 * Owns what becomes a span and where; canvas and pointer know only what comes out of here.
 */
import type { LogEvent } from "./api";

export interface View {
  /** Milliseconds since the first event. */
  from: number;
  to: number;
}

export type LaneName = "You" | "Agent" | "Tools" | "gateway" | "voice" | "tools";
export const LANES: readonly LaneName[] = ["You", "Agent", "Tools", "gateway", "voice", "tools"];

export interface Span {
  lane: LaneName;
  from: number;
  to: number;
  label: string;
  kind: "speech" | "typed" | "thinking" | "speaking" | "cut" | "tool" | "task" | "failed";
}

export interface Mark {
  lane: LaneName;
  at: number;
  index: number;
  quiet: boolean;
}

export interface Timeline {
  spans: Span[];
  marks: Mark[];
  /** Of each event, in the order of the log. */
  times: number[];
  end: number;
}

function text(event: LogEvent, name: string): string {
  const value = event.data[name];
  return typeof value === "string" ? value : "";
}

function number(event: LogEvent, name: string): number {
  const value = event.data[name];
  return typeof value === "number" ? value : -1;
}

/** Builds the spans in one pass over the log. */
class Weaver {
  readonly spans: Span[] = [];
  #speech: Span | null = null;
  #thinking: Span | null = null;
  readonly #speaking = new Map<number, Span>();
  readonly #calls = new Map<string, Span>();

  #open(span: Omit<Span, "to">): Span {
    const opened = { ...span, to: Number.NaN };
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
      case "session.ended":
        this.#stopThinking(at);
        break;
      default:
        this.#takeTool(event, at);
    }
  }

  #say(event: LogEvent, at: number): void {
    if (this.#speech !== null && event.data["source"] !== "text") {
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
  }

  #takeTool(event: LogEvent, at: number): void {
    const [family, verb] = event.type.split(".");
    if (family !== "tool" && family !== "task") return;
    const id = `${family}:${text(event, family === "tool" ? "call_id" : "task_id")}`;
    if (event.type === "tool.called" || event.type === "task.started") {
      const name = text(event, family === "tool" ? "name" : "function");
      this.#calls.set(id, this.#open({ lane: "Tools", from: at, label: name, kind: family }));
    } else if (verb === "completed" || verb === "failed" || verb === "interrupted" || verb === "cancelled") {
      const span = this.#calls.get(id);
      if (span === undefined) return;
      span.to = at;
      if (verb !== "completed") span.kind = "failed";
    }
  }
}

/** Lay out a session's events, which are in the order of the log. What has no end yet lasts until the end. */
export function layout(events: readonly LogEvent[]): Timeline {
  const start = events.reduce((least, { ts }) => Math.min(least, ts), Number.POSITIVE_INFINITY);
  const times = events.map(({ ts }) => (ts - start) / 1000);
  const end = times.reduce((most, time) => Math.max(most, time), 1000);
  const weaver = new Weaver();
  const marks: Mark[] = [];
  events.forEach((event, index) => {
    const at = times[index] as number;
    weaver.take(event, at);
    const lane = LANES.find((name) => name === event.writer);
    if (lane !== undefined) marks.push({ lane, at, index, quiet: event.type === "journal" });
  });
  for (const span of weaver.spans) if (Number.isNaN(span.to)) span.to = end;
  return { spans: weaver.spans, marks, times, end };
}

/** The index of the last event at or before `at`; -1 where none is. Times grow with the log, but for a clock's jitter. */
export function lastBefore(times: readonly number[], at: number): number {
  return times.findLastIndex((time) => time <= at + 0.5);
}

/** The state that the session was in after the events up to `index`. */
export function stateAt(events: readonly LogEvent[], index: number): string {
  for (let i = index; i >= 0; i--) {
    const { type, data } = events[i] as LogEvent;
    if (type === "session.ended") return "ended";
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
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= least) ?? power * 10;
  const first = Math.ceil(from / step) * step;
  return Array.from({ length: Math.max(0, Math.floor((to - first) / step) + 1) }, (_, i) => first + i * step);
}
