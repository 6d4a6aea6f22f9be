/** The few icons, drawn on a 24-unit grid in the colour of the text. Each stands beside words or a label. */
import type { ReactElement } from "react";

const PATHS = {
  microphone: "M12 3a3 3 0 0 0-3 3v5a3 3 0 0 0 6 0V6a3 3 0 0 0-3-3ZM5.5 11a6.5 6.5 0 0 0 13 0M12 17.5V21",
  muted: "M12 3a3 3 0 0 0-3 3v5a3 3 0 0 0 6 0V6a3 3 0 0 0-3-3ZM5.5 11a6.5 6.5 0 0 0 13 0M12 17.5V21M4 4l16 16",
  stop: "M7 7h10v10H7z",
  end: "M6 6l12 12M18 6 6 18",
  keyboard: "M3 7h18v10H3zM7 10.5h.1M12 10.5h.1M17 10.5h.1M8 14h8",
  send: "M12 19V5M6 11l6-6 6 6",
  speaker: "M4 9.5v5h3.5L12 18.5v-13L7.5 9.5H4ZM15.5 9a4.2 4.2 0 0 1 0 6M18 6.5a7.8 7.8 0 0 1 0 11",
  silent: "M4 9.5v5h3.5L12 18.5v-13L7.5 9.5H4ZM16 9.5l5 5M21 9.5l-5 5",
  settings: "M4 8h9M19 8h1M4 16h1M11 16h9M16 8m-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0M8 16m-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0",
  help: "M9 9.2a3 3 0 1 1 4.4 2.7c-.9.5-1.4 1.1-1.4 2.1M12 17.4v.1",
  light: "M12 12m-3.8 0a3.8 3.8 0 1 0 7.6 0a3.8 3.8 0 1 0-7.6 0M12 3v1.6M12 19.4V21M3 12h1.6M19.4 12H21M5.6 5.6l1.2 1.2M17.2 17.2l1.2 1.2M18.4 5.6l-1.2 1.2M6.8 17.2l-1.2 1.2",
  dark: "M19.5 14.2A8 8 0 0 1 9.8 4.5a8 8 0 1 0 9.7 9.7Z",
  system: "M4 5.5h16v10.5H4zM9 19.5h6",
  tool: "M14.5 6.2a4 4 0 0 0-5.2 5.1L4.5 16v3.5H8l4.7-4.8a4 4 0 0 0 5.1-5.2l-2.5 2.5-2.2-.6-.6-2.2 2-3Z",
  task: "M12 12m-8 0a8 8 0 1 0 16 0a8 8 0 1 0-16 0M12 7.5V12l3 2",
  ask: "M12 3.5 5 6v5.5c0 4.2 2.9 7.4 7 9 4.1-1.6 7-4.8 7-9V6l-7-2.5ZM10 10a2 2 0 1 1 2.8 1.9c-.5.3-.8.6-.8 1.2M12 15.6v.1",
  search: "M11 11m-6 0a6 6 0 1 0 12 0a6 6 0 1 0-12 0M15.5 15.5 20 20",
  down: "M7 10l5 5 5-5",
  back: "M14.5 6 8.5 12l6 6",
  warning: "M12 4 3 19.5h18L12 4ZM12 10v4.5M12 17v.1",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 20 }: { name: IconName; size?: number }): ReactElement {
  return (
    <svg className="icon" width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" strokeWidth="1.7" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Wordmark(): ReactElement {
  return (
    <svg width="26" height="26" viewBox="0 0 32 32" aria-hidden="true" className="wordmark">
      <path d="M6 14v4M11 10.5v11M16 6v20M21 10.5v11M26 14v4" fill="none" stroke="currentColor" strokeWidth="2.8" strokeLinecap="round" />
    </svg>
  );
}
