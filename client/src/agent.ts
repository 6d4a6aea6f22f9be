/**
 * A voice agent in a page: one call at a time, from the click to the last word.
 * Owns the wiring of socket, sound and state. Does not own the session: that lives in the log, and goes on without this page
 * until the gateway says otherwise. Building one touches neither `window` nor any device, so a server may render with it.
 */
import { SoundDevice } from "./audio/device";
import type { FromCapture, FromPlayback, FromWorker } from "./audio/messages";
import type { PlaybackReport } from "./audio/playback-queue";
import { Connection, socketUrl } from "./connection";
import { AgentError, describeClose } from "./errors";
import { Emitter, type Unsubscribe } from "./events";
import { Probe } from "./probe";
import { type ClientMessage, decode, type Json, type Mode, type ServerMessage, SUBPROTOCOL } from "./protocol";
import { disconnected, INITIAL, receive, type Snapshot, typed } from "./state";

export type Tool = (args: Json) => Json | Promise<Json>;

export interface VoiceAgentOptions {
  /** The gateway, as `wss://host` or `https://host`; the page's own by default. */
  url?: string;
  /** `local` by default. */
  mode?: Mode;
  model?: string;
  voice?: string;
  systemPrompt?: string;
  /** False for a conversation in text; or constraints beside echo cancellation, noise suppression and gain control, which are on. */
  microphone?: boolean | MediaTrackConstraints;
  /** Play into the AudioContext's destination instead of an `<audio>` element. */
  directOutput?: boolean;
  /** Start muted; the microphone is open while `pushToTalk(true)` holds. */
  pushToTalk?: boolean;
  /** What the page itself answers, by function name. */
  tools?: Record<string, Tool>;
  /** Keep copies of samples and marks for measurements (docs/studio.md). */
  probe?: boolean;
}

export interface Levels {
  /** Root mean square, 0 to 1. */
  input: number;
  output: number;
  /** Milliseconds of speech waiting to be played, and how often there was too little. */
  queuedMs: number;
  underruns: number;
}

export type AgentEvents = {
  [Message in ServerMessage as Message["type"]]: Message;
} & {
  change: Snapshot;
  levels: Levels;
  playback: PlaybackReport;
  failure: AgentError;
  devices: undefined;
};

const TOOL_FAILED = "The page's function failed";

export class VoiceAgent {
  readonly levels = { subscribe: (listener: (levels: Levels) => void): Unsubscribe => this.on("levels", listener) };
  readonly probe: Probe | null;
  readonly #emitter = new Emitter<AgentEvents>();
  #options: VoiceAgentOptions;
  #snapshot: Snapshot = INITIAL;
  #connection: Connection | null = null;
  #sound: SoundDevice | null = null;
  #levels: Levels = { input: 0, output: 0, queuedMs: 0, underruns: 0 };
  #settle: { resolve: () => void; reject: (error: AgentError) => void } | null = null;
  #ending = false;
  #volume = 1;
  #held = false;

  constructor(options: VoiceAgentOptions = {}) {
    this.#options = options;
    this.probe = options.probe === true ? new Probe() : null;
  }

  /** An agent whose call is up. Rejects with an `AgentError`. */
  static async start(options: VoiceAgentOptions = {}): Promise<VoiceAgent> {
    const agent = new VoiceAgent(options);
    await agent.start();
    return agent;
  }

  /** The same object until something changes. */
  readonly getSnapshot = (): Snapshot => this.#snapshot;
  readonly subscribe = (listener: () => void): Unsubscribe => this.on("change", listener);

  on<Name extends keyof AgentEvents>(name: Name, listener: (event: AgentEvents[Name]) => void): Unsubscribe {
    return this.#emitter.on(name, listener);
  }

