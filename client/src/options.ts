/** What a page may choose about a call. */
import type { Mode } from "./socket/protocol";
import type { Probe } from "./measuring/probe";
import type { Tools } from "./tools";

export interface VoiceAgentOptions {
  /** A publishable key (`pk_…`): the page brings the agent along, and its tools' handlers run on the server (docs/platform.md). */
  apiKey?: string;
  /** Where `VoiceAgent.start` puts the default UI: an element, or a selector of one. Without it there is none. */
  element?: string | Element;
  /** Tells the agents of one page apart, so that each goes on with its own call after a reload; the selector of `element` by default. */
  name?: string;
  /** With a key: what the agent is told, its first words, its language (`en`, `pt-BR`), and how fast it speaks (0.5 to 2). */
  instructions?: string;
  greeting?: string;
  language?: string;
  speed?: number;
  /** With a key: words of the person that stop the agent, 0 to 10; 0: any voice does. */
  bargeInWords?: number;
  /** The person's time zone, by its IANA name; the browser's by default. Empty tells none. */
  timeZone?: string;
  /** The gateway, as `wss://host` or `https://host`; the page's own by default. */
  url?: string;
  /** An access token, where the gateway asks for one (`voxbridge token`). Said when a call is begun, and kept nowhere. */
  token?: string;
  /** `local` by default. */
  mode?: Mode;
  model?: string;
  voice?: string;
  systemPrompt?: string;
  /** An agent or a pipeline of the installation, by name; it says what mode and model would. */
  agent?: string;
  /** How replies come; empty, and by default, as the mode or the agent says. */
  output?: "" | "audio" | "text";
  /** Whether the audio is kept: true asks for it, false refuses it; without, as the agent says. */
  record?: boolean;
  /** Whether a wait of more than 1.2 s is covered by a few words; without, as the agent says. */
  filler?: boolean;
  /** False for a conversation in text; or constraints beside echo cancellation, noise suppression and gain control, which are on. */
  microphone?: boolean | MediaTrackConstraints;
  /** Play into the AudioContext's destination instead of an `<audio>` element. */
  directOutput?: boolean;
  /** Start muted; the microphone is open while `pushToTalk(true)` holds. */
  pushToTalk?: boolean;
  /** What the page itself answers, by function name; declared when a call starts. With a key: tools whose `handler` runs on the server. */
  tools?: Tools;
  /** Tell agents which page the person is on, and errors that nobody caught, while a call is up. Nothing is told without it. */
  awareness?: boolean | { pages?: boolean; errors?: boolean };
  /** How long a lost call is tried for, in ms; 120,000, as long as a gateway keeps it, by default. 0 ends it with its socket. */
  resumeWindow?: number;
  /** Keeps copies of samples and marks for measurements (docs/studio.md). */
  probe?: Probe | null;
}
