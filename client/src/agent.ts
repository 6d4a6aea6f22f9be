/**
 * A voice agent in a page: one call at a time, from the click to the last word, over as many sockets as it takes.
 * Owns the wiring of socket, sound and state. Does not own the session: that lives in the log, and goes on without this page
 * until the gateway says otherwise. Building one touches neither `window` nor any device, so a server may render with it.
 */
import type { FromPlayback, FromWorker } from "./audio/messages";
import { type AgentEvents, CallCore } from "./call/core";
import { Decisions } from "./call/decisions";
import { CallEnds } from "./call/ends";
import { CallMicrophone } from "./call/microphone";
import { CallScreen } from "./call/screen";
import { CallTalking } from "./call/talking";
import { callUrl, configured, refusal } from "./configure";
import { WINDOW_MS } from "./resume/backoff";
import { AgentError, describeClose, isAboutVoice } from "./errors";
import type { Unsubscribe } from "./events";
import * as news from "./resume/news";
import type { VoiceAgentOptions } from "./options";
import type { Probe } from "./measuring/probe";
import { type ClientMessage, decode, type Scope, type ServerMessage, SUBPROTOCOL } from "./socket/protocol";
import { Resumption } from "./resume/resumption";
import { type Levels, AgentAudio } from "./audio/agent-audio";
import { INITIAL, receive, reconnecting, type Snapshot, typed } from "./state";
import { browser, type Platform, type Wire } from "./platform";
import type * as ui from "./ui/ui";
import type { ResumeTicket } from "./resume/resume-ticket";
import { declared, PageTools } from "./tools";

export class VoiceAgent {
  readonly levels = { subscribe: (listener: (levels: Levels) => void): Unsubscribe => this.on("levels", listener) };
  readonly probe: Probe | null;
  readonly #core: CallCore;
  readonly #resumption: Resumption;
  readonly #audio: AgentAudio;
  readonly #microphone: CallMicrophone;
  readonly #decisions: Decisions;
  readonly #screen: CallScreen;
  readonly #talking: CallTalking;
  readonly #tools: PageTools;
  readonly #ends: CallEnds;
  #options: VoiceAgentOptions;
  #unwatch: Unsubscribe | null = null;

