/**
 * The sound devices of the page: one AudioContext, the microphone, the loudspeaker, and their two worklets.
 * Owns permissions, device changes and interruptions by the system. The samples never pass through here.
 * A crash here leaves the call in text.
 */
import captureSource from "inline:./worklets/capture.ts";
import playbackSource from "inline:./worklets/playback.ts";
import { AgentError, microphoneError } from "../errors";
import { scriptUrl } from "../script-url";
import type { FromCapture, FromPlayback, ToWorklet } from "./messages";

export interface DeviceOptions {
  /** Play into the context's destination. By default sound goes through an `<audio>` element, which more browsers' echo cancellers hear. */
  directOutput: boolean;
  constraints: MediaTrackConstraints;
}

export interface DeviceEvents {
  capture: (message: FromCapture) => void;
  playback: (message: FromPlayback) => void;
  blocked: (blocked: boolean) => void;
  microphoneLost: () => void;
  /** The system took the sound of the microphone away, or it is back. */
  microphoneSilenced: (silenced: boolean) => void;
  devicesChanged: () => void;
}

/** Load a worklet: from the text that this file has of it, if it has and the page's content security policy lets it, or from beside this file. */
async function addModule(context: AudioContext, source: string, beside: URL): Promise<void> {
  if (source === "") return context.audioWorklet.addModule(beside.href);
  const url = scriptUrl(source);
  try {
    await context.audioWorklet.addModule(url.href);
  } catch {
    await context.audioWorklet.addModule(beside.href);
  } finally {
    url.revoke();
  }
}

/** How long the system may silence the microphone before it is asked for again, in ms. */
export const SILENCED_MS = 3_000;
/** How often a silenced microphone is asked for again before it counts as lost. */
export const ASKED_LIMIT = 3;

export class SoundDevice {
  readonly context: AudioContext;
  #playback: AudioWorkletNode | null = null;
  #capture: AudioWorkletNode | null = null;
  #gain: GainNode | null = null;
  #element: HTMLAudioElement | null = null;
  #source: MediaStreamAudioSourceNode | null = null;
  #stream: MediaStream | null = null;
  #closed = false;
  #silenced: ReturnType<typeof setTimeout> | undefined;
  #asked = 0;
  /** Settles when the loudspeaker's worklet is there; asked for at once, since it may come over the network. */
  readonly #loaded: Promise<void>;

  /** Call it within a click: browsers let only a gesture start sound. */
  constructor(
    private readonly options: DeviceOptions,
    private readonly events: DeviceEvents,
  ) {
    if (typeof AudioContext === "undefined" || typeof AudioWorkletNode === "undefined") {
      throw AgentError.of(globalThis.isSecureContext ? "UNSUPPORTED_BROWSER" : "INSECURE_CONTEXT");
    }
    this.context = new AudioContext({ latencyHint: "interactive" });
    this.context.onstatechange = () => this.#onStateChange();
    void this.context.resume();
    this.#loaded = addModule(this.context, playbackSource, new URL("./playback.js", import.meta.url));
    this.#loaded.catch(() => undefined); // whoever opens the loudspeaker is told
  }

  #onStateChange(): void {
    // iOS says "interrupted" during a phone call or behind the lock screen; the type does not know it everywhere.
    const state: string = this.context.state;
    if (!this.#closed && state !== "closed") this.events.blocked(state !== "running");
  }

  /** Build the loudspeaker; `port` is the worklet's end of the line to the socket's worker. */
  async openLoudspeaker(port: MessagePort): Promise<void> {
    await this.#loaded;
    const node = new AudioWorkletNode(this.context, "voxbridge-playback", { numberOfInputs: 0, outputChannelCount: [1] });
    node.port.onmessage = ({ data }: MessageEvent<FromPlayback>) => this.events.playback(data);
    node.port.postMessage({ type: "socket", port } satisfies ToWorklet, [port]);
    const gain = this.context.createGain();
    node.connect(gain);
    if (this.options.directOutput) {
      gain.connect(this.context.destination);
    } else {
      const destination = this.context.createMediaStreamDestination();
      gain.connect(destination);
      this.#element = new Audio();
      this.#element.srcObject = destination.stream;
      await this.#element.play().catch(() => this.events.blocked(true));
    }
    this.#playback = node;
    this.#gain = gain;
    this.#onStateChange();
  }

