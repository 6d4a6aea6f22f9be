/** Studio's entry: mounts the app. */
import "./fonts.css";
import "./styles/base.css";
import "./styles/talk.css";
import "./styles/sessions.css";
import "./styles/agents.css";
import "./styles/tools.css";
import "./styles/awareness.css";
import "./styles/tour.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { arrive } from "./access";
import { App } from "./app";

arrive();
const root = document.getElementById("root");
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
