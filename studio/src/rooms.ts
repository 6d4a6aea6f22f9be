/** The rooms, and every path that the app shows. */
import type { Routes } from "voxbridge/page";

export const ROOMS: readonly [path: string, name: string][] = [
  ["tools", "Tools"],
  ["agents", "Agents"],
  ["bridge", "Bridge"],
  ["sessions", "Sessions"],
  ["awareness", "Awareness"],
  ["keys", "Keys"],
];

/** What `navigate_page` may open, by the names that people say. */
export const ROUTES: Routes = {
  "/": "Talk",
  ...Object.fromEntries(ROOMS.map(([path, name]) => [`/${path}`, name])),
  "/tools/tasks": "Tasks",
  "/tools/approvals": "Approvals",
  "/tools/macros": "Macros",
  "/tools/runs": "Runs",
  "/tools/runs/:id": "Run",
  "/tools/:name": "Tool",
  "/sessions/:id": "Session",
};