  /** `platform` is the browser; only tests give another one. */
  constructor(options: VoiceAgentOptions = {}, platform: Platform = browser) {
    this.#options = options;
    this.probe = options.probe ?? null;
    const core = new CallCore(platform);
    this.#core = core;
    const { element, name = typeof element === "string" ? element : "" } = options;
    this.#resumption = new Resumption(platform, name);
    this.#audio = new AgentAudio(platform, this.probe, {
      levels: (levels) => core.emitter.emit("levels", levels),
      playback: (message) => this.#onPlayback(message),
      blocked: (audioBlocked) => core.set({ audioBlocked }),
      microphoneLost: () => this.#microphone.lost(),
      microphoneSilenced: (silenced) => this.#microphone.silenced(silenced),
      devicesChanged: () => core.emitter.emit("devices", undefined),
    });
    this.#microphone = new CallMicrophone(core, this.#audio, this.#resumption);
    this.#talking = new CallTalking(core, this.#audio, this.#microphone, (text) => this.#say(text));
    this.#decisions = new Decisions(core);
    this.#screen = new CallScreen(core);
    this.#ends = new CallEnds(core, this.#resumption, () => this.#hello(), () => this.#release());
    this.#tools = new PageTools(() => (this.#options.apiKey === undefined ? this.#options.tools : this.#talking.tools), (answer) => {
      core.become(receive(core.snapshot, { ...answer, type: "function_result" }, platform.now())); // which nobody else tells
      core.send(answer);
    }, platform.later);
  }

  /**
   * An agent whose call is up; or, with `element`, one whose default UI is there, where the person begins the call. Rejects with an
   * `AgentError`.
   */
  static async start(options: VoiceAgentOptions = {}): Promise<VoiceAgent> {
    const agent = new VoiceAgent(options);
    if (options.element === undefined) await agent.start();
    else await mounted(agent, options.element, options.greeting);
    return agent;
  }

  /** The same object until something changes. */
  readonly getSnapshot = (): Snapshot => this.#core.snapshot;
  readonly subscribe = (listener: () => void): Unsubscribe => this.on("change", listener);

  on<Name extends keyof AgentEvents>(name: Name, listener: (event: AgentEvents[Name]) => void): Unsubscribe {
    return this.#core.emitter.on(name, listener);
  }

  /** Begin a call, within a click. Resolves when the session is set up. Options given here replace those of before. */
  async start(options: VoiceAgentOptions = {}): Promise<void> {
    if (this.#core.inCall) throw new AgentError({ code: "CONFLICT", message: "A call is under way.", action: "End it first.", retryable: false });
    this.#take(options);
    const wantsMicrophone = this.#options.microphone !== false;
    this.#resumption.reset();
    this.probe?.clear();
    this.#begin({ ...INITIAL, connection: "connecting", state: "connecting", microphone: wantsMicrophone ? "asking" : "off", pushToTalk: this.#options.pushToTalk ?? false });
    const settled = this.#ends.settled();
    const connection = this.#connect(callUrl(this.#options, this.#core.platform.page()));
    try {
      await this.#open(connection, wantsMicrophone);
    } catch (cause) {
      // A call that was ended while the browser asked is over already, and another may have begun.
      if (connection === this.#core.connection) this.#ends.abandon(cause instanceof AgentError ? cause : AgentError.of("UNSUPPORTED_BROWSER", String(cause)));
    }
    return settled.catch(async (cause: unknown) => {
      const refused = this.#options.apiKey === undefined ? null : await refusal(callUrl(this.#options, this.#core.platform.page()), cause);
      if (refused === null) throw cause;
      if (!this.#core.inCall) this.#core.set({ error: refused });
      throw new AgentError(refused);
    });
  }

  /**
   * Go on with the call that this tab had before the page was loaded anew, or with a `conversation` of `POST /api/chat`, as its last answer
   * named it. Answers whether there is one; the snapshot tells what becomes of it. It goes on in text, until `startVoice`.
   */
  resume({ conversation, ...options }: VoiceAgentOptions & { conversation?: string } = {}): boolean {
    if (this.#core.inCall) return false;
    this.#take(options);
    const there = conversation === undefined ? null : this.#resumption.given(conversation, callUrl(this.#options, this.#core.platform.page()));
    const ticket = conversation === undefined ? this.#resumption.find() : there;
    if (ticket === null) return false;
    this.probe?.clear();
    this.#rejoin(ticket, { ...INITIAL, sessionId: ticket.sessionId, mode: ticket.mode }, there === null ? "The page was loaded anew." : "Joining the conversation.");
    return true;
  }

  /** Take the call back from the window that took it over, within a click. */
  takeBack(): void {
    const { ticket } = this.#resumption;
    if (this.#core.snapshot.state === "elsewhere" && ticket !== null) this.#rejoin(ticket, { ...this.#core.snapshot, closed: null }, "Taking the call back.");
  }

  #take(options: VoiceAgentOptions): void {
    this.#options = { ...this.#options, ...options };
    this.#resumption.windowMs = this.#options.resumeWindow ?? WINDOW_MS;
  }

  #begin(snapshot: Snapshot): void {
    this.#ends.begin();
    this.#core.become(snapshot);
    this.#unwatch = this.#core.platform.watch({
      back: (network) => this.#ends.back(network),
      offline: () => this.#ends.offline(),
      leaving: () => this.#resumption.leave(),
    });
  }

  #connect(url: string): Wire {
    const connection = this.#core.platform.connect(url, (message) => {
      if (connection === this.#core.connection) this.#onSocket(message);
    });
    this.#core.connection = connection;
    return connection;
  }

  /** Sound and socket for a call that is there already. Without a microphone it goes on in text. */
  #rejoin(ticket: ResumeTicket, snapshot: Snapshot, reason: string): void {
    this.#begin(reconnecting({ ...snapshot, microphone: "off", pushToTalk: ticket.pushToTalk }, this.#resumption.joining(reason)));
    const connection = this.#connect(ticket.url);
    this.#rejoinSound(connection, ticket).catch((cause: unknown) => {
      if (connection === this.#core.connection) this.#core.fail(cause instanceof AgentError ? cause : AgentError.of("UNSUPPORTED_BROWSER", String(cause)));
    });
  }

  async #rejoinSound(connection: Wire, { microphone, pushToTalk }: ResumeTicket): Promise<void> {
    try {
      await this.#audio.openLoudspeaker(this.#openAudio(), connection);
    } finally {
      if (connection === this.#core.connection) connection.open(this.#hello());
    }
    const { device } = this.#audio;
    this.#audio.silence(this.#options.apiKey !== undefined && microphone === "off");
    if (microphone === "off" || connection !== this.#core.connection || device === null) return;
    this.#core.set({ microphone: "asking" });
    try {
      await this.#audio.openMicrophone(device, connection);
    } catch (cause) {
      if (connection === this.#core.connection) this.#core.set({ microphone: "off" });
      throw cause;
    }
    if (connection === this.#core.connection) this.#microphone.set(microphone === "muted" || pushToTalk);
  }

  #openAudio(): ReturnType<AgentAudio["open"]> {
    const { microphone, directOutput = false } = this.#options;
    return this.#audio.open(directOutput, typeof microphone === "object" ? microphone : {});
  }

  async #open(connection: Wire, wantsMicrophone: boolean): Promise<void> {
    const device = this.#openAudio();
    if (wantsMicrophone) await this.#audio.openMicrophone(device, connection);
    if (this.#core.connection !== connection) return;
    await this.#audio.openLoudspeaker(device, connection);
    if (this.#core.connection !== connection) return;
    this.#audio.silence(this.#options.apiKey !== undefined && !wantsMicrophone);
    if (wantsMicrophone) this.#microphone.set(this.#core.snapshot.pushToTalk);
    connection.open(this.#hello());
  }

  /** The first message of a socket. */
  #hello(): ClientMessage {
    const { ticket } = this.#resumption;
    if (ticket !== null) return this.#resumption.hello(ticket);
    const options = { timeZone: this.#core.platform.timeZone(), ...this.#options };
    if (options.apiKey !== undefined) return configured(options);
    const { mode = "local", model, voice, systemPrompt, agent, output, record, filler, token, timeZone, tools } = options;
    const wishes = Object.entries({ model, voice, systemPrompt, agent, output, record, filler, token, timeZone, tools: tools && declared(tools) }).filter(([, wish]) => wish !== "");
    return { type: "start", mode, ...Object.fromEntries(wishes) };
  }

  #onSocket(message: FromWorker): void {
    const { interruption } = this.#core.snapshot;
    if (message.type === "trying") {
      if (interruption !== null) this.#core.set({ interruption: { ...interruption, nextTryAt: null } });
    } else if (message.type === "open") {
      if (message.protocol !== SUBPROTOCOL) this.#ends.abandon(AgentError.of("CONNECTION_FAILED", `the gateway does not speak ${SUBPROTOCOL}`));
    } else if (message.type === "message") {
      this.#onMessage(message.text);
    } else {
      this.#ends.closed(message.code, message.reason);
    }
  }

  #onMessage(text: string): void {
    const message = decode(text);
    if (message === null) return;
    if ("fault" in message) {
      this.#core.fail(AgentError.of("INVALID_MESSAGE", message.fault));
      return;
    }
    if (!this.#resumption.facts.take(message)) return;
    this.probe?.fact(message);
    const before = this.#core.snapshot;
    if (message.type === "error" && this.#isAboutSocket(message)) {
      this.#ends.refusal = message.message;
      if (message.code.startsWith("INVALID")) this.#ends.giveUp(describeClose(0, "", false), message.message);
      return;
    }
    const replayed = this.#resumption.isReplayed(message);
    this.#core.become(receive(before, message, replayed ? null : this.#core.platform.now()));
    if (message.type === "setup_complete") {
      this.#onSetUp(message);
    } else if (message.type === "resumed") {
      const { sentence, fault } = this.#resumption.returned(message, before);
      if (fault !== null) this.#core.fail(AgentError.of("INVALID_MESSAGE", fault));
      this.#core.set({ notice: { text: sentence, at: this.#core.platform.now() } });
      this.#decisions.again();
      this.#attach();
    } else if (message.type === "restored" && !replayed) {
      this.#core.set({ notice: { text: news.restored(message), at: this.#core.platform.now() } });
    } else if (message.type === "session_ended") {
      this.#resumption.drop();
    } else if (message.type === "output" && message.reason !== undefined && !replayed) {
      this.#talking.away(message.reason);
    } else if (message.type === "error") {
      const error = new AgentError(this.#core.snapshot.error ?? AgentError.of("CONNECTION_FAILED"));
      if (this.#ends.starting) this.#ends.abandon(error);
      else this.#core.emitter.emit("failure", error);
    }
    if (message.type === "transcript" && message.id) this.#core.connection?.taken(message.id);
    this.#tools.take(message, replayed);
    if (message.type === "turn_complete" && !replayed) this.#talking.rested();
    this.#core.emitter.emit(message.type, message);
  }

  /** An error that explains the close which follows it; that decides what becomes of the call. */
  #isAboutSocket({ code }: { code: string }): boolean {
    return this.#core.snapshot.connection === "reconnecting" || (code === "CONFLICT" && this.#resumption.ticket !== null);
  }

  #onSetUp({ sessionId, mode, resumeToken: token }: Extract<ServerMessage, { type: "setup_complete" }>): void {
    if (!this.#ends.starting) return; // told again after a reload
    const { microphone, pushToTalk } = this.#core.snapshot;
    if (token !== undefined && this.#resumption.windowMs > 0) {
      const url = callUrl(this.#options, this.#core.platform.page());
      this.#resumption.keep({ url, sessionId, token, mode, microphone: microphone === "asking" ? "off" : microphone, pushToTalk });
    }
    this.#resumption.attached();
    this.#attach();
    this.#ends.started();
  }

  /** The session answers on this socket: what waited goes out. */
  #attach(): void {
    this.#ends.refusal = "";
    this.#core.connection?.microphone(this.#core.snapshot.microphone === "on");
    this.#core.connection?.attach();
    this.#screen.begin(this.#options.awareness);
  }

  #release(): void {
    this.#core.connection?.close();
    this.#core.connection?.dispose();
    this.#core.connection = null;
    this.#unwatch?.();
    this.#unwatch = null;
    this.#tools.clear();
    this.#talking.clear();
    this.#screen.end();
    this.#audio.close();
    this.#microphone.reset();
  }

  #onPlayback(message: FromPlayback): void {
    if (message.type === "playback") this.#core.emitter.emit("playback", message.report);
    else if (message.type === "flush" && message.cut) this.#core.set({ cut: message.generation });
  }

  /** Close or open the microphone; without one this does nothing. */
  mute(muted: boolean): void {
    this.#microphone.mute(muted);
  }

  /** Hold the microphone open, and release it: the release ends the turn at once. Open or muted as before, afterwards. */
  pushToTalk(held: boolean): void {
    this.#microphone.hold(held);
  }

  /** Stop the agent's speech now. */
  interrupt(): void {
    this.#audio.device?.hush();
    this.#core.send({ type: "interrupt" });
  }

  /** Go on by voice, within a click: the microphone opens and replies are spoken. Without a call, one begins. */
  async startVoice(): Promise<void> {
    if (!this.#core.inCall) await this.start({ microphone: true });
    else await this.#talking.start();
  }

  /** Go on in text: the microphone closes, and replies are written. The conversation is the same. */
  endVoice(): void {
    this.#talking.end();
  }

  /** Begin the conversation anew, in the same call. Without a call, one begins. */
  reset(): void {
    if (this.#core.inCall) this.#core.send({ type: "reset" });
    else if (this.#core.snapshot.state !== "elsewhere") void this.start().catch(() => undefined); // the snapshot's error says why it did not
  }

  /** Say something by keyboard; without a call, one begins, in text. */
  async sendText(text: string): Promise<void> {
    const trimmed = text.trim();
    if (trimmed === "") return;
    if (isAboutVoice(this.#core.snapshot.error)) this.clearError();
    if (!this.#core.inCall) await this.start({ microphone: false });
    this.#say(trimmed);
  }

  #say(trimmed: string): void {
    this.#core.become(typed(this.#core.snapshot, trimmed));
    this.#core.send({ type: "text", text: trimmed, id: `${this.#core.platform.random()}` });
  }

  /**
   * Answer a request for approval, by its id; `scope` makes a yes stand for later calls, too. False where it is over already. Another
   * answer, such as a spoken one, may come first: `approval_ended` says which one counts.
   */
  answerApproval(id: string, yes: boolean, scope: Scope = "once"): boolean {
    return this.#decisions.answer(id, yes, scope);
  }

  /** Answer the question of a run, by its id; after a failed step with `again`, `go_on` or `stop`. False where it asks nothing. */
  answerRun(id: string, text: string): boolean {
    return this.#decisions.tell(id, text);
  }

  /** Ask for the end of a task or a timer, by its id. False where it is over already. */
  cancelTask(id: string): boolean {
    return this.#decisions.cancel(id);
  }

  /** State something about the person's work, such as `("project", "Apollo")`; an empty value takes it back. Only with `awareness`, in a call. */
  setContext(key: string, value: string): void {
    this.#screen.state(key, value);
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
    this.#core.set({ error: null });
  }

  /** Do not wait for the next try. */
  tryNow(): void {
    this.#ends.back(false);
  }

  /** The person has read the notice. */
  clearNotice(): void {
    this.#core.set({ notice: null });
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
    this.#ends.end(() => this.#audio.device?.hush());
  }
}

/** Show the default UI of an agent; it goes on with the call that this tab had before. */
async function mounted(agent: VoiceAgent, place: string | Element, greeting = ""): Promise<void> {
  const element = typeof place === "string" ? document.querySelector(place) : place;
  if (element === null) throw new AgentError({ code: "NOT_FOUND", message: `This page has nothing for the selector ${JSON.stringify(place)}.`, action: "Give `element` a selector of one.", retryable: false });
  const { mount } = (await import(new URL("./ui.js", import.meta.url).href)) as typeof ui;
  mount(agent, element, greeting);
  agent.resume();
}
