/** The platform of an agent in a test: a clock, sockets of a `Gateway` behind the real socket of the worker, and no sound. */
import type { DeviceEvents } from "../src/audio/device";
import { VoiceAgent, type VoiceAgentOptions } from "../src/client";
import { CallSocket } from "../src/socket/call-socket";
import type { Snapshot } from "../src/state";
import type { ScreenWatcher } from "../src/call/screen";
import type { Platform, Watcher, Wire } from "../src/platform";
import type { Store } from "../src/resume/resume-ticket";
import { Clock } from "./clock";
import { Gateway, type Log, newLog } from "./gateway";

export const flushPromises = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

export class Tab implements Store {
  readonly items = new Map<string, string>();
  getItem = (key: string): string | null => this.items.get(key) ?? null;
  setItem = (key: string, value: string): void => void this.items.set(key, value);
  removeItem = (key: string): void => void this.items.delete(key);
}

export class World {
  readonly gateway: Gateway;
  /** What the playback worklet was told. */
  readonly played: (ArrayBuffer | "cut")[] = [];
  readonly snapshots: Snapshot[] = [];
  line: CallSocket | null = null;
  sound: DeviceEvents | null = null;
  watcher: Watcher | null = null;
  screen: ScreenWatcher | null = null;
  microphone: () => Promise<void> = () => Promise.resolve();
  page = "http://127.0.0.1:8420/";
  reloaded = false;
  random = 0.5;

  constructor(
    readonly clock = new Clock(),
    log: Log = newLog(),
    readonly tab = new Tab(),
  ) {
    this.gateway = new Gateway(log);
  }

  readonly around: Platform = {
    page: () => this.page,
    timeZone: () => "Europe/Lisbon",
    reloaded: () => this.reloaded,
    now: () => this.clock.now,
    date: () => 1_700_000_000_000 + this.clock.now,
    random: () => this.random,
    later: (ms, work) => this.clock.later(ms, work),
    store: () => this.tab,
    screen: (watcher) => {
      this.screen = watcher;
      return () => (this.screen = null);
    },
    watch: (watcher) => {
      this.watcher = watcher;
      return () => (this.watcher = null);
    },
    connect: (url, onMessage): Wire => {
      const line = new CallSocket({
        connect: (to) => this.gateway.connect(to),
        later: this.clock.later,
        tell: onMessage,
        play: (data) => this.played.push(data),
      });
      this.line = line;
      return {
        open: (hello, afterMs) => line.open(url, "voxbridge.v1", JSON.stringify(hello), afterMs ?? 0),
        attach: () => line.attach(),
        send: (message) => line.send(JSON.stringify(message), message.type === "text" ? message.id : undefined),
        taken: (id) => line.taken(id),
        port: () => new MessageChannel().port1,
        microphone: (on) => line.listen(on),
        close: () => line.close(),
        dispose: () => undefined,
      };
    },
    sound: (_options, events) => {
      this.sound = events;
      return {
        context: { sampleRate: 48_000, currentTime: 0 },
        openLoudspeaker: () => Promise.resolve(),
        openMicrophone: () => this.microphone(),
        closeMicrophone: () => undefined,
        setMuted: () => undefined,
        setVolume: () => undefined,
        setDevice: () => Promise.resolve(),
        hush: () => undefined,
        tap: () => undefined,
        resume: () => Promise.resolve(),
        close: () => Promise.resolve(),
      };
    },
  };

  agent(options: VoiceAgentOptions = {}): VoiceAgent {
    const agent = new VoiceAgent(options, this.around);
    agent.subscribe(() => this.snapshots.push(agent.getSnapshot()));
    return agent;
  }

  /** An agent in a call. */
  async call(options: VoiceAgentOptions = {}): Promise<VoiceAgent> {
    const agent = this.agent(options);
    const started = agent.start();
    await flushPromises();
    this.gateway.answer();
    await started;
    return agent;
  }

  /** The next try is made, and answered. */
  retry(): void {
    const before = this.gateway.sockets.length;
    for (let waited = 0; this.gateway.sockets.length === before && waited < 10_000; waited += 10) this.clock.pass(10);
    this.gateway.answer();
  }
}
