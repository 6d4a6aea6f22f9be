/**
 * The catalogue's functions of a page, answered: `navigate_page`, `get_current_page`, `get_workspace_state`, `read_page_content`,
 * `switch_theme`, and `switch_model` where the page says how. Owns what is answered; the page says which paths there are and how it goes there.
 * What cannot be done is thrown as a sentence, which the model is told.
 */
import type { Snapshot } from "../state";
import type { Json } from "../socket/protocol";
import type { PageTool } from "../tools";
import { cutAt, selectedText, visibleText } from "./content";
import { findRoute, named, nameOf, type Routes } from "./routes";

export const THEMES = ["light", "dark", "system"] as const;
export type Theme = (typeof THEMES)[number];

export interface PageOptions {
  /** Paths that may be opened; without any there is no `navigate_page`. */
  routes?: Routes;
  /** Opens a path; by default the browser loads it, after the answer. */
  navigate?: (path: string) => void;
  /** The theme of the page; by default `color-scheme` and `data-theme` of the document. */
  theme?: { get: () => Theme; set: (theme: Theme) => void };
  /** What the call is at, for `get_workspace_state`: `() => agent.getSnapshot()`. */
  call?: () => Snapshot | null | undefined;
  /** More of the state of the workspace, such as what is open in it. */
  state?: () => Json;
  /** Switches to a model, and tells what follows from it; without it there is no `switch_model`. */
  switchModel?: (model: string) => Json | Promise<Json>;
}

export const SELECTION_LIMIT = 1_000;
export const PANELS_LIMIT = 10;
const LABEL_LIMIT = 80;
/** What is said of a page's text; a model is given all of it. */
const SPOKEN_LIMIT = 400;
const MODEL_LIMIT = 128;

const documentTheme: NonNullable<PageOptions["theme"]> = {
  get: () => asTheme(document.documentElement.dataset["theme"]) ?? "system",
  set: (theme) => {
    const { dataset, style } = document.documentElement;
    if (theme === "system") delete dataset["theme"];
    else dataset["theme"] = theme;
    style.colorScheme = theme === "system" ? "" : theme;
  },
};

/** The functions, for `tools` of a `VoiceAgent`: `{ tools: { ...pageFunctions({ routes }), own } }`. Touches no window before it is called. */
export function pageFunctions(options: PageOptions = {}): Record<string, PageTool> {
  const { routes = {}, theme = documentTheme, switchModel } = options;
  return {
    ...(Object.keys(routes).length === 0 ? {} : { navigate_page: opening(routes, options.navigate) }),
    get_current_page: () => ({ ...here(routes), spoken: `You are on ${spokenName(routes)}.` }),
    get_workspace_state: () => workspace(routes, theme, options),
    read_page_content: () => read(routes),
    switch_theme: ({ theme: wanted }: Json) => switchTheme(wanted, theme),
    ...(switchModel === undefined
      ? {}
      : {
          switch_model: async ({ model }: Json) => {
            if (typeof model !== "string" || model.trim() === "" || model.length > MODEL_LIMIT) throw new Error(`a model has a name of 1 to ${MODEL_LIMIT} characters`);
            return { success: true, ...(await switchModel(model.trim())) };
          },
        }),
  };
}

/** `navigate_page`, with the names of the pages that have one: models choose among them. */
function opening(routes: Routes, go: PageOptions["navigate"]): PageTool {
  const run = ({ path }: Json): Promise<Json> => navigate(path, routes, go);
  const names = named(routes);
  if (names.length === 0 || names.length > NAMES_LIMIT) return run;
  // A function still, which pages may call by themselves.
  return Object.assign(run, { parameters: { type: "object", properties: { path: { type: "string", enum: names } }, required: ["path"] } });
}

const NAMES_LIMIT = 64;

async function navigate(wanted: unknown, routes: Routes, go: PageOptions["navigate"]): Promise<Json> {
  const { path, name } = findRoute(wanted, routes, location.origin);
  if (go === undefined) {
    // The answer has to leave this page before the page is left.
    if (path !== location.pathname) setTimeout(() => location.assign(path), LEAVE_MS);
    return { success: true, path, page: name, spoken: `Opening ${name}.` };
  }
  go(path);
  await new Promise((resolve) => setTimeout(resolve, 0));
  if (location.pathname !== path) throw new Error(`${name} did not open; the page is still ${location.pathname}`);
  return { ...here(routes), spoken: `${name} is open.` };
}

const LEAVE_MS = 100;

function here(routes: Routes): Json {
  return { success: true, path: location.pathname, page: nameOf(location.pathname, routes), title: cutAt(document.title, LABEL_LIMIT * 2) };
}

function spokenName(routes: Routes): string {
  return nameOf(location.pathname, routes) || cutAt(document.title, LABEL_LIMIT) || location.pathname;
}

function read(routes: Routes): Json {
  const { text, truncated } = visibleText(document.querySelector("main") ?? document.body);
  const start = cutAt(text.replaceAll("\n", " "), SPOKEN_LIMIT);
  const whole = start.length === text.length;
  const spoken = text === "" ? "There is no text on this page." : `This is ${spokenName(routes)}: ${whole ? start : `${start.replace(/\s+\S*$/, "")} …`}`;
  return { ...here(routes), text, truncated, spoken };
}

function workspace(routes: Routes, theme: NonNullable<PageOptions["theme"]>, { call, state }: PageOptions): Json {
  const selection = selectedText(SELECTION_LIMIT);
  const snapshot = call?.() ?? undefined;
  const connection = snapshot?.connection ?? (navigator.onLine ? "online" : "offline");
  const microphone = snapshot?.microphone;
  const spoken = [
    `You are on ${spokenName(routes)}`,
    ...(microphone === undefined ? [] : [`the microphone is ${microphone}`]),
    `the theme is ${theme.get()}`,
    selection === "" ? "nothing is selected" : `“${cutAt(selection, LABEL_LIMIT)}” is selected`,
  ].join(", ");
  return {
    ...here(routes),
    connection,
    ...(snapshot === undefined ? {} : { state: snapshot.state, microphone, agent: snapshot.speaker.agent, model: snapshot.speaker.model }),
    theme: theme.get(),
    selection,
    panels: panels(),
    visible: document.visibilityState === "visible",
    ...state?.(),
    spoken: `${spoken}.`,
  };
}

/** What is open on the page: dialogs and unfolded parts, by their names. */
function panels(): string[] {
  const open = [...document.querySelectorAll("dialog[open], details[open], [role=dialog]:not(dialog)")].filter((one) => one.closest("[data-private], [hidden]") === null);
  return open.slice(0, PANELS_LIMIT).map((one) => cutAt(labelOf(one), LABEL_LIMIT));
}

function labelOf(element: Element): string {
  const by = element.getAttribute("aria-labelledby");
  const named = element.getAttribute("aria-label") ?? (by === null ? null : document.getElementById(by)?.textContent) ?? element.querySelector("summary, h1, h2, h3")?.textContent;
  return (named ?? element.id).replace(/\s+/g, " ").trim();
}

function switchTheme(wanted: unknown, { get, set }: NonNullable<PageOptions["theme"]>): Json {
  const theme = asTheme(wanted);
  if (theme === null) throw new Error(`a theme is one of ${THEMES.join(", ")}`);
  set(theme);
  const now = get();
  return { success: now === theme, theme: now, spoken: now === "system" ? "The colours follow your system." : `The theme is ${now} now.` };
}

function asTheme(value: unknown): Theme | null {
  return THEMES.find((theme) => theme === value) ?? null;
}
