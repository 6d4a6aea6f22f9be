/** Where a session stood still or broke, and why, from its facts. Pure. */
import { duration, providerName } from "../words";
import type { LogEvent } from "./api";
import { number, text, type Timeline } from "./layout";

export interface Gap {
  kind: "worker" | "client" | "model";
  from: number;
  to: number;
  title: string;
  /** Sentences: what happened, what became of it. */
  why: string[];
  index: number;
}

const PARTS: Record<string, string> = { stt: "Speech to text", turn: "The turn detector", llm: "The language model", tts: "The voice", vad: "The voice detector" };
const HOW: Record<string, string> = {
  handle: "It took up the model's own conversation where it was.",
  reseeded: "It folded the log, so the conversation went on with all of its history.",
  fresh: "The past could not be folded, so the model began afresh.",
};

const RESUMED: Record<string, string> = {
  handle: "It took up the conversation where it was.",
  seed: "It was told the conversation again from the log.",
  summary: "It was told a summary of the conversation.",
};

interface Away {
  at: number;
  index: number;
  reason: string;
}

/** What was seen of a session up to an event. */
interface Seen {
  owner: string;
  released: { at: number; reason: string } | null;
  away: Away | null;
  attached: { at: number; gateway: string } | null;
  ended: string | null;
  /** The connection to a realtime model that was lost, and the last gap of that kind. */
  lost: { at: number; index: number; event: LogEvent } | null;
  line: Gap | null;
}

/** The gaps of a session in the order of time. */
export function gaps(events: readonly LogEvent[], { times, end }: Timeline): Gap[] {
  const found: Gap[] = [];
  const seen: Seen = { owner: "", released: null, away: null, attached: null, ended: null, lost: null, line: null };
  for (const [index, event] of events.entries()) {
    const gap = take(seen, event, times[index] ?? 0, index);
    if (gap !== null) found.push(gap);
  }
  if (seen.lost !== null && end - seen.lost.at > 50) found.push({ ...lineGap(seen.lost, end, ""), why: ["It is being reopened."] });
  if (seen.away !== null && end - seen.away.at > 50) found.push(gone(seen.away, end, seen.ended));
  return found.sort((a, b) => a.from - b.from);
}

function take(seen: Seen, event: LogEvent, at: number, index: number): Gap | null {
  let gap: Gap | null = null;
  switch (event.type) {
    case "session.owned":
      if (seen.owner === "") seen.owner = text(event, "worker");
      break;
    case "session.released":
      seen.released = { at, reason: text(event, "reason") };
      break;
    case "provider.lost":
      seen.lost ??= { at, index, event };
      break;
    case "provider.connected":
      if (seen.lost !== null) gap = seen.line = lineGap(seen.lost, at, text(event, "resumed_by"));
      seen.lost = null;
      break;
    case "session.restored":
      if (text(event, "worker") === "") {
        seen.line?.why.push(...lostWords(event));
        break;
      }
      gap = workerGap(event, at, index, seen.owner, seen.released);
      seen.owner = text(event, "worker");
      seen.released = null;
      break;
    case "client.disconnected":
      seen.away ??= { at, index, reason: text(event, "reason") };
      seen.attached = null;
      break;
    case "client.connected":
      if (seen.away !== null) gap = clientGap(seen.away, at, event);
      else if (seen.attached !== null && event.data["resumed"] === true) gap = silentGap(seen.attached, at, index, event);
      seen.away = null;
      seen.attached = { at, gateway: text(event, "gateway") };
      break;
    case "provider.failed":
      gap = seen.lost !== null && text(event, "part") === "llm" ? lineGap(seen.lost, at, null) : modelGap(event, at, index);
      if (text(event, "part") === "llm") seen.lost = null;
      break;
    case "session.ended":
      seen.ended = text(event, "reason");
      break;
    default:
      if (event.writer === "gateway" && seen.attached !== null) seen.attached.at = at;
  }
  return gap;
}

function gone({ at, index, reason }: Away, end: number, ended: string | null): Gap {
  const over = ended === null ? "The session waits for it to come back." : `Nobody came back, and the session ended (${words(ended)}).`;
  return { kind: "client", from: at, to: end, index, title: "The client went away", why: [sentence(reason), over] };
}