  /** Ask for the microphone and start its worklet; throws an `AgentError` that says what to do. */
  async openMicrophone(port: MessagePort): Promise<void> {
    if (this.#capture === null) await addModule(this.context, captureSource, new URL("./capture.js", import.meta.url));
    const stream = await this.#ask(this.options.constraints);
    this.#capture?.disconnect();
    const node = new AudioWorkletNode(this.context, "voxbridge-capture", { numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" });
    node.port.onmessage = ({ data }: MessageEvent<FromCapture>) => this.events.capture(data);
    node.port.postMessage({ type: "socket", port } satisfies ToWorklet, [port]);
    this.#capture = node;
    this.#listenTo(stream);
    navigator.mediaDevices.addEventListener("devicechange", this.events.devicesChanged);
  }

  /** Give the microphone back; the browser's recording light goes out. */
  closeMicrophone(): void {
    clearTimeout(this.#silenced);
    this.#silenced = undefined;
    this.#source?.disconnect();
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    this.#source = this.#stream = null;
  }

  async #ask(constraints: MediaTrackConstraints): Promise<MediaStream> {
    // Absent on pages that are not secure, whatever the type says.
    const devices = navigator.mediaDevices as MediaDevices | undefined;
    if (devices === undefined) throw AgentError.of("INSECURE_CONTEXT");
    const stream = await devices.getUserMedia({ audio: constraints }).catch((cause: unknown) => {
      throw microphoneError(cause);
    });
    if (this.#closed) {
      for (const track of stream.getTracks()) track.stop();
      throw AgentError.of("MIC_LOST");
    }
    return stream;
  }

  #listenTo(stream: MediaStream): void {
    if (this.#capture === null) return;
    this.#source?.disconnect();
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    this.#stream = stream;
    this.#source = this.context.createMediaStreamSource(stream);
    this.#source.connect(this.#capture);
    const [track] = stream.getAudioTracks();
    if (track === undefined) return;
    track.onended = () => void this.#reopen();
    track.onmute = () => this.#onSilenced(track);
    track.onunmute = () => this.#onHeard();
    if (track.muted) this.#onSilenced(track);
    else this.#onHeard();
  }

  /** The system took the sound away, as for a phone call, and gives it back by itself; some phones never do until they are asked. */
  #onSilenced(track: MediaStreamTrack): void {
    clearTimeout(this.#silenced);
    this.events.microphoneSilenced(true);
    this.#silenced = setTimeout(() => {
      if (this.#closed || track.readyState !== "live" || !track.muted) return;
      this.#asked += 1;
      if (this.#asked > ASKED_LIMIT) this.events.microphoneLost();
      else void this.#reopen();
    }, SILENCED_MS);
  }

  #onHeard(): void {
    clearTimeout(this.#silenced);
    if (this.#silenced !== undefined) this.events.microphoneSilenced(false);
    this.#silenced = undefined;
    this.#asked = 0;
  }

  /** A pulled plug: the system's next default microphone takes over, if there is one. */
  async #reopen(): Promise<void> {
    try {
      const { deviceId, ...constraints } = this.options.constraints;
      this.#listenTo(await this.#ask(constraints));
    } catch {
      if (!this.#closed) this.events.microphoneLost();
    }
  }

  /** Listen to another microphone, by its `deviceId`. */
  async setDevice(deviceId: string): Promise<void> {
    this.#listenTo(await this.#ask({ ...this.options.constraints, deviceId: { exact: deviceId } }));
  }

  /** A muted track also puts out the browser's recording light. */
  setMuted(muted: boolean): void {
    for (const track of this.#stream?.getAudioTracks() ?? []) track.enabled = !muted;
  }

  /** 0 to 1. */
  setVolume(volume: number): void {
    if (this.#gain !== null) this.#gain.gain.setTargetAtTime(volume, this.context.currentTime, 0.01);
  }

  /** Stop what is being said at once, within the worklet. */
  hush(): void {
    this.#playback?.port.postMessage({ type: "hush" } satisfies ToWorklet);
  }

  /** Copy every sample that is played and recorded to the page. */
  tap(on: boolean): void {
    this.#playback?.port.postMessage({ type: "tap", on } satisfies ToWorklet);
    this.#capture?.port.postMessage({ type: "tap", on } satisfies ToWorklet);
  }

  /** Start the sound again after the browser or the system stopped it; call it within a click. */
  async resume(): Promise<void> {
    await this.context.resume();
    await this.#element?.play();
    this.events.blocked(false);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#silenced);
    this.context.onstatechange = null;
    if (this.#capture !== null) navigator.mediaDevices.removeEventListener("devicechange", this.events.devicesChanged);
    for (const track of this.#stream?.getTracks() ?? []) track.stop();
    if (this.#element !== null) this.#element.srcObject = null;
    await this.context.close();
  }
}
