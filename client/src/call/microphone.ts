/** The person's microphone in a call: open, muted, or held open by a key. Owns whether it is held. */
import type { AgentAudio } from "../audio/agent-audio";
import { AgentError, isAboutVoice } from "../errors";
import type { Resumption } from "../resume/resumption";
import type { CallCore } from "./core";

export class CallMicrophone {
  #held = false;

  constructor(
    private readonly core: CallCore,
    private readonly audio: AgentAudio,
    private readonly resumption: Resumption,
  ) {}

  /** Nobody holds it any more. */
  reset(): void {
    this.#held = false;
  }

  set(muted: boolean): void {
    const { core, audio, resumption } = this;
    const { microphone: was, connection, pushToTalk } = core.snapshot;
    const microphone = muted ? "muted" : "on";
    audio.device?.setMuted(muted);
    core.connection?.microphone(!muted && connection !== "connecting");
    core.set({ microphone, error: !muted && isAboutVoice(core.snapshot.error) ? null : core.snapshot.error });
    resumption.amend({ microphone, pushToTalk });
    if (muted && was === "on" && connection !== "connecting") core.send({ type: "audio_end" });
  }

  /** The system took its sound away, or gave it back. */
  silenced(silenced: boolean): void {
    const text = silenced ? "Your device silenced the microphone; it is asked for again in a moment." : "The microphone is back.";
    this.core.set({ notice: { text, at: this.core.platform.now() } });
  }

  lost(): void {
    this.set(true);
    this.core.fail(AgentError.of("MIC_LOST"));
  }

  /** Give it back. */
  close(): void {
    this.set(true);
    this.reset();
    this.audio.device?.closeMicrophone();
    this.core.set({ microphone: "off", pushToTalk: false });
    this.resumption.amend({ microphone: "off", pushToTalk: false });
  }

  mute(muted: boolean): void {
    if (this.#isThere) this.set(muted);
  }

  hold(held: boolean): void {
    const { core } = this;
    if (held === this.#held || !this.#isThere) return;
    this.#held = held;
    if (held) {
      core.set({ pushToTalk: core.snapshot.microphone === "muted" });
      this.set(false);
    } else if (core.snapshot.pushToTalk) {
      this.set(true);
    } else {
      core.send({ type: "audio_end" });
    }
  }

  get #isThere(): boolean {
    const { microphone } = this.core.snapshot;
    return microphone === "on" || microphone === "muted";
  }
}
