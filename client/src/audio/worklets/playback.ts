/** The playback worklet: frames straight from the socket's worker to the loudspeaker. */
import type { FromPlayback, ToWorklet } from "../messages";
import { PlaybackQueue } from "../playback-queue";

/** The meter's pace: 20 Hz. */
const LEVEL_SECONDS = 0.05;

class Playback extends AudioWorkletProcessor {
  #socket: MessagePort | null = null;
  #tap = false;
  #nextLevel = 0;
  readonly #queue = new PlaybackQueue(sampleRate, (report) => {
    this.#socket?.postMessage(report);
    this.#tell({ type: "playback", report, time: currentTime });
  });

  constructor() {
    super();
    this.port.onmessage = ({ data }: MessageEvent<ToWorklet>) => {
      if (data.type === "socket") {
        this.#socket = data.port;
        this.#socket.onmessage = (event: MessageEvent<ArrayBuffer | "cut">) => {
          const cut = event.data === "cut";
          const flushed = event.data === "cut" ? this.#queue.cut() : this.#queue.push(event.data);
          if (flushed !== null) this.#tell({ type: "flush", generation: flushed, time: currentTime, cut });
        };
      } else if (data.type === "tap") {
        this.#tap = data.on;
      } else {
        this.#queue.hush();
      }
    };
  }

  #tell(message: FromPlayback, transfer: Transferable[] = []): void {
    this.port.postMessage(message, transfer);
  }

  process(_inputs: Float32Array[][], outputs: Float32Array[][]): boolean {
    const out = outputs[0]?.[0];
    if (out === undefined) return true;
    this.#queue.read(out);
    if (this.#tap) {
      const samples = out.slice();
      this.#tell({ type: "tap", time: currentTime, samples }, [samples.buffer]);
    }
    if (currentTime >= this.#nextLevel) {
      this.#nextLevel = currentTime + LEVEL_SECONDS;
      const { queuedMs, underruns, dropped, bufferMs } = this.#queue;
      this.#tell({ type: "level", level: this.#queue.takeLevel(), queuedMs, underruns, dropped, bufferMs });
    }
    return true;
  }
}

registerProcessor("voxbridge-playback", Playback);
