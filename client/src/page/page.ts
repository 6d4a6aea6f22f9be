/** page.js: the functions that a page answers, ready to use. */
export { type Content, TEXT_LIMIT, visibleText } from "./content";
export { type PageOptions, pageFunctions, type Theme, THEMES } from "./functions";
export { findRoute, type Routes } from "./routes";
