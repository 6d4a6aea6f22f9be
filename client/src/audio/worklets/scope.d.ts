/** The globals of an AudioWorklet that this project uses. */
declare abstract class AudioWorkletProcessor {
  readonly port: MessagePort;
  abstract process(inputs: Float32Array[][], outputs: Float32Array[][]): boolean;
}
declare function registerProcessor(name: string, type: new () => AudioWorkletProcessor): void;
/** Hz. */
declare const sampleRate: number;
/** Seconds on the context's clock of the block that is being processed. */
declare const currentTime: number;

/** The bundled, minified text of a worklet or worker (client/build/bundle.mjs). */
declare module "inline:*" {
  const source: string;
  export default source;
}
