/**
 * What a page with a key says first, and where: its agent and the handlers of its tools, which run on the server.
 * Owns the form of a handler on the wire: the text of its function. Pure.
 */
import { AgentError, type AgentErrorFields } from "./errors";
import type { VoiceAgentOptions } from "./options";
import type { Configure, GivenTool } from "./session-messages";
import { socketUrl } from "./socket/socket-worker";
import type { Tools } from "./tools";

/** Where this file came from: the gateway, unless the page's own server or bundle has it. */
const SOURCE = import.meta.url;

/** The socket's address: that of the key's sessions on the gateway, or the page's own gateway without a key. */
export function callUrl({ url, apiKey }: VoiceAgentOptions, page: string): string {
  if (apiKey === undefined) return socketUrl(url, page);
  const base = url ?? (SOURCE.startsWith("http") ? new URL("/", SOURCE).href : page);
  const address = new URL(base, page);
  address.protocol = address.protocol.replace("http", "ws");
  if (address.pathname === "/") address.pathname = "/session";
  address.searchParams.set("key", apiKey);
  return address.href;
}

/** The `configure` of a page; without a microphone the conversation begins in text. */
export function configured(options: VoiceAgentOptions): Configure {
  const { instructions, greeting, voice, language, timeZone, speed, bargeInWords, filler, pushToTalk, tools = {}, microphone } = options;
  const wishes = Object.entries({ instructions, greeting, voice, language, timeZone, speed, bargeInWords, filler, pushToTalk });
  return {
    type: "configure",
    ...Object.fromEntries(wishes.filter(([, wish]) => wish !== undefined && wish !== "")),
    tools: handlers(tools),
    output: microphone === false ? "text" : "audio",
    modes: true,
  };
}

function handlers(tools: Tools): GivenTool[] {
  return Object.entries(tools).map(([name, tool]) => {
    const { description = "", parameters = null, handler = "" } = typeof tool === "function" ? {} : (tool as { description?: string; parameters?: Record<string, unknown>; handler?: unknown });
    return { name, description, parameters, handler: String(handler) };
  });
}

/** Why the gateway let no socket in: a browser does not tell, so the same address is asked over HTTP. Null where that says nothing either. */
export async function refusal(socket: string, cause: unknown): Promise<AgentErrorFields | null> {
  if (!(cause instanceof AgentError) || cause.code !== "CONNECTION_FAILED" || typeof document === "undefined") return null;
  const url = new URL(socket.replace(/^ws/, "http"));
  const violated: string[] = [];
  const onViolation = ({ effectiveDirective }: SecurityPolicyViolationEvent): void => void violated.push(effectiveDirective);
  document.addEventListener("securitypolicyviolation", onViolation);
  const answer = await fetch(url, { credentials: "omit" }).catch(() => null);
  await new Promise((resolve) => setTimeout(resolve)); // the browser tells of a violation in a task of its own
  document.removeEventListener("securitypolicyviolation", onViolation);
  if (violated.includes("connect-src")) {
    const hosts = `${url.origin} ${url.origin.replace(/^http/, "ws")}`;
    return { code: "BLOCKED_BY_POLICY", message: "This page’s content security policy lets it connect to no gateway.", action: `Add ${hosts} to its connect-src.`, retryable: false };
  }
  if (answer === null || answer.ok) return null;
  const told = (await answer.json().catch(() => null)) as { code?: unknown; message?: unknown; retryable?: unknown } | null;
  if (typeof told?.code !== "string" || typeof told.message !== "string") return null;
  const retryable = told.retryable === true;
  return { code: told.code, message: told.message, action: retryable ? "Try again in a moment." : "Tell the owner of this page.", retryable };
}
