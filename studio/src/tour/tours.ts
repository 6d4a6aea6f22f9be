/**
 * The tour that this page shows: begun by a call or a click, steered by voice, keys and clicks. In a call, a click is said as words, so that the
 * agent says the step; where no answer comes of it in time, the tour goes on without words. Leaving the page of a tour ends it.
 */
import type { Json, VoiceAgent } from "voxbridge/react";
import { navigate } from "wouter/use-browser-location";
import { ask } from "../http";
import { type Action, ACTIONS, Guide, isAction, type Tour } from "./guide";
import { overlay } from "./scene";

/** What is said for a click. */
const WORDS: Record<Action, string> = { next: "Next", back: "Go back", skip: "Skip it", stop: "Stop the tour", explain: "Explain more" };
const KEYS: Record<string, Action> = { ArrowRight: "next", ArrowLeft: "back", Escape: "stop" };
/** How long a call has to do what was clicked. */
const PATIENCE_MS = 1_500;
/** What the window is told of each change of the path, by the browser and by the router. */
const MOVES = ["popstate", "pushState", "replaceState"] as const;

let guide: Guide | null = null;
let waiting: ReturnType<typeof setTimeout> | undefined;
let call: VoiceAgent | null = null;

/** The page of a path, as tours name it. */
export function pageOf(path: string): string {
  const [, room = "", id = ""] = path.split("/");
  if (room === "") return "talk";
  return room === "sessions" && id !== "" ? "session" : room;
}

/** Show a tour; one that names no page gives way to that of the page at hand. */
export async function begin(agent: VoiceAgent | null, given: Json | null, named: boolean): Promise<void> {
  call = agent;
  const here = pageOf(location.pathname);
  const own = named && given !== null ? null : await ask<Tour>(`/api/vox/tours/${encodeURIComponent(here)}`).catch(() => null);
  const tour = own ?? (given as unknown as Tour | null);
  if (tour === null) return;
  end();
  if (tour.page !== here && !tour.path.includes(":")) navigate(tour.path);
  guide = new Guide(tour, overlay(clicked));
  addEventListener("keydown", pressed, true);
  for (const name of MOVES) addEventListener(name, moved);
}

/** Do what was said; the function `steer_tour`. */
export async function steer(action: unknown): Promise<Json> {
  if (!isAction(action)) throw new Error(`an action is one of ${ACTIONS.join(", ")}`);
  clearTimeout(waiting);
  if (guide === null) return { success: true, touring: false, spoken: "No tour is open. Say: show me around." };
  const told = await guide.steer(action);
  if (!guide.open) end();
  return told;
}

function moved(): void {
  if (guide !== null && pageOf(location.pathname) !== guide.tour.page) end();
}

function end(): void {
  clearTimeout(waiting);
  removeEventListener("keydown", pressed, true);
  for (const name of MOVES) removeEventListener(name, moved);
  guide?.stop();
  guide = null;
}

function clicked(action: Action): void {
  clearTimeout(waiting);
  if (call?.getSnapshot().connection !== "connected") {
    void steer(action);
    return;
  }
  waiting = setTimeout(() => void steer(action), PATIENCE_MS);
  call.sendText(WORDS[action]).catch(() => undefined);
}

function pressed(event: KeyboardEvent): void {
  const action = KEYS[event.key];
  const inField = event.target instanceof HTMLElement && event.target.closest("input, textarea, select") !== null;
  if (action === undefined || inField || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  event.stopPropagation();
  clicked(action);
}
