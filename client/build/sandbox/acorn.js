/** The parser that reads handlers when a page configures them. */
import { parse } from "acorn";

globalThis.acorn = { parse };
