/**
 * One conversation by voice and in text: the microphone opens in the middle of a call and closes again, and the model may ask for either.
 * Owns the switch, and the request that waits for it. A microphone that is refused leaves the conversation in text, with the reason.
 */
import type { AgentAudio } from "../audio/agent-audio";
import { AgentError } from "../errors";
import type { Json } from "../socket/protocol";
import type { Tools } from "../tools";
import { type CallCore, fields } from "./core";
import type { CallMicrophone } from "./microphone";

/** Characters of a request that waits for the voice conversation. */
export const PENDING_LIMIT = 200;
/** How long the switch waits for the words that announce it, in ms. */
export const ANNOUNCED_MS = 4_000;

export class CallTalking {
  #pending = "";
  /** What begins when the agent has said that it will, and the end of the wait for that. */
  #due: { work: () => void; stop: () => void } | null = null;

  constructor(
    private readonly core: CallCore,
    private readonly audio: AgentAudio,
    private readonly microphone: CallMicrophone,
    private readonly say: (text: string) => void,
  ) {}

  /** Whether the person talks; a microphone that is asked for does not count yet. */
  get byVoice(): boolean {
    const { microphone } = this.core.snapshot;
    return microphone === "on" || microphone === "muted";
  }

  /** What the page answers a model that asks for voice or text. */
  readonly tools: Tools = {
    start_voice_session: (args: Json) => this.#askedForVoice(args["pending_request"]),
    end_voice_session: () => this.#askedForText(),
  };

  /** Open the microphone of a call, within a click; replies are spoken from here on. Rejects where the browser gives none. */
  async start(): Promise<void> {
    this.#cancel();
    try {
      await this.#open();
    } finally {
      this.#answerPending(); // also where a click came before the agent had said that it will
    }
  }

  async #open(): Promise<void> {
    const { core, audio } = this;
    const { connection } = core;
    if (connection === null || audio.device === null || core.snapshot.microphone !== "off") return;
    core.set({ microphone: "asking", error: null });
    try {
      await audio.openMicrophone(audio.device, connection);
    } catch (cause) {
      if (connection !== core.connection) return;
      core.set({ microphone: "off" });
      const error = cause instanceof AgentError ? cause : AgentError.of("MIC_IN_USE", String(cause));
      core.fail(error);
      throw error;
    }
    if (connection !== core.connection) return;
    this.microphone.set(core.snapshot.pushToTalk);
    audio.silence(false);
    core.send({ type: "output", output: "audio" });
  }

  /** Close the microphone; replies are written from here on, and what is being said stops. */
  end(): void {
    this.#cancel();
    if (!this.byVoice) return;
    this.microphone.close();
    this.audio.device?.hush();
    this.audio.silence(true);
    this.core.send({ type: "output", output: "text" });
  }

  /** The voice is away, so the server goes on in text: the microphone closes, and the page says why. */
  away(reason: string): void {
    this.end();
    this.core.fail(new AgentError({ ...fields(AgentError.of("VOICE_AWAY")), message: reason }));
  }

  /** The call is over. */
  clear(): void {
    this.#cancel();
    this.#pending = "";
  }

  /** The agent has come to rest: what waits for its words begins. */
  rested(): void {
    const due = this.#due;
    this.#cancel();
    due?.work();
  }

  #askedForVoice(pending: unknown): Json {
    if (this.byVoice) return refused("start_voice_session", "text");
    const request = typeof pending === "string" ? pending.trim() : "";
    if (request.length > PENDING_LIMIT) {
      return failed("INVALID_ARGUMENT", `pending_request has at most ${PENDING_LIMIT} characters`);
    }
    if (request !== "") this.#pending = request;
    this.#whenSaid(() => void this.start().catch(() => undefined)); // the snapshot's error says why
    return { ok: true, data: { voice_session_requested: true, pending_request: request || null, message: "Voice session will be activated by client" } };
  }

  #askedForText(): Json {
    if (!this.byVoice) return refused("end_voice_session", "voice");
    this.#whenSaid(() => this.end());
    return { ok: true, data: { voice_session_ended: true, message: "Voice session will be ended by client" } };
  }

  /** What was asked for besides is answered first: by voice, or in text where there is no microphone. */
  #answerPending(): void {
    const pending = this.#pending;
    this.#pending = "";
    if (pending !== "") this.say(pending);
  }

  /** Do this when the model has said that it will, and at the latest in a moment. */
  #whenSaid(work: () => void): void {
    this.#cancel();
    this.#due = { work, stop: this.core.platform.later(ANNOUNCED_MS, () => this.rested()) };
  }

  #cancel(): void {
    this.#due?.stop();
    this.#due = null;
  }
}

function failed(type: string, message: string): Json {
  return { ok: false, success: false, error: { type, message, retryable: false } };
}

function refused(name: string, mode: "text" | "voice"): Json {
  return failed("MODE_RESTRICTED", `${name} only available in ${mode} mode`);
}
