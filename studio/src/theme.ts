/** Light, dark, or as the system says. Owns the choice, kept in this browser. */
import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";
const KEY = "voxbridge.theme";
const CHANGED = "voxbridge-theme";
const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };

export function current(): Theme {
  const theme = document.documentElement.dataset["theme"];
  return theme === "light" || theme === "dark" ? theme : "system";
}

export function choose(theme: Theme): void {
  if (theme === "system") {
    delete document.documentElement.dataset["theme"];
    localStorage.removeItem(KEY);
  } else {
    document.documentElement.dataset["theme"] = theme;
    localStorage.setItem(KEY, theme);
  }
  dispatchEvent(new Event(CHANGED));
}

/** Calls back when the colours may have changed. */
export function onThemeChange(listener: () => void): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  addEventListener(CHANGED, listener);
  system.addEventListener("change", listener);
  return () => {
    removeEventListener(CHANGED, listener);
    system.removeEventListener("change", listener);
  };
}

export function useTheme(): [theme: Theme, next: () => void] {
  const theme = useSyncExternalStore(onThemeChange, current);
  return [theme, () => choose(NEXT[theme])];
}

/** The page's colours as canvas wants them. */
export function colours(element: Element): Record<"ink" | "muted" | "line" | "accent" | "paper" | "surface" | "danger" | "soft" | "warn", string> {
  const style = getComputedStyle(element);
  const of = (name: string): string => style.getPropertyValue(`--canvas-${name}`).trim();
  return { ink: of("ink"), muted: of("muted"), line: of("line"), accent: of("accent"), paper: of("paper"), surface: of("surface"), danger: of("danger"), soft: of("soft"), warn: of("warn") };
}