  #set(change: Partial<Snapshot>): void {
    this.#become({ ...this.#snapshot, ...change });
  }

  #become(snapshot: Snapshot): void {
    if (snapshot === this.#snapshot) return;
    this.#snapshot = snapshot;
    this.#emitter.emit("change", snapshot);
  }

  #fail(error: AgentError): void {
    const { code, message, action, retryable } = error;
    this.#set({ error: { code, message, action, retryable } });
    this.#emitter.emit("failure", error);
  }

  get #inCall(): boolean {
    return this.#snapshot.connection === "connecting" || this.#snapshot.connection === "connected";
  }

  /** Begin a call, within a click. Resolves when the session is set up. Options given here replace those of before. */
  async start(options: VoiceAgentOptions = {}): Promise<void> {
    if (this.#inCall) throw new AgentError({ code: "CONFLICT", message: "A call is under way.", action: "End it first.", retryable: false });
    this.#options = { ...this.#options, ...options };
    this.#ending = false;
    this.probe?.clear();
    const wantsMicrophone = this.#options.microphone !== false;
    this.#become({ ...INITIAL, connection: "connecting", state: "connecting", microphone: wantsMicrophone ? "asking" : "off", pushToTalk: this.#options.pushToTalk ?? false });
    const settled = new Promise<void>((resolve, reject) => (this.#settle = { resolve, reject }));
    const connection = new Connection(socketUrl(this.#options.url, location.href), (message) => {
      if (connection === this.#connection) this.#onSocket(message);
    });
    this.#connection = connection;
    try {
      await this.#open(connection, wantsMicrophone);
    } catch (cause) {
      // A call that was ended while the browser asked is over already, and another may have begun.
      if (connection === this.#connection) this.#abandon(cause instanceof AgentError ? cause : AgentError.of("UNSUPPORTED_BROWSER", String(cause)));
    }
    return settled;
  }

  async #open(connection: Connection, wantsMicrophone: boolean): Promise<void> {
    const { microphone } = this.#options;
    const constraints = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };
    const sound = new SoundDevice(
      { directOutput: this.#options.directOutput ?? false, constraints: { ...constraints, ...(typeof microphone === "object" ? microphone : {}) } },
      {
        capture: (message) => this.#onCapture(message),
        playback: (message) => this.#onPlayback(message),
        blocked: (audioBlocked) => this.#set({ audioBlocked }),
        microphoneLost: () => this.#onMicrophoneLost(),
        devicesChanged: () => this.#emitter.emit("devices", undefined),
      },
    );
    this.#sound = sound;
    if (wantsMicrophone) await sound.openMicrophone(connection.line("capture"));
    if (this.#connection !== connection) return;
    await sound.openLoudspeaker(connection.line("playback"));
    if (this.#connection !== connection) return;
    sound.setVolume(this.#volume);
    if (this.probe !== null) sound.tap(true);
    if (wantsMicrophone) this.#setMuted(this.#snapshot.pushToTalk);
    connection.open();
  }

  #send(message: ClientMessage): void {
    this.#connection?.send(message);
  }

  #onSocket(message: FromWorker): void {
    if (message.type === "open") {
      if (message.protocol !== SUBPROTOCOL) {
        this.#abandon(AgentError.of("CONNECTION_FAILED", `the gateway does not speak ${SUBPROTOCOL}`));
        return;
      }
      const { mode = "local", model, voice, systemPrompt } = this.#options;
      this.#send({ type: "start", mode, ...(model ? { model } : {}), ...(voice ? { voice } : {}), ...(systemPrompt ? { systemPrompt } : {}) });
    } else if (message.type === "message") {
      this.#onMessage(message.text);
    } else {
      this.#onClose(message.code, message.reason);
    }
  }

  #onMessage(text: string): void {
    const message = decode(text);
    if (message === null) return;
    if ("fault" in message) {
      this.#fail(AgentError.of("INVALID_MESSAGE", message.fault));
      return;
    }
    this.#become(receive(this.#snapshot, message, performance.now()));
    if (message.type === "setup_complete") {
      this.#connection?.microphone(this.#snapshot.microphone === "on");
      this.#settle?.resolve();
      this.#settle = null;
    } else if (message.type === "error") {
      const error = new AgentError(this.#snapshot.error ?? AgentError.of("CONNECTION_FAILED"));
      this.#emitter.emit("failure", error);
      if (this.#settle !== null) this.#abandon(error);
    } else if (message.type === "function_call" && !message.server_handled) {
      void this.#answer(message);
    }
    this.#emitter.emit(message.type, message);
  }

  async #answer(call: Extract<ServerMessage, { type: "function_call" }>): Promise<void> {
    const tool = this.#options.tools?.[call.name];
    let result: Json;
    try {
      result = tool === undefined ? { success: false, error: `This page has no function ${call.name}.` } : await tool(call.args);
    } catch (cause) {
      result = { success: false, error: `${TOOL_FAILED}: ${cause instanceof Error ? cause.message : String(cause)}` };
    }
    this.#send({ type: "browser_function_result", name: call.name, result, ...(call.fn_call_id === undefined ? {} : { fn_call_id: call.fn_call_id }) });
  }

  #onClose(code: number, reason: string): void {
    const ended = this.#ending || this.#snapshot.state === "ended" || code === 1000;
    const starting = this.#settle !== null;
    const closed = starting && !ended
      ? { code, reason: "The gateway could not be reached.", retryable: true, ended: false }
      : describeClose(code, reason, ended);
    const cause = this.#snapshot.error !== null && !ended;
    const error = ended || cause ? null : AgentError.of(starting ? "CONNECTION_FAILED" : "CONNECTION_LOST");
    this.#release();
    this.#become(disconnected(this.#snapshot, closed, error));
    if (error !== null) this.#emitter.emit("failure", error);
    this.#settle?.reject(error ?? AgentError.of("CANCELLED"));
    this.#settle = null;
  }

  /** The call did not come about: `error` says why. */
  #abandon(error: AgentError): void {
    this.#connection?.close();
    this.#release();
    const closed = { code: 0, reason: error.message, retryable: error.retryable, ended: false };
    this.#become(disconnected(this.#snapshot, closed, { code: error.code, message: error.message, action: error.action, retryable: error.retryable }));
    this.#settle?.reject(error);
    this.#settle = null;
  }

  #release(): void {
    this.#connection?.dispose();
    this.#connection = null;
    void this.#sound?.close();
    this.#sound = null;
    this.#held = false;
    this.#levels = { input: 0, output: 0, queuedMs: 0, underruns: 0 };
    this.#emitter.emit("levels", this.#levels);
  }

  #onCapture(message: FromCapture): void {
    this.probe?.capture(message);
    if (message.type !== "level") return;
    this.#levels = { ...this.#levels, input: message.level };
    this.#emitter.emit("levels", this.#levels);
  }

  #onPlayback(message: FromPlayback): void {
    this.probe?.playback(message);
    if (message.type === "playback") {
      this.#emitter.emit("playback", message.report);
    } else if (message.type === "level") {
      this.#levels = { ...this.#levels, output: message.level, queuedMs: message.queuedMs, underruns: message.underruns };
      this.#emitter.emit("levels", this.#levels);
    }
  }

  #onMicrophoneLost(): void {
    this.#setMuted(true);
    this.#fail(AgentError.of("MIC_LOST"));
  }

  #setMuted(muted: boolean): void {
    const was = this.#snapshot.microphone;
    this.#sound?.setMuted(muted);
    this.#connection?.microphone(!muted && this.#snapshot.connection === "connected");
    this.#set({ microphone: muted ? "muted" : "on" });
    if (muted && was === "on" && this.#snapshot.connection === "connected") this.#send({ type: "audio_end" });
  }

  /** Close or open the microphone; without one this does nothing. */
  mute(muted: boolean): void {
    const { microphone } = this.#snapshot;
    if (microphone === "on" || microphone === "muted") this.#setMuted(muted);
  }

  /** Hold the microphone open, and release it: the release ends the turn at once. Open or muted as before, afterwards. */
  pushToTalk(held: boolean): void {
    const { microphone } = this.#snapshot;
    if (held === this.#held || (microphone !== "on" && microphone !== "muted")) return;
    this.#held = held;
    if (held) {
      this.#set({ pushToTalk: microphone === "muted" });
      this.#setMuted(false);
    } else if (this.#snapshot.pushToTalk) {
      this.#setMuted(true);
    } else {
      this.#send({ type: "audio_end" });
    }
  }

  /** Stop the agent's speech now. */
  interrupt(): void {
    this.#sound?.hush();
    this.#send({ type: "interrupt" });
  }

  /** Say something by keyboard; without a call, one begins, in text. */
  async sendText(text: string): Promise<void> {
    const trimmed = text.trim();
    if (trimmed === "") return;
    if (!this.#inCall) await this.start({ microphone: false });
    this.#become(typed(this.#snapshot, trimmed));
    this.#send({ type: "text", text: trimmed });
  }

  /** How loud the agent is, 0 to 1. It is said to be heard even at 0. */
  setVolume(volume: number): void {
    this.#volume = Math.max(0, Math.min(1, volume));
    this.#sound?.setVolume(this.#volume);
  }

  /** Listen to another microphone; ids come from `navigator.mediaDevices.enumerateDevices()`. */
  async setDevice(deviceId: string): Promise<void> {
    await this.#sound?.setDevice(deviceId);
  }

  /** The person has read the error. */
  clearError(): void {
    this.#set({ error: null });
  }

  /** Start the sound again where the browser stopped it; call it within a click. */
  async resumeAudio(): Promise<void> {
    await this.#sound?.resume();
  }

  /** The rate in Hz and the clock in seconds of the sound device, or null outside a call. */
  get audioClock(): { rate: number; time: number } | null {
    const context = this.#sound?.context;
    return context === undefined ? null : { rate: context.sampleRate, time: context.currentTime };
  }

  /** End the call. The server answers with the reason and closes; without an answer within 2 s the page closes. */
  end(): void {
    if (!this.#inCall || this.#ending) return;
    this.#ending = true;
    if (this.#settle !== null) {
      this.#onClose(1000, "");
      return;
    }
    this.#sound?.hush();
    this.#send({ type: "end" });
    const connection = this.#connection;
    setTimeout(() => {
      if (connection !== null && this.#connection === connection) this.#onClose(1000, "");
    }, 2000);
  }
}
