/**
 * The socket's side of the call, wherever it runs: text to and from the page, audio to and from the worklets.
 * Owns the ports; call-socket.ts says what happens on them.
 */
import type { FromWorker, Ready, ToWorker } from "../audio/messages";
import type { PlaybackReport } from "../audio/playback-queue";
import { CallSocket } from "./call-socket";

/** What a worker's own scope and a port have in common. */
export interface Scope {
  postMessage: (message: FromWorker | Ready) => void;
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
}

export function serve(scope: Scope): void {
  let playback: MessagePort | null = null;
  const socket = new CallSocket({
    connect: (url, protocol) => new WebSocket(url, protocol),
    later: (ms, work) => {
      const timer = setTimeout(work, ms);
      return () => clearTimeout(timer);
    },
    tell: (message: FromWorker) => scope.postMessage(message),
    play: (data) => playback?.postMessage(data, data === "cut" ? [] : [data]),
  });
  scope.onmessage = ({ data }: MessageEvent<ToWorker>) => {
    switch (data.type) {
      case "open":
        socket.open(data.url, data.protocol, data.hello, data.afterMs);
        break;
      case "attach":
        socket.attach();
        break;
      case "send":
        socket.send(data.text, data.id);
        break;
      case "taken":
        socket.taken(data.id);
        break;
      case "capture":
        data.port.onmessage = ({ data: frame }: MessageEvent<ArrayBuffer>) => {
          socket.frame(frame);
          data.port.postMessage(frame, [frame]);
        };
        break;
      case "playback":
        playback = data.port;
        playback.onmessage = ({ data: report }: MessageEvent<PlaybackReport>) => socket.send(JSON.stringify({ type: "playback", ...report }));
        break;
      case "microphone":
        socket.listen(data.on);
        break;
      case "close":
        socket.close();
        break;
    }
  };
  scope.postMessage({ type: "ready" });
}
