/** The capture worklet: microphone blocks to frames, straight to the socket's worker. */
import { Framer } from "../framer";
import type { FromCapture, ToWorklet } from "../messages";

/** The meter's pace: 20 Hz. */
const LEVEL_SECONDS = 0.05;

class Capture extends AudioWorkletProcessor {
  #socket: MessagePort | null = null;
  #tap = false;
  #nextLevel = 0;
  readonly #framer = new Framer(
    sampleRate,
    (frame) => {
      if (this.#socket === null) this.#framer.recycle(frame);
      else this.#socket.postMessage(frame, [frame]);
    },
    () => Date.now(),
  );

  constructor() {
    super();
    this.port.onmessage = ({ data }: MessageEvent<ToWorklet>) => {
      if (data.type === "socket") {
        this.#socket = data.port;
        this.#socket.onmessage = (event: MessageEvent<ArrayBuffer>) => this.#framer.recycle(event.data);
      } else if (data.type === "tap") {
        this.#tap = data.on;
      }
    };
  }

  #tell(message: FromCapture, transfer: Transferable[] = []): void {
    this.port.postMessage(message, transfer);
  }

  process(inputs: Float32Array[][]): boolean {
    const block = inputs[0]?.[0];
    if (block === undefined) return true;
    this.#framer.push(block);
    if (this.#tap) {
      const samples = block.slice();
      this.#tell({ type: "tap", time: currentTime, samples }, [samples.buffer]);
    }
    if (currentTime >= this.#nextLevel) {
      this.#nextLevel = currentTime + LEVEL_SECONDS;
      this.#tell({ type: "level", level: this.#framer.takeLevel(), dropped: this.#framer.dropped });
    }
    return true;
  }
}

registerProcessor("voxbridge-capture", Capture);
