/** Sets the chosen theme before the first paint; runs as a plain script in the head. */
const chosen = localStorage.getItem("voxbridge.theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset["theme"] = chosen;
