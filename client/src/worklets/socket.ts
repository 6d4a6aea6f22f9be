/**
 * The socket's worker: text to and from the page, audio to and from the worklets, so that a busy page delays no sound and a
 * hidden one delays no reconnecting. Owns the ports; what happens on the socket is line.ts's.
 */
import type { FromWorker, ToWorker } from "../audio/messages";
import type { PlaybackReport } from "../audio/playback-queue";
import { Line } from "../line";

let playback: MessagePort | null = null;

const line = new Line({
  connect: (url, protocol) => new WebSocket(url, protocol),
  later: (ms, work) => {
    const timer = setTimeout(work, ms);
    return () => clearTimeout(timer);
  },
  tell: (message: FromWorker) => self.postMessage(message),
  play: (data) => playback?.postMessage(data, data === "cut" ? [] : [data]),
});

self.onmessage = ({ data }: MessageEvent<ToWorker>) => {
  switch (data.type) {
    case "open":
      line.open(data.url, data.protocol, data.hello, data.afterMs);
      break;
    case "attach":
      line.attach();
      break;
    case "send":
      line.send(data.text);
      break;
    case "capture":
      data.port.onmessage = ({ data: frame }: MessageEvent<ArrayBuffer>) => {
        line.frame(frame);
        data.port.postMessage(frame, [frame]);
      };
      break;
    case "playback":
      playback = data.port;
      playback.onmessage = ({ data: report }: MessageEvent<PlaybackReport>) => line.send(JSON.stringify({ type: "playback", ...report }));
      break;
    case "microphone":
      line.listen(data.on);
      break;
    case "close":
      line.close();
      break;
  }
};
