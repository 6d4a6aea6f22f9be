/**
 * A voice agent in a page: one call at a time, from the click to the last word, over as many sockets as it takes.
 * Owns the wiring of socket, sound and state. Does not own the session: that lives in the log, and goes on without this page
 * until the gateway says otherwise. Building one touches neither `window` nor any device, so a server may render with it.
 */
import type { FromPlayback, FromWorker } from "./audio/messages";
import type { PlaybackReport } from "./audio/playback-queue";
import { WINDOW_MS } from "./resume/backoff";
import { socketUrl } from "./socket/socket-worker";
import { afterClose, AgentError, type AgentErrorFields, type Closed, describeClose, OVER, TAKEN_OVER } from "./errors";
import { Emitter, type Unsubscribe } from "./events";
import * as news from "./resume/news";
import type { VoiceAgentOptions } from "./options";
import type { Probe } from "./measuring/probe";
import { type ClientMessage, decode, type ServerMessage, SUBPROTOCOL } from "./socket/protocol";
import { Resumption } from "./resume/resumption";
import { type Levels, AgentAudio } from "./audio/agent-audio";
import { disconnected, INITIAL, receive, reconnecting, type Snapshot, typed } from "./state";
import { browser, type Platform, type Wire } from "./platform";
import type { ResumeTicket } from "./resume/resume-ticket";
import { declared, PageTools } from "./tools";

export type AgentEvents = {
  [Message in ServerMessage as Message["type"]]: Message;
} & {
  change: Snapshot;
  levels: Levels;
  playback: PlaybackReport;
  failure: AgentError;
  devices: undefined;
};

/** How long an end waits for the server's answer. */
const END_MS = 2_000;

export class VoiceAgent {
  readonly levels = { subscribe: (listener: (levels: Levels) => void): Unsubscribe => this.on("levels", listener) };
  readonly probe: Probe | null;
  readonly #emitter = new Emitter<AgentEvents>();
  readonly #platform: Platform;
  readonly #resumption: Resumption;
  readonly #audio: AgentAudio;
  readonly #tools: PageTools;
  #options: VoiceAgentOptions;
  #snapshot: Snapshot = INITIAL;
  #connection: Wire | null = null;
  #unwatch: Unsubscribe | null = null;
  #settle: { resolve: () => void; reject: (error: AgentError) => void } | null = null;
  /** What the gateway said before it closed the socket. */
  #refusal = "";
  #ending = false;
  #held = false;

