/**
 * The socket's worker: text to and from the page, audio to and from the worklets, so that a busy page delays no sound.
 * Owns the WebSocket and its bounds. A crash here ends the connection, which the page sees as closed.
 */
import type { FromWorker, ToWorker } from "../audio/messages";
import type { PlaybackReport } from "../audio/playback-queue";

/** Bytes the browser may hold unsent, about 4 s of speech; newer microphone frames are dropped until they went out. */
const MAX_UNSENT = 131_072;

let socket: WebSocket | null = null;
let playback: MessagePort | null = null;
let microphone = false;

function tell(message: FromWorker): void {
  self.postMessage(message);
}

function open(url: string, protocol: string): void {
  const opened = new WebSocket(url, protocol);
  opened.binaryType = "arraybuffer";
  opened.onopen = () => tell({ type: "open", protocol: opened.protocol });
  opened.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
    if (typeof data === "string") tell({ type: "message", text: data });
    else playback?.postMessage(data, [data]);
  };
  opened.onclose = ({ code, reason }) => {
    socket = null;
    tell({ type: "close", code, reason });
  };
  socket = opened;
}

function send(data: string | ArrayBuffer): void {
  if (socket?.readyState === WebSocket.OPEN) socket.send(data);
}

function takeMicrophone(port: MessagePort): void {
  port.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
    if (microphone && socket !== null && socket.bufferedAmount <= MAX_UNSENT) send(data);
    port.postMessage(data, [data]);
  };
}

function takePlayback(port: MessagePort): void {
  playback = port;
  port.onmessage = ({ data }: MessageEvent<PlaybackReport>) => send(JSON.stringify({ type: "playback", ...data }));
}

self.onmessage = ({ data }: MessageEvent<ToWorker>) => {
  switch (data.type) {
    case "open":
      open(data.url, data.protocol);
      break;
    case "send":
      send(data.text);
      break;
    case "capture":
      takeMicrophone(data.port);
      break;
    case "playback":
      takePlayback(data.port);
      break;
    case "microphone":
      microphone = data.on;
      break;
    case "close":
      socket?.close(1000);
      break;
  }
};
