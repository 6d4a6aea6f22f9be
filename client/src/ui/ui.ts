/**
 * The default UI of an agent, for pages that bring none: what was said, a text box, and one button for the voice.
 * Owns a shadow tree below the page's element, so neither style reaches the other. Themes by `--voxbridge-…` variables (docs/platform.md).
 */
import style from "inline:./ui.css";
import type { VoiceAgent } from "../agent";
import type { Approval, Entry } from "../entries";
import type { Snapshot } from "../state";

type Child = Node | string;

function make<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, attributes: Record<string, string> = {}, ...children: Child[]): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function button(label: string, className: string, onClick: () => void): HTMLButtonElement {
  const element = make("button", { type: "button", class: className }, label);
  element.addEventListener("click", onClick);
  return element;
}

/** How long news are shown, in ms. */
const NEWS_MS = 6_000;

/** Outlines in a box of 24: a microphone, and a keyboard. */
const MICROPHONE = "M12 15a3 3 0 0 0 3-3V6a3 3 0 0 0-6 0v6a3 3 0 0 0 3 3Zm-6-3H4a8 8 0 0 0 7 7.9V22h2v-2.1A8 8 0 0 0 20 12h-2a6 6 0 0 1-12 0Z";
const KEYBOARD = "M3 6h18v12H3V6Zm2 2v8h14V8H5Zm2 1.5h2v2H7v-2Zm4 0h2v2h-2v-2Zm4 0h2v2h-2v-2ZM8 13h8v1.5H8V13Z";

function icon(): { svg: SVGElement; draw: (outline: string) => void } {
  const [svg, path] = ["svg", "path"].map((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag)) as [SVGElement, SVGElement];
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.append(path);
  return { svg, draw: (outline) => path.setAttribute("d", outline) };
}

const isByVoice = ({ microphone }: Snapshot): boolean => microphone === "on" || microphone === "muted";

/** What the agent does now, in a few words. */
export function stateOf(snapshot: Snapshot): string {
  const { state, microphone, interruption, closed, conversation } = snapshot;
  if (microphone === "asking") return "Allow the microphone in the browser’s question…";
  switch (state) {
    case "idle":
      return closed === null ? "Type, or press the microphone" : closed.reason;
    case "connecting":
      return "Connecting…";
    case "reconnecting":
    case "restoring":
      return interruption === null ? "Going on in a moment…" : `${interruption.reason} Trying again…`;
    case "elsewhere":
      return "The conversation goes on in another window.";
    case "ended":
      return closed?.reason ?? "The conversation ended.";
    case "thinking":
      return "Thinking…";
    case "calling_tool": {
      const running = conversation.findLast((entry) => entry.kind === "call" && entry.status === "running");
      return running?.kind === "call" ? `Using ${words(running.name)}…` : "Working…";
    }
    case "speaking":
      return isByVoice(snapshot) ? "Speaking" : "Writing…";
    case "user_speaking":
      return "Hearing you";
    default:
      return microphone === "muted" ? "Muted" : microphone === "on" ? "Listening" : "Ready";
  }
}

const words = (name: string): string => name.replaceAll("_", " ");

class View {
  readonly #root: HTMLElement;
  readonly #state = make("p", { class: "state", role: "status" });
  readonly #log = make("div", { class: "log", role: "log", "aria-label": "Conversation", tabindex: "0" });
  readonly #news = make("p", { class: "news", "aria-live": "polite", hidden: "" });
  #told: ReturnType<typeof setTimeout> | undefined;
  readonly #problem = make("div", { class: "problem", role: "alert", hidden: "" });
  readonly #input = make("input", { type: "text", "aria-label": "Message", placeholder: "Type a message", enterkeyhint: "send", maxlength: "4000" });
  readonly #talk: HTMLButtonElement;
  readonly #icon = icon();
  readonly #controls = make("div", { class: "controls" });
  readonly #lines = new Map<string, HTMLElement>();
  readonly #mute: HTMLButtonElement;
  readonly #sound: HTMLButtonElement;
  readonly #stop: HTMLButtonElement;
  readonly #back: HTMLButtonElement;

  constructor(
    private readonly agent: VoiceAgent,
    private readonly greeting: string,
  ) {
    this.#talk = button("", "talk", () => this.#switch());
    this.#talk.append(this.#icon.svg);
    this.#mute = button("Mute", "", () => agent.mute(agent.getSnapshot().microphone === "on"));
    this.#stop = button("Stop", "", () => agent.interrupt());
    this.#sound = button("Resume sound", "", () => void agent.resumeAudio());
    this.#back = button("Take it back", "", () => agent.takeBack());
    this.#controls.append(this.#mute, this.#stop, this.#sound, this.#back);
    const send = make("button", { type: "submit", class: "send" }, "Send");
    const form = make("form", {}, this.#talk, this.#input, send);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send();
    });
    const head = make("header", {}, this.#state, this.#controls);
    this.#root = make("section", { class: "agent", "aria-label": "Assistant" }, head, this.#log, this.#news, this.#problem, form);
  }

  get root(): HTMLElement {
    return this.#root;
  }

  #send(): void {
    const text = this.#input.value;
    if (text.trim() === "") return;
    this.#input.value = "";
    this.agent.sendText(text).catch(() => (this.#input.value ||= text));
  }

  #switch(): void {
    if (isByVoice(this.agent.getSnapshot())) this.agent.endVoice();
    else this.agent.startVoice().catch(() => undefined); // the snapshot's error says why
  }