function workerGap(event: LogEvent, at: number, index: number, owner: string, released: Seen["released"]): Gap {
  const gap = Math.max(0, number(event, "gap_ms"));
  const from = released?.at ?? at - gap;
  const taker = text(event, "worker");
  const was = owner === "" ? "The voice worker" : `The worker ${owner}`;
  const gone =
    released === null
      ? `${was} died or hung: its lease ran out, and ${taker} took the session over as term ${number(event, "term")} after ${duration(gap)}.`
      : `${was} was stopped (${words(released.reason)}) and gave the session up; ${taker} took it as term ${number(event, "term")} ${duration(at - from)} later.`;
  return {
    kind: "worker",
    from: Math.max(0, from),
    to: at,
    index,
    title: released === null ? "Worker lost" : "Worker stopped",
    why: [gone, HOW[text(event, "how")] ?? "", ...lostWords(event)].filter((line) => line !== ""),
  };
}

function lostWords(event: LogEvent): string[] {
  const lost = Array.isArray(event.data["lost"]) ? event.data["lost"].map(String) : [];
  return [lost.length === 0 ? "Nothing was lost." : `Lost: ${lost.join(" ")}`];
}

/** `by` is how the model knows the conversation; null where it was given up. */
function lineGap({ at, index, event }: NonNullable<Seen["lost"]>, to: number, by: string | null): Gap {
  const error = (event.data["error"] ?? {}) as Record<string, unknown>;
  const message = typeof error["message"] === "string" ? error["message"] : "It is not known why.";
  const name = providerName(text(event, "provider"));
  const back = by === null ? "It could not be recovered, and the agent said so." : `It was there again after ${duration(to - at)}. ${RESUMED[by] ?? ""}`.trim();
  return { kind: "model", from: at, to, index, title: `Connection to ${name} lost`, why: [sentence(message), back] };
}

function clientGap(away: Away, at: number, event: LogEvent): Gap {
  return {
    kind: "client",
    from: away.at,
    to: at,
    index: away.index,
    title: "Client cut off",
    why: [`${sentence(away.reason)} The client was back on ${text(event, "gateway")} after ${duration(at - away.at)}.`, missed(event)],
  };
}

/** The gateway said nothing when it died, so the last that it wrote is the last that is known of the socket. */
function silentGap(attached: { at: number; gateway: string }, at: number, index: number, event: LogEvent): Gap {
  return {
    kind: "client",
    from: attached.at,
    to: at,
    index,
    title: "Gateway lost",
    why: [
      `The socket on ${attached.gateway} was gone without a word, as when a gateway is killed or the network drops; ${text(event, "gateway")} took the client over.`,
      "The last sign of the socket before is where the gap begins.",
      missed(event),
    ],
  };
}

function missed(event: LogEvent): string {
  return event.data["resumed"] === true
    ? `It had seen everything up to position ${number(event, "last_seq")} and was told the rest in order.`
    : "It attached without asking for what it had missed.";
}

function modelGap(event: LogEvent, at: number, index: number): Gap {
  const error = (event.data["error"] ?? {}) as Record<string, unknown>;
  const message = typeof error["message"] === "string" ? error["message"] : "It did not say why.";
  return { kind: "model", from: at, to: at, index, title: `${PARTS[text(event, "part")] ?? "A model"} failed`, why: [sentence(message), consequence(event, error)] };
}

function consequence(event: LogEvent, error: Record<string, unknown>): string {
  if (event.data["handled"] === true) return text(event, "part") === "turn" ? "Only the silence showed that the turn was over." : "It was asked again, and the call waited for it.";
  return error["retryable"] === true ? "A retry may help: the agent said so and the call went on." : "The agent said so and the call went on.";
}

function words(name: string): string {
  return name.replaceAll("_", " ");
}

function sentence(said: string): string {
  const trimmed = said.trim();
  if (trimmed === "") return "It is not known why.";
  return `${trimmed.charAt(0).toUpperCase()}${trimmed.slice(1)}${/[.!?]$/.test(trimmed) ? "" : "."}`;
}