  /** `platform` is the browser; only tests give another one. */
  constructor(options: VoiceAgentOptions = {}, platform: Platform = browser) {
    this.#options = options;
    this.#platform = platform;
    this.probe = options.probe ?? null;
    this.#resumption = new Resumption(platform);
    this.#audio = new AgentAudio(platform, this.probe, {
      levels: (levels) => this.#emitter.emit("levels", levels),
      playback: (message) => this.#onPlayback(message),
      blocked: (audioBlocked) => this.#set({ audioBlocked }),
      microphoneLost: () => this.#onMicrophoneLost(),
      devicesChanged: () => this.#emitter.emit("devices", undefined),
    });
    this.#tools = new PageTools(() => this.#options.tools, (answer) => {
      this.#become(receive(this.#snapshot, { ...answer, type: "function_result" }, platform.now())); // which nobody else tells
      this.#send(answer);
    }, platform.later);
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
    this.#set({ error: fields(error) });
    this.#emitter.emit("failure", error);
  }

  get #inCall(): boolean {
    return !["idle", "closed"].includes(this.#snapshot.connection);
  }

  /** Begin a call, within a click. Resolves when the session is set up. Options given here replace those of before. */
  async start(options: VoiceAgentOptions = {}): Promise<void> {
    if (this.#inCall) throw new AgentError({ code: "CONFLICT", message: "A call is under way.", action: "End it first.", retryable: false });
    this.#take(options);
    const wantsMicrophone = this.#options.microphone !== false;
    this.#resumption.reset();
    this.probe?.clear();
    this.#begin({ ...INITIAL, connection: "connecting", state: "connecting", microphone: wantsMicrophone ? "asking" : "off", pushToTalk: this.#options.pushToTalk ?? false });
    const settled = new Promise<void>((resolve, reject) => (this.#settle = { resolve, reject }));
    const connection = this.#connect(socketUrl(this.#options.url, this.#platform.page()));
    try {
      await this.#open(connection, wantsMicrophone);
    } catch (cause) {
      // A call that was ended while the browser asked is over already, and another may have begun.
      if (connection === this.#connection) this.#abandon(cause instanceof AgentError ? cause : AgentError.of("UNSUPPORTED_BROWSER", String(cause)));
    }
    return settled;
  }

  /**
   * Go on with the call that this tab had before the page was loaded anew, if there is one. Answers whether there is; the snapshot
   * tells what becomes of it.
   */
  resume(options: VoiceAgentOptions = {}): boolean {
    if (this.#inCall) return false;
    this.#take(options);
    const ticket = this.#resumption.find();
    if (ticket === null) return false;
    this.probe?.clear();
    this.#rejoin(ticket, { ...INITIAL, sessionId: ticket.sessionId, mode: ticket.mode }, "The page was loaded anew.");
    return true;
  }

  /** Take the call back from the window that took it over, within a click. */
  takeBack(): void {
    const { ticket } = this.#resumption;
    if (this.#snapshot.state === "elsewhere" && ticket !== null) this.#rejoin(ticket, { ...this.#snapshot, closed: null }, "Taking the call back.");
  }

  #take(options: VoiceAgentOptions): void {
    this.#options = { ...this.#options, ...options };
    this.#resumption.windowMs = this.#options.resumeWindow ?? WINDOW_MS;
  }

  #begin(snapshot: Snapshot): void {
    this.#ending = false;
    this.#refusal = "";
    this.#become(snapshot);
    this.#unwatch = this.#platform.watch({
      back: (network) => this.#onBack(network),
      offline: () => this.#onOffline(),
      leaving: () => this.#resumption.leave(),
    });
  }

  #connect(url: string): Wire {
    const connection = this.#platform.connect(url, (message) => {
      if (connection === this.#connection) this.#onSocket(message);
    });
    this.#connection = connection;
    return connection;
  }

  /** Sound and socket for a call that is there already. Without a microphone it goes on in text. */
  #rejoin(ticket: ResumeTicket, snapshot: Snapshot, reason: string): void {
    this.#begin(reconnecting({ ...snapshot, microphone: "off", pushToTalk: ticket.pushToTalk }, this.#resumption.joining(reason)));
    const connection = this.#connect(ticket.url);
    this.#rejoinSound(connection, ticket).catch((cause: unknown) => {
      if (connection === this.#connection) this.#fail(cause instanceof AgentError ? cause : AgentError.of("UNSUPPORTED_BROWSER", String(cause)));
    });
  }

  async #rejoinSound(connection: Wire, { microphone, pushToTalk }: ResumeTicket): Promise<void> {
    try {
      await this.#audio.openLoudspeaker(this.#openAudio(), connection);
    } finally {
      if (connection === this.#connection) connection.open(this.#hello());
    }
    const { device } = this.#audio;
    if (microphone === "off" || connection !== this.#connection || device === null) return;
    this.#set({ microphone: "asking" });
    try {
      await this.#audio.openMicrophone(device, connection);
    } catch (cause) {
      if (connection === this.#connection) this.#set({ microphone: "off" });
      throw cause;
    }
    if (connection === this.#connection) this.#setMuted(microphone === "muted" || pushToTalk);
  }

  #openAudio(): ReturnType<AgentAudio["open"]> {
    const { microphone, directOutput = false } = this.#options;
    return this.#audio.open(directOutput, typeof microphone === "object" ? microphone : {});
  }

  async #open(connection: Wire, wantsMicrophone: boolean): Promise<void> {
    const device = this.#openAudio();
    if (wantsMicrophone) await this.#audio.openMicrophone(device, connection);
    if (this.#connection !== connection) return;
    await this.#audio.openLoudspeaker(device, connection);
    if (this.#connection !== connection) return;
    if (wantsMicrophone) this.#setMuted(this.#snapshot.pushToTalk);
    connection.open(this.#hello());
  }

  /** The first message of a socket. */
  #hello(): ClientMessage {
    const { ticket } = this.#resumption;
    if (ticket !== null) return this.#resumption.hello(ticket);
    const { mode = "local", model, voice, systemPrompt, agent, output, record, filler, token, tools } = this.#options;
    const wishes = Object.entries({ model, voice, systemPrompt, agent, output, record, filler, token, tools: tools && declared(tools) }).filter(([, wish]) => wish !== "");
    return { type: "start", mode, ...Object.fromEntries(wishes) };
  }

  #send(message: ClientMessage): void {
    this.#connection?.send(message);
  }

  #onSocket(message: FromWorker): void {
    const { interruption } = this.#snapshot;
    if (message.type === "trying") {
      if (interruption !== null) this.#set({ interruption: { ...interruption, nextTryAt: null } });
    } else if (message.type === "open") {
      if (message.protocol !== SUBPROTOCOL) this.#abandon(AgentError.of("CONNECTION_FAILED", `the gateway does not speak ${SUBPROTOCOL}`));
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
    if (!this.#resumption.facts.take(message)) return;
    this.probe?.fact(message);
    const before = this.#snapshot;
    if (message.type === "error" && this.#isAboutSocket(message)) {
      this.#refusal = message.message;
      if (message.code.startsWith("INVALID")) this.#giveUp(describeClose(0, "", false), message.message);
      return;
    }
    const replayed = this.#resumption.isReplayed(message);
    this.#become(receive(before, message, replayed ? null : this.#platform.now()));
    if (message.type === "setup_complete") {
      this.#onSetUp(message);
    } else if (message.type === "resumed") {
      const { sentence, fault } = this.#resumption.returned(message, before);
      if (fault !== null) this.#fail(AgentError.of("INVALID_MESSAGE", fault));
      this.#set({ notice: { text: sentence, at: this.#platform.now() } });
      this.#attach();
    } else if (message.type === "restored" && !replayed) {
      this.#set({ notice: { text: news.restored(message), at: this.#platform.now() } });
    } else if (message.type === "session_ended") {
      this.#resumption.drop();
    } else if (message.type === "error") {
      const error = new AgentError(this.#snapshot.error ?? AgentError.of("CONNECTION_FAILED"));
      if (this.#settle !== null) this.#abandon(error);
      else this.#emitter.emit("failure", error);
    }
    if (message.type === "transcript" && message.id) this.#connection?.taken(message.id);
    this.#tools.take(message, replayed);
    this.#emitter.emit(message.type, message);
  }

  /** An error that explains the close which follows it; that decides what becomes of the call. */
  #isAboutSocket({ code }: { code: string }): boolean {
    return this.#snapshot.connection === "reconnecting" || (code === "CONFLICT" && this.#resumption.ticket !== null);
  }

  #onSetUp({ sessionId, mode, resumeToken: token }: Extract<ServerMessage, { type: "setup_complete" }>): void {
    if (this.#settle === null) return; // told again after a reload
    const { microphone, pushToTalk } = this.#snapshot;
    if (token !== undefined && this.#resumption.windowMs > 0) {
      const url = socketUrl(this.#options.url, this.#platform.page());
      this.#resumption.keep({ url, sessionId, token, mode, microphone: microphone === "asking" ? "off" : microphone, pushToTalk });
    }
    this.#resumption.attached();
    this.#attach();
    this.#settle.resolve();
    this.#settle = null;
  }

  /** The session answers on this socket: what waited goes out. */
  #attach(): void {
    this.#refusal = "";
    this.#connection?.microphone(this.#snapshot.microphone === "on");
    this.#connection?.attach();
  }

  #onClose(code: number, reason: string): void {
    const ended = this.#ending || this.#snapshot.state === "ended" || code === 1000;
    const { next, reason: meaning } = afterClose(code);
    if (ended || this.#resumption.ticket === null) {
      this.#finish(code, reason, ended);
    } else if (next === "taken") {
      this.#resumption.yield();
      this.#release();
      this.#become(disconnected(this.#snapshot, describeClose(TAKEN_OVER, "", false), null, "elsewhere"));
    } else if (next === "over") {
      this.#close(describeClose(OVER, "", false), null);
    } else if (next === "stop") {
      this.#giveUp(describeClose(code, reason, false), meaning);
    } else {
      const said = next === "later" ? this.#refusal || this.#snapshot.error?.message : this.#refusal;
      this.#retry(code, said || meaning, next === "later");
    }
  }

  /** Wait for the next try, or give up where there is none. */
  #retry(code: number, reason: string, later: boolean): void {
    const interruption = this.#resumption.after(this.#snapshot.interruption, reason, later);
    this.#refusal = "";
    if (interruption === null) {
      this.#giveUp({ code, reason: `The call could not be taken up again within ${news.span(this.#resumption.windowMs)}.`, retryable: true, ended: false });
    } else {
      this.#become(reconnecting(this.#snapshot, interruption));
      this.#connection?.open(this.#hello(), Math.max(1, (interruption.nextTryAt ?? 0) - this.#platform.now()));
    }
  }

  #giveUp(closed: Closed, detail?: string): void {
    this.#close(closed, AgentError.of("CONNECTION_LOST", detail));
  }

  #onOffline(): void {
    const reason = this.#resumption.offline();
    const { interruption } = this.#snapshot;
    if (interruption !== null) this.#set({ interruption: { ...interruption, reason }, reason });
  }

  /** Try now what waits to be tried; and where the network changed, what may only seem to be there. */
  #onBack(network: boolean): void {
    const { interruption, connection } = this.#snapshot;
    const doubtful = network && this.#resumption.online();
    if (interruption !== null && interruption.nextTryAt !== null) this.#connection?.open(this.#hello());
    else if (doubtful && connection === "connected") this.#retry(1006, "The network changed.", false);
  }

  /** Over, with the call ended or cut off. */
  #finish(code: number, reason: string, ended: boolean): void {
    const starting = this.#settle !== null;
    const closed = starting && !ended
      ? { code, reason: "The gateway could not be reached.", retryable: true, ended: false }
      : describeClose(code, reason, ended);
    const cause = this.#snapshot.error !== null && !ended;
    this.#close(closed, ended || cause ? null : AgentError.of(starting ? "CONNECTION_FAILED" : "CONNECTION_LOST"));
  }

  #close(closed: Closed, error: AgentError | null): void {
    this.#resumption.drop();
    this.#release();
    this.#become(disconnected(this.#snapshot, closed, error === null ? null : fields(error)));
    if (error !== null) this.#emitter.emit("failure", error);
    this.#settle?.reject(error ?? AgentError.of("CANCELLED"));
    this.#settle = null;
  }

  /** The call did not come about: `error` says why. */
  #abandon(error: AgentError): void {
    this.#close({ code: 0, reason: error.message, retryable: error.retryable, ended: false }, error);
  }

  #release(): void {
    this.#connection?.close();
    this.#connection?.dispose();
    this.#connection = null;
    this.#unwatch?.();
    this.#unwatch = null;
    this.#tools.clear();
    this.#audio.close();
    this.#held = false;
  }

  #onPlayback(message: FromPlayback): void {
    if (message.type === "playback") this.#emitter.emit("playback", message.report);
    else if (message.type === "flush" && message.cut) this.#set({ cut: message.generation });
  }

  #onMicrophoneLost(): void {
    this.#setMuted(true);
    this.#fail(AgentError.of("MIC_LOST"));
  }

  #setMuted(muted: boolean): void {
    const { microphone: was, connection } = this.#snapshot;
    const microphone = muted ? "muted" : "on";
    this.#audio.device?.setMuted(muted);
    this.#connection?.microphone(!muted && connection !== "connecting");
    this.#set({ microphone });
    this.#resumption.amend({ microphone, pushToTalk: this.#snapshot.pushToTalk });
    if (muted && was === "on" && connection !== "connecting") this.#send({ type: "audio_end" });
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
    this.#audio.device?.hush();
    this.#send({ type: "interrupt" });
  }

  /** Say something by keyboard; without a call, one begins, in text. */
  async sendText(text: string): Promise<void> {
    const trimmed = text.trim();
    if (trimmed === "") return;
    if (!this.#inCall) await this.start({ microphone: false });
    this.#become(typed(this.#snapshot, trimmed));
    this.#send({ type: "text", text: trimmed, id: `${this.#platform.random()}` });
  }

  /** How loud the agent is, 0 to 1. It is said to be heard even at 0. */
  setVolume(volume: number): void {
    this.#audio.setVolume(volume);
  }

  /** Listen to another microphone; ids come from `navigator.mediaDevices.enumerateDevices()`. */
  async setDevice(deviceId: string): Promise<void> {
    await this.#audio.device?.setDevice(deviceId);
  }

  /** The person has read the error. */
  clearError(): void {
    this.#set({ error: null });
  }

  /** Do not wait for the next try. */
  tryNow(): void {
    this.#onBack(false);
  }

  /** The person has read the notice. */
  clearNotice(): void {
    this.#set({ notice: null });
  }

  /** Start the sound again where the browser stopped it; call it within a click. */
  async resumeAudio(): Promise<void> {
    await this.#audio.device?.resume();
  }

  /** The rate in Hz and the clock in seconds of the sound device, or null outside a call. */
  get audioClock(): { rate: number; time: number } | null {
    const context = this.#audio.device?.context;
    return context === undefined ? null : { rate: context.sampleRate, time: context.currentTime };
  }

  /**
   * End the call. The server answers with the reason and closes; without an answer within 2 s the page closes. Without a socket
   * the page closes at once, and the session ends when nobody has come back to it.
   */
  end(): void {
    if (!this.#inCall || this.#ending) return;
    this.#ending = true;
    this.#resumption.drop();
    if (this.#snapshot.connection !== "connected") {
      this.#onClose(1000, "");
      return;
    }
    this.#audio.device?.hush();
    this.#send({ type: "end" });
    const connection = this.#connection;
    this.#platform.later(END_MS, () => {
      if (connection !== null && this.#connection === connection) this.#onClose(1000, "");
    });
  }
}

function fields({ code, message, action, retryable }: AgentErrorFields): AgentErrorFields {
  return { code, message, action, retryable };
}