  /** The microphone's loudness, 0 to 1. */
  loudness(level: number): void {
    this.#talk.style.setProperty("--level", String(Math.min(1, level * 6)));
  }

  show(snapshot: Snapshot): void {
    const byVoice = isByVoice(snapshot);
    const state = stateOf(snapshot);
    if (this.#state.textContent !== state) this.#state.textContent = state;
    this.#root.dataset["state"] = snapshot.state;
    const label = byVoice ? "Go on in text" : "Talk";
    this.#talk.setAttribute("aria-label", label);
    this.#talk.title = label;
    this.#icon.draw(byVoice ? KEYBOARD : MICROPHONE);
    this.#talk.setAttribute("aria-pressed", String(byVoice));
    this.#talk.disabled = snapshot.microphone === "asking" || snapshot.state === "connecting";
    this.#mute.hidden = !byVoice;
    this.#mute.textContent = snapshot.microphone === "muted" ? "Unmute" : "Mute";
    this.#stop.hidden = snapshot.state !== "speaking";
    this.#sound.hidden = !(snapshot.audioBlocked && byVoice);
    this.#back.hidden = snapshot.state !== "elsewhere";
    this.#problems(snapshot);
    this.#tell(snapshot);
    this.#conversation(snapshot);
  }

  /** What became of an interruption, for as long as it is news. */
  #tell({ notice, state }: Snapshot): void {
    const text = notice === null || state === "restoring" ? "" : notice.text;
    if (this.#news.textContent === text) return;
    this.#news.textContent = text;
    this.#news.hidden = text === "";
    clearTimeout(this.#told);
    if (text !== "") this.#told = setTimeout(() => this.agent.clearNotice(), NEWS_MS);
  }

  #problems({ error, closed }: Snapshot): void {
    const text = error !== null ? `${error.message} ${error.action}` : closed !== null && !closed.ended ? closed.reason : "";
    this.#problem.hidden = text === "";
    if (this.#problem.textContent !== text) this.#problem.textContent = text;
  }

  #conversation({ conversation }: Snapshot): void {
    const log = this.#log;
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    const shown = new Set<string>();
    if (conversation.length === 0 && this.greeting !== "") {
      this.#line("greeting", "assistant", this.greeting);
      shown.add("greeting");
    }
    for (const entry of conversation) {
      if (this.#entry(entry)) shown.add(entry.key);
    }
    for (const [key, line] of this.#lines) {
      if (shown.has(key)) continue;
      line.remove();
      this.#lines.delete(key);
    }
    if (atEnd) log.scrollTop = log.scrollHeight;
  }

  #entry(entry: Entry): boolean {
    switch (entry.kind) {
      case "said":
        this.#unheard(this.#line(entry.key, entry.role, entry.text, entry.final ? "" : "partial"), entry.cut ? "" : entry.unheard);
        return entry.text !== "" || entry.unheard !== "";
      case "call":
        this.#line(entry.key, "step", `Using ${words(entry.name)}${entry.status === "failed" ? ": it failed" : entry.status === "cancelled" ? ": stopped" : ""}`);
        return true;
      case "approval":
        this.#approval(entry);
        return true;
      case "task":
        this.#line(entry.key, "step", `${words(entry.name)}: ${entry.status}${entry.done === null ? "" : `, ${Math.round(entry.done * 100)} %`}`);
        return true;
      case "handoff":
        this.#line(entry.key, "step", `${entry.to} takes over`);
        return true;
    }
  }

  #line(key: string, role: string, text: string, more = ""): HTMLElement {
    let line = this.#lines.get(key);
    if (line === undefined) {
      line = make("div", {}, make("span", { class: "words" }));
      this.#lines.set(key, line);
      this.#log.append(line);
    }
    line.className = `line ${role} ${more}`.trim();
    line.ariaBusy = String(more === "partial"); // a screen reader waits for the whole of it
    const said = line.firstElementChild;
    if (said !== null && said.textContent !== text) said.textContent = text;
    return line;
  }

  /** What was made and not heard, since somebody interrupted it. */
  #unheard(line: HTMLElement, text: string): void {
    const shown = line.querySelector("s");
    if (text === "") shown?.remove();
    else if (shown === null) line.append(make("s", { title: "Made, but not heard" }, text));
    else if (shown.textContent !== text) shown.textContent = text;
  }

  #approval(entry: Approval): void {
    const isOpen = entry.outcome === null && entry.answer === null;
    const line = this.#line(entry.key, "question", isOpen ? entry.question : `${entry.question} ${entry.outcome ?? entry.answer?.answer ?? ""}`);
    if (isOpen && line.childElementCount === 1) {
      line.append(button("Yes", "", () => this.agent.answerApproval(entry.id, true)), button("No", "", () => this.agent.answerApproval(entry.id, false)));
    } else if (!isOpen) {
      while (line.childElementCount > 1) line.lastElementChild?.remove();
    }
  }
}

/** Put the UI of an agent below an element; the answer takes it away again. */
export function mount(agent: VoiceAgent, element: Element, greeting: string): () => void {
  const host = make("div", { class: "voxbridge" });
  const shadow = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet(); // allowed by every content security policy, unlike a <style>
  sheet.replaceSync(style);
  shadow.adoptedStyleSheets = [sheet];
  const view = new View(agent, greeting);
  shadow.append(view.root);
  element.append(host);
  view.show(agent.getSnapshot());
  const listening = [agent.subscribe(() => view.show(agent.getSnapshot())), agent.levels.subscribe(({ input }) => view.loudness(input))];
  return () => {
    for (const stop of listening) stop();
    host.remove();
  };
}
