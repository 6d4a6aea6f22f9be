/**
 * The sound of one agent: its device in a call, and what is told of it 20 times a second.
 * Owns loudness, volume and the probe's taps. Does not own what is said: the worklets and the socket's worker carry that.
 */
import type { DeviceOptions } from "./device";
import type { FromCapture, FromPlayback } from "./messages";
import type { Probe } from "../measuring/probe";
import type { Sound, Platform, Wire } from "../platform";

export interface Levels {
  /** Root mean square, 0 to 1. */
  input: number;
  output: number;
  /** Milliseconds of speech waiting to be played, and how often there was too little. */
  queuedMs: number;
  underruns: number;
}

export interface AgentAudioEvents {
  levels: (levels: Levels) => void;
  playback: (message: FromPlayback) => void;
  blocked: (blocked: boolean) => void;
  microphoneLost: () => void;
  microphoneSilenced: (silenced: boolean) => void;
  devicesChanged: () => void;
}

const SILENT: Levels = { input: 0, output: 0, queuedMs: 0, underruns: 0 };
const VOICE: MediaTrackConstraints = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };

export class AgentAudio {
  device: Sound | null = null;
  #levels = SILENT;
  #volume = 1;
  /** A conversation in text: what a model speaks all the same is not played. */
  #silent = false;

  constructor(
    private readonly platform: Platform,
    private readonly probe: Probe | null,
    private readonly events: AgentAudioEvents,
  ) {}

  /** The device of a call. Call it within a click: browsers let only a gesture start sound. */
  open(directOutput: boolean, microphone: MediaTrackConstraints): Sound {
    const { blocked, microphoneLost, microphoneSilenced, devicesChanged } = this.events;
    const options: DeviceOptions = { directOutput, constraints: { ...VOICE, ...microphone } };
    this.device = this.platform.sound(options, {
      capture: (message) => this.#onCapture(message),
      playback: (message) => this.#onPlayback(message),
      blocked,
      microphoneLost,
      microphoneSilenced,
      devicesChanged,
    });
    return this.device;
  }

  async openLoudspeaker(device: Sound, wire: Wire): Promise<void> {
    await device.openLoudspeaker(wire.port("playback"));
    this.setVolume(this.#volume);
    if (this.probe !== null) device.tap(true);
  }

  async openMicrophone(device: Sound, wire: Wire): Promise<void> {
    await device.openMicrophone(wire.port("capture"));
    if (this.probe !== null) device.tap(true);
  }

  setVolume(volume: number): void {
    this.#volume = Math.max(0, Math.min(1, volume));
    this.device?.setVolume(this.#silent ? 0 : this.#volume);
  }

  silence(silent: boolean): void {
    this.#silent = silent;
    this.setVolume(this.#volume);
  }

  close(): void {
    void this.device?.close();
    this.device = null;
    this.#tell(SILENT);
  }

  #tell(levels: Levels): void {
    this.#levels = levels;
    this.events.levels(levels);
  }

  #onCapture(message: FromCapture): void {
    this.probe?.capture(message);
    if (message.type === "level") this.#tell({ ...this.#levels, input: message.level });
  }

  #onPlayback(message: FromPlayback): void {
    this.probe?.playback(message);
    if (message.type !== "level") this.events.playback(message);
    else this.#tell({ ...this.#levels, output: message.level, queuedMs: message.queuedMs, underruns: message.underruns });
  }
}
